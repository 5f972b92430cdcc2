"""The two events of a failing run that decide, out of all that it did, and in a sentence how. Pure.

Looked for in this order: tasks that wait for each other in a circle; a channel that is used when another has closed it;
where time passes, two tasks that look at a thing before either changes it, or a wait that ends just before what it
waits for; two uses of one thing that come the other way round in the run that passes; a task that is cancelled in the
middle; a task that is held while another uses what it uses; and at last, something that only one of the runs does.
Where the one task stands in the middle of something while the other does its part, that line is told too: it is the
gap that the other gets into.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from attrs import define, evolve, field

from kesoku_actors.harness.blocked import PARTNERS, circle_of, stands_at
from kesoku_actors.harness.cause import Pair, Use, deciding_pair, source_of
from kesoku_actors.harness.counterexample import Blocked, Witness
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Form, Hold, Tick
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site, in_own_file
from kesoku_actors.harness.touches import CLOSED

_CLOSED: Final = ("ClosedResourceError", "BrokenResourceError")
_OF_NURSERY: Final = "open_nursery("


@define(kw_only=True)
class Deciding:
    """Two events, and in words how they decide."""

    witnesses: tuple[Witness, ...] = ()
    words: str = ""
    summary: str = ""
    """What goes wrong, for somebody who reads nothing else."""
    gap: Witness | None = None


@define(eq=False)
class Looking:
    """The search for the two events."""

    form: Form
    failing: Seen
    passing: Seen | None
    blocked: Sequence[Blocked]
    focus: frozenset[Hashable]
    """The things that the failing line uses, or that the blocked tasks wait at."""
    pair: Pair | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pair = None
        if self.passing is not None:
            raised = self.failing.raised
            end = None if raised is None else (raised.lane, raised.step)
            self.pair = deciding_pair(self.failing.observed, self.passing.observed, self.focus, end)

    def deciding(self) -> Deciding:
        """Return the two events; none when nothing decides alone."""
        rules: tuple[Callable[[], Deciding | None], ...] = (
            partial(self._circle, of_events=False),
            self._refused,
            self._acted_late,
            self._cut_short,
            self._flipped,
            partial(self._circle, of_events=True),
            self._cancelled,
            self._held,
            self._only_one,
        )
        return next((found for rule in rules if (found := rule()) is not None), Deciding())

    def _circle(self, *, of_events: bool) -> Deciding | None:
        """Tasks that wait for each other. With events the question is why they are never set: that comes first."""
        circle = circle_of(self.blocked)
        is_of_events = all(one.waits_for.startswith("waits for") for one in circle)
        if len(circle) < 2 or is_of_events is not of_events:
            return None
        both = tuple(map(self._blocked_witness, circle[:2]))
        if len(circle) == 2:
            words = "Each waits for what only the other can give."
        else:
            way = ", ".join(f"`{one.lane}` for `{other.lane}`" for one, other in pairwise([*circle[1:4], circle[0]]))
            dots = "" if len(circle) <= 4 else f" ({len(circle) - 4} more between)"
            words = f"A waits for B, {way}{dots}: a circle of {len(circle)}."
        summary = f"{_tasks(both)} wait for each other" if len(circle) == 2 else f"{len(circle)} tasks wait in a circle"
        did = "; ".join(f"`{one.lane}` {one.what} at {_line(one.site)}" for one in both)
        return Deciding(witnesses=both, words=words, summary=f"{summary}, for ever: {did}.")

    def _blocked_witness(self, one: Blocked) -> Witness:
        steps = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
        return Witness(lane=one.lane, what=one.waits_for, site=one.site, source=one.source, step=steps[one.lane])

    def _refused(self) -> Deciding | None:
        """A channel that another task has closed."""
        error, raised = self.failing.run.error, self.failing.raised
        if error is None or raised is None or not any(type(leaf).__name__ in _CLOSED for leaf in leaves(error)):
            return None
        uses = self.failing.observed.uses
        mine = [use for use in uses if use.lane == raised.lane and use.order <= uses[-1].order]
        last = next((use for use in reversed(mine) if _is_of_channel(use)), None)
        closed = next(
            (
                use
                for use in reversed(uses)
                if last is not None
                and use.touch.thing == last.touch.thing
                and use.touch.how == "closes"
                and use.lane != raised.lane
            ),
            None,
        )
        if last is None or closed is None:
            return None
        site = raised.site if in_own_file(raised.site) == raised.site else in_own_file(raised.site)
        late = _at(raised.lane, f"uses {last.touch.what} all the same", site, raised.step)
        first = _witness(closed, closed.step.number)
        summary = (
            f"`{first.lane}` {first.what} at {_line(first.site)}; `{late.lane}` still uses it, at {_line(late.site)}."
        )
        words = "A closes what B has not done with; where B comes before A, the run passes."
        gap = self._gap(first, late)
        return Deciding(witnesses=(first, late), words=words, summary=summary, gap=gap)

    def _acted_late(self) -> Deciding | None:
        """Two tasks that look at one thing before either changes it, where time brings them together."""
        if not any(isinstance(event, Tick) for event in self.form.events):
            return None
        looked: dict[Hashable, list[Use]] = {}
        for use in self.failing.observed.uses:
            if not use.touch.is_plain or use.lane == "time":
                continue
            before = looked.setdefault(use.touch.thing, [])
            if not use.touch.writes:
                before.append(use)
                continue
            both = {one.lane: one for one in before}
            if use.lane in both and len(both) > 1:
                other = next(one for lane, one in both.items() if lane != use.lane)
                if self._changes_too(other) and both[use.lane].order < other.order:
                    return self._stale(other, use)
            before.clear()
        return None

    def _changes_too(self, use: Use) -> bool:
        """Whether a task changes later what it looks at here."""
        return any(
            one.lane == use.lane and one.touch.thing == use.touch.thing and one.touch.writes and one.order > use.order
            for one in self.failing.observed.uses
        )

    def _stale(self, look: Use, change: Use) -> Deciding:
        first, second = _witness(look, look.step.number), _witness(change, change.step.number)
        summary = (
            f"`{second.lane}` and `{first.lane}` both look at {look.touch.what} before either changes it, "
            f"at {_line(first.site)} and {_line(second.site)}."
        )
        words = "Here A comes before B; where A comes after B, it sees what B has done."
        return Deciding(witnesses=(first, second), words=words, summary=summary, gap=self._gap(first, second))

    def _cut_short(self) -> Deciding | None:
        """A wait that time ended, if the schedule lets time pass while work is runnable."""
        if not any(isinstance(event, Tick) for event in self.form.events):
            return None
        observed = self.failing.observed
        for tick, following in pairwise(observed.steps):
            if tick.lane is not None:
                continue
            woken = {lane.label for lane in following.ready} - {lane.label for lane in tick.ready}
            for use in (one for one in reversed(observed.uses) if one.lane in woken and one.step.number < tick.number):
                other = self._other_half(use, tick.number)
                if other is not None:
                    what = f"{use.touch.how} {use.touch.what}, and its time is over"
                    first = evolve(_witness(use, tick.number), what=what)
                    return self._too_late(first, _witness(other, other.step.number), is_half=True)
            if (rest := self._elsewhere(woken)) is not None:
                label = min(woken)
                site = stands_at(self.failing, label, tick.number)
                first = _at(label, "has waited, and its time is over, while work is runnable", site, tick.number)
                return self._too_late(first, rest, is_half=False)
        return None

    def _too_late(self, first: Witness, other: Witness, *, is_half: bool) -> Deciding:
        if is_half:
            words = "Here time ends the wait of A just before B; where B comes first, the run passes."
        else:
            words = "Here time passes for A before others have done theirs."
        summary = (
            f"The time of `{first.lane}` at {_line(first.site)} is over before "
            f"`{other.lane}` {other.what} at {_line(other.site)}."
        )
        return Deciding(witnesses=(first, other), words=words, summary=summary, gap=self._gap(first, other))

    def _other_half(self, use: Use, after: int) -> Use | None:
        halves = PARTNERS.get(use.touch.how, ())
        for one in self.failing.observed.uses:
            is_other = one.touch.thing == use.touch.thing and one.lane != use.lane
            if is_other and one.step.number > after and one.touch.how in halves:
                return one
        return None

    def _elsewhere(self, lanes: set[str]) -> Witness | None:
        """Return the half of the pair that another task does, when these tasks are one side."""
        if self.pair is None or not lanes:
            return None
        raised = self.failing.raised
        for use in self.pair.uses:
            if use.lane not in lanes and (raised is None or use.lane != raised.lane):
                return self._known(use)
        return None

    def _flipped(self) -> Deciding | None:
        if self.pair is None or self.pair.rank > 0:
            return None
        first, second = map(self._known, self.pair.uses)
        gap = self._gap(first, second)
        words = "Here A comes before B; where B comes before A, the run passes."
        meanwhile = "" if gap is None else f" In between, `{gap.lane}` stands at {_line(gap.site)}."
        summary = (
            f"`{first.lane}` {first.what} at {_line(first.site)} before "
            f"`{second.lane}` {second.what} at {_line(second.site)}; the other way round, the run passes.{meanwhile}"
        )
        return Deciding(witnesses=(first, second), words=words, summary=summary, gap=gap)

    def _cancelled(self) -> Deciding | None:
        """A task that is cancelled, and who cancels it."""
        for use in reversed(self.failing.observed.uses):
            if use.touch.how != "cancels" or use.lane == "time":
                continue
            for label in self._victims(use):
                site = stands_at(self.failing, label, use.step.number)
                if site is None or _OF_NURSERY in source_of(site):
                    continue
                victim = _at(label, "is cancelled here, in the middle", site, use.step.number)
                other = _witness(use, use.step.number)
                words = "Here B comes while A is in the middle; where it comes elsewhere, the run passes."
                summary = (
                    f"`{other.lane}` cancels `{label}` at {_line(other.site)} while it stands at {_line(site)}, "
                    "and it goes no further."
                )
                return Deciding(witnesses=(victim, other), words=words, summary=summary)
        return None

    def _victims(self, use: Use) -> list[str]:
        """Return the tasks that a cancellation reaches, first those that use what the failing line uses."""
        users = self.failing.observed.users(self.focus)
        if self.pair is not None:
            users |= {one.lane for one in self.pair.uses}
        return sorted((label for label in use.touch.reaches if label != use.lane), key=lambda label: label not in users)

    def _held(self) -> Deciding | None:
        """A task that is held, and who uses meanwhile what it uses."""
        observed = self.failing.observed
        for event in self.form.events:
            if not isinstance(event, Hold):
                continue
            mine = [step for step in observed.steps if step.lane is not None and step.lane.label == event.who]
            begins = next((step.number for step in mine if step.lane_step == event.at - 1), 0)
            ends = next((step.number for step in mine if step.lane_step == event.at), observed.until)
            things = {use.touch.thing for use in observed.uses if use.lane == event.who} & observed.shared()
            between = [
                use
                for use in observed.uses
                if begins < use.step.number < ends and use.lane != event.who and use.touch.thing in things
            ]
            other = next((use for use in between if use.touch.writes), None)
            if other is not None:
                site = stands_at(self.failing, event.who, begins)
                stands = "is held here, in the middle" if event.at else "has not begun yet"
                first = _at(event.who, stands, site, begins)
                second = _witness(other, other.step.number)
                words = "Here B comes while A is in the middle; where A goes on first, the run passes."
                summary = (
                    f"While `{first.lane}` stands at {_line(site)}, "
                    f"`{second.lane}` {second.what} at {_line(second.site)}."
                )
                return Deciding(witnesses=(first, second), words=words, summary=summary)
        return None

    def _only_one(self) -> Deciding | None:
        """Something that only one of the runs does."""
        if self.pair is None or self.passing is None:
            return None
        here, there = self.failing.observed.by_name, self.passing.observed.by_name
        both = first, second = tuple(map(self._known, self.pair.uses))
        words = summary = ""
        for letter, use, one, other in zip("AB", self.pair.uses, both, (second, first), strict=True):
            if use.name not in there:
                words = f"In the run that passes, {letter} does not happen."
                summary = f"`{one.lane}` {one.what} at {_line(one.site)}; in the run that passes it does not."
            elif use.name not in here:
                comes = "before" if _comes_first(there, self.pair, use) else "after"
                words = f"In the run that passes, {letter} happens too, {comes} {'B' if letter == 'A' else 'A'}."
                summary = (
                    f"`{other.lane}` {other.what} at {_line(other.site)}, and `{one.lane}` never "
                    f"comes to {_line(one.site)} ({one.what}); in the run that passes it does, {comes} that."
                )
        return Deciding(witnesses=both, words=words, summary=summary, gap=self._gap(first, second))

    def _known(self, use: Use) -> Witness:
        found = self.failing.observed.by_name.get(use.name)
        return _witness(use, 0 if found is None else found.step.number)

    def _gap(self, first: Witness, second: Witness) -> Witness | None:
        """Return where the one of two tasks stands while the other does its part; none when that says nothing new."""
        held = {event.who for event in self.form.events if isinstance(event, Hold)}
        later, earlier = (first, second) if 0 < second.step < first.step or not first.step else (second, first)
        if earlier.lane in held and later.lane not in held and later.step:
            later, earlier = earlier, later
        if later.lane == earlier.lane or not earlier.step:
            return None
        before = [step for step in self.failing.observed.steps if step.number < earlier.step]
        if not any(step.lane is not None and step.lane.label == later.lane for step in before):
            return None
        site = _in_function_of(later.site, stands_at(self.failing, later.lane, earlier.step))
        if site is None or site in (first.site, second.site):
            return None
        return _at(later.lane, "stands here meanwhile", site, earlier.step)


def _comes_first(there: dict[tuple[str, str, str, int], Use], pair: Pair, use: Use) -> bool:
    other = next(one for one in pair.uses if one is not use)
    found = there.get(other.name)
    return found is None or there[use.name].order < found.order


def _in_function_of(wanted: Site | None, site: Site | None) -> Site | None:
    """Return the line that a call goes through in the function that is spoken of; else the line itself."""
    through = site
    while (
        through is not None
        and wanted is not None
        and (through.file, through.function)
        != (
            wanted.file,
            wanted.function,
        )
    ):
        through = through.caller
    return through or site


def _is_of_channel(use: Use) -> bool:
    return use.touch.what.startswith("channel") and use.touch.how in (CLOSED, *PARTNERS)


def _tasks(both: Sequence[Witness]) -> str:
    return " and ".join(f"`{one.lane}`" for one in both)


def _line(site: Site | None) -> str:
    return "its first line" if site is None else str(site).partition(" in ")[0]


def _at(lane: str, what: str, site: Site | None, step: int) -> Witness:
    return Witness(lane=lane, what=what, site=site, source=source_of(site), step=step)


def _witness(use: Use, step: int) -> Witness:
    return _at(use.lane, f"{use.touch.how} {use.touch.what}", use.touch.site, step)
