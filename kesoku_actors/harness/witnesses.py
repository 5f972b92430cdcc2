"""The two events of a failing run that decide, out of all that it did. Pure.

Looked for in this order: two tasks that wait for what only the other can give; a wait that time ends just before what
it waits for; two uses of one thing that come the other way round in the run that passes; a task that is cancelled in
the middle; a task that is held while another uses what it uses; and at last, something that only one of the runs does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import define, evolve, field

from kesoku_actors.harness.cause import Pair, Use, deciding_pair, source_of
from kesoku_actors.harness.counterexample import Blocked, Witness
from kesoku_actors.harness.hold import Form, Hold, Tick
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site, in_own_file

WAITS: Final = ("has to wait", "waits for")
PARTNERS: Final = {
    "has to wait to send to": ("receives from",),
    "has to wait to receive from": ("sends to", "closes"),
    "has to wait for": ("takes", "lets go of"),
    "waits for": ("sets", "notifies"),
}
"""What others do to a thing that a task waits at, and that could let it go on."""


@define(kw_only=True)
class Deciding:
    """Two events, and in words how they decide."""

    witnesses: tuple[Witness, ...] = ()
    words: str = ""


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
        rules = (self._circle, self._cut_short, self._flipped, self._cancelled, self._held, self._only_one)
        return next((found for rule in rules if (found := rule()) is not None), Deciding())

    def _circle(self) -> Deciding | None:
        waiting = {one.lane: one for one in self.blocked if one.waits_for.startswith(WAITS)}
        for one in waiting.values():
            for other in one.until:
                if other in waiting and one.lane in waiting[other].until:
                    both = tuple(self._blocked_witness(each) for each in (one, waiting[other]))
                    return Deciding(witnesses=both, words="Each waits for what only the other can give.")
        return None

    def _blocked_witness(self, one: Blocked) -> Witness:
        steps = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
        return Witness(lane=one.lane, what=one.waits_for, site=one.site, source=one.source, step=steps[one.lane])

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
                    words = "Here time ends the wait of A just before B; where B comes first, the run passes."
                    return Deciding(witnesses=(first, _witness(other, other.step.number)), words=words)
            if (rest := self._elsewhere(woken)) is not None:
                label = min(woken)
                site = self._stands_at(label, tick.number)
                first = _at(label, "has waited, and its time is over, while work is runnable", site, tick.number)
                return Deciding(witnesses=(first, rest), words="Here time passes for A before others have done theirs.")
        return None

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
        both = tuple(map(self._known, self.pair.uses))
        return Deciding(witnesses=both, words="Here A comes before B; where B comes before A, the run passes.")

    def _cancelled(self) -> Deciding | None:
        """A task that is cancelled, and who cancels it."""
        for use in reversed(self.failing.observed.uses):
            if use.touch.how != "cancels" or use.lane == "time":
                continue
            for label in self._victims(use):
                site = self._stands_at(label, use.step.number)
                if site is not None:
                    victim = _at(label, "is cancelled here, in the middle", site, use.step.number)
                    words = "Here B comes while A is in the middle; where it comes elsewhere, the run passes."
                    return Deciding(witnesses=(victim, _witness(use, use.step.number)), words=words)
        return None

    def _victims(self, use: Use) -> Iterator[str]:
        """Yield the tasks that a cancellation wakes, then those that were about to go on."""
        for step, following in pairwise(self.failing.observed.steps):
            if step is use.step:
                before = {lane.label for lane in step.ready}
                after = [lane.label for lane in following.ready if lane.label != use.lane and lane.is_program]
                missing = {one.lane for one in self.pair.uses} if self.pair is not None else set()
                yield from (label for label in after if label not in before)
                yield from (label for label in after if label in missing)

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
                site = self._stands_at(event.who, begins)
                first = _at(event.who, "is held here, in the middle", site, begins)
                words = "Here B comes while A is in the middle; where A goes on first, the run passes."
                return Deciding(witnesses=(first, _witness(other, other.step.number)), words=words)
        return None

    def _only_one(self) -> Deciding | None:
        """Something that only one of the runs does."""
        if self.pair is None or self.passing is None:
            return None
        here, there = self.failing.observed.by_name, self.passing.observed.by_name
        words = ""
        for letter, use in zip("AB", self.pair.uses, strict=True):
            if use.name not in there:
                words = f"In the run that passes, {letter} does not happen."
            elif use.name not in here:
                words = f"In the run that passes, {letter} happens too."
        return Deciding(witnesses=tuple(map(self._known, self.pair.uses)), words=words)

    def _known(self, use: Use) -> Witness:
        found = self.failing.observed.by_name.get(use.name)
        return _witness(use, 0 if found is None else found.step.number)

    def _stands_at(self, label: str, after: int) -> Site | None:
        """Return where a task stands after a step: where it goes on from next."""
        return stands_at(self.failing, label, after)


def stands_at(seen: Seen, label: str, after: int) -> Site | None:
    """Return where a task stands after a step: where it goes on from, be it only to clean up."""
    later = (step for step in seen.run.trace if step.number > after and step.lane is not None)
    site = next((step.site for step in later if step.lane is not None and step.lane.label == label), None)
    return None if site is None else in_own_file(site)


def _at(lane: str, what: str, site: Site | None, step: int) -> Witness:
    return Witness(lane=lane, what=what, site=site, source=source_of(site), step=step)


def _witness(use: Use, step: int) -> Witness:
    return _at(use.lane, f"{use.touch.how} {use.touch.what}", use.touch.site, step)
