"""What happened, for a person: who raced with whom, who is blocked on what, and the steps that matter. Pure.

Most of a run is of no interest. Shown are the tasks that take part: the two whose order decides, the one that failed,
those that are held, those that are blocked; of these, the steps that use what several tasks use and that happened
before the failure; all else is a bystander.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import define, evolve, field

from kesoku_actors.harness.cause import Observed, Use, cone, deciding_pair, parting, source_of
from kesoku_actors.harness.control import Step
from kesoku_actors.harness.counterexample import (
    ORDERS,
    Arrow,
    Blocked,
    Doing,
    LaneView,
    Parting,
    RunView,
    Story,
    Witness,
)
from kesoku_actors.harness.errors import Deadlock
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Form, Hold, Tick
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site

_MOST_ROWS: Final = 40
_WAITS: Final = ("has to wait", "waits for")
_OVER: Final = "its time is over"
_PARTNERS: Final = {
    "has to wait to send to": ("receives from",),
    "has to wait to receive from": ("sends to", "closes"),
    "has to wait for": ("takes", "lets go of"),
    "waits for": ("sets", "notifies"),
}
"""What others do to a thing that a task waits at, and that could let it go on."""


def told(form: Form, failing: Seen, near: tuple[Form, Seen] | None) -> Story:
    """Return the story of a failing run beside the nearest one that passes."""
    passing = near[1] if near is not None else None
    pair = None
    if passing is not None:
        pair = deciding_pair(failing.observed, passing.observed, failing.focus)
    blocked = tuple(_blocked(failing, passing))
    telling = _Telling(form, failing, passing, pair, blocked)
    error = failing.run.error
    raised = failing.raised
    return Story(
        message="" if error is None else _message(error),
        raised_by=raised.lane if raised is not None else "",
        raised_at=raised.site if raised is not None else None,
        raised_source=source_of(raised.site) if raised is not None else "",
        witnesses=telling.witnesses(),
        decides=telling.decides(),
        blocked=blocked,
        lanes=telling.lanes(),
        failing=telling.view(failing.observed, is_failing=True),
        passing=None if passing is None else telling.view(passing.observed, is_failing=False),
        parting=None if near is None else _parting(form, failing, *near),
    )


def _message(error: BaseException) -> str:
    return "; ".join(dict.fromkeys(str(leaf).strip() or type(leaf).__name__ for leaf in leaves(error)))


@define(eq=False)
class _Telling:
    """What is picked out of the runs."""

    form: Form
    failing: Seen
    passing: Seen | None
    pair: tuple[Use, Use] | None
    blocked: tuple[Blocked, ...]
    shown: frozenset[str] = field(init=False)
    """The labels of the tasks that take part."""
    ends: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        taking_part = {use.lane for use in self.pair or ()} | {one.lane for one in self.blocked}
        for event in self.form.events:
            match event:
                case Hold(who, _, until):
                    taking_part.add(who)
                    taking_part |= {until.who} if until is not None else set()
                case Tick():
                    pass  # the task that ran last before time passes is no cause
        if self.failing.raised is not None:
            taking_part.add(self.failing.raised.lane)
        taking_part |= {one.lane for one in self._cut_short() or ()}
        self.shown = frozenset(taking_part - {"time"})
        raised = self.failing.raised
        last = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
        waiting = [last[one.lane] for one in self.blocked if one.lane in last]
        self.ends = [raised.step] if raised is not None else waiting or list(last.values())[-1:]

    def witnesses(self) -> tuple[Witness, ...]:
        """Return the two events that decide, in the order of the failing run."""
        if (circle := _circle(self.blocked)) is not None:
            steps = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
            return tuple(
                Witness(lane=one.lane, what=one.waits_for, site=one.site, source=one.source, step=steps[one.lane])
                for one in circle
            )
        if (cut := self._cut_short()) is not None:
            return cut
        if self.pair is None:
            return ()
        in_failing = self.failing.observed.by_name
        return tuple(
            _witness(use, in_failing[use.name].step.number if use.name in in_failing else 0) for use in self.pair
        )

    def _cut_short(self) -> tuple[Witness, ...] | None:
        """Return a wait that time ended, and the event that would have ended it, if the schedule lets time pass."""
        observed = self.failing.observed
        if not any(isinstance(event, Tick) for event in self.form.events):
            return None
        for tick, following in pairwise(observed.steps):
            if tick.lane is not None:
                continue
            woken = {lane.label for lane in following.ready} - {lane.label for lane in tick.ready}
            for use in (one for one in reversed(observed.uses) if one.lane in woken and one.step.number < tick.number):
                halves = _PARTNERS.get(use.touch.how, ())
                later = (
                    one
                    for one in observed.uses
                    if one.touch.thing == use.touch.thing and one.step.number > tick.number and one.lane != use.lane
                )
                other = next((one for one in later if one.touch.how in halves), None)
                if other is not None:
                    late = _witness(other, other.step.number)
                    return evolve(
                        _witness(use, tick.number), what=f"{use.touch.how} {use.touch.what}, and {_OVER}"
                    ), late
        return None

    def decides(self) -> str:
        """Return in words how the order of the two events decides; empty where it is plain from them."""
        if _circle(self.blocked) is not None:
            return "Each waits for what only the other can give."
        if self._cut_short() is not None:
            return "Here time ends the wait of A just before B; where B comes first, the run passes."
        if self.pair is None or self.passing is None:
            return ""
        here, there = self.failing.observed.by_name, self.passing.observed.by_name
        for letter, use in zip("AB", self.pair, strict=True):
            if use.name not in there:
                return f"In the run that passes, {letter} does not happen."
            if use.name not in here:
                return f"In the run that passes, {letter} happens too."
        return "Here A comes before B; where B comes before A, the run passes."

    def lanes(self) -> tuple[LaneView, ...]:
        """Return every task of the program, in the order of spawning."""
        return tuple(
            LaneView(
                label=lane.label,
                parent=lane.parent.label if lane.parent is not None and lane.parent.is_program else None,
                is_shown=lane.label in self.shown,
            )
            for lane in self.failing.run.lanes
            if lane.is_program
        )

    def view(self, observed: Observed, *, is_failing: bool) -> RunView:
        """Return a run as it is drawn."""
        numbers = cone(observed, self.ends) if is_failing else {step.number for step in observed.steps}
        rows = list(self._rows(observed, numbers, is_failing=is_failing))
        kept = _fewer(rows)
        ticks = tuple((step.number, step.time) for step in observed.steps if step.lane is None)
        return RunView(doings=tuple(kept), arrows=tuple(_arrows(observed, kept)), ticks=ticks)

    def _rows(self, observed: Observed, numbers: set[int], *, is_failing: bool) -> Iterator[Doing]:
        shared = observed.shared()
        witnesses = {(use.name[0], use.name) for use in self.pair or ()}
        uses: dict[int, list[Use]] = defaultdict(list)
        for use in observed.uses:
            uses[use.step.number].append(use)
        held = {(event.who, event.at) for event in self.form.events if isinstance(event, Hold)}
        raised = self.failing.raised if is_failing else None
        for step in observed.steps:
            lane = step.lane
            if lane is None or lane.label not in self.shown:
                continue
            here = [use for use in uses[step.number] if use.touch.thing in shared]
            is_witness = any((use.lane, use.name) in witnesses for use in here)
            is_held = is_failing and (lane.label, step.lane_step) in held
            is_end = raised is not None and raised.step == step.number
            if not (is_witness or is_held or is_end or (here and step.number in numbers)):
                continue
            said = list(dict.fromkeys(_said(here)))
            said += ["FAILS"] if is_end else []
            first = next((use.touch.site for use in here if (use.lane, use.name) in witnesses), None)
            site = (
                raised.site
                if is_end and raised is not None
                else first or next((use.touch.site for use in here if use.touch.site is not None), step.site)
            )
            yield Doing(
                step=step.number,
                lane=lane.label,
                lane_step=step.lane_step,
                time=step.time,
                what="; ".join(said) or "goes on",
                site=site,
                source=source_of(site),
                is_witness=is_witness,
                is_held=is_held,
            )


def _witness(use: Use, step: int) -> Witness:
    what, site = f"{use.touch.how} {use.touch.what}", use.touch.site
    return Witness(lane=use.lane, what=what, site=site, source=source_of(site), step=step)


def _circle(blocked: Sequence[Blocked]) -> tuple[Blocked, Blocked] | None:
    """Return two tasks that wait for things that only each other can give, if there are such."""
    waiting = {one.lane: one for one in blocked if one.waits_for.startswith(_WAITS)}
    for one in waiting.values():
        for other in one.until:
            if other in waiting and one.lane in waiting[other].until:
                return one, waiting[other]
    return None


def _said(uses: Sequence[Use]) -> Iterator[str]:
    """Yield in words what a step did; that it read what it changed goes without saying."""
    changed = {use.touch.thing for use in uses if use.touch.is_plain and use.touch.writes}
    for use in uses:
        if use.touch.writes or not use.touch.is_plain or use.touch.thing not in changed:
            yield f"{use.touch.how} {use.touch.what}"


def _fewer(rows: list[Doing]) -> list[Doing]:
    """Leave out the oldest of what is not essential, when there is too much."""
    too_many = len(rows) - _MOST_ROWS
    if too_many <= 0:
        return rows
    plain = [row.step for row in rows if not (row.is_witness or row.is_held)]
    dropped = set(plain[:too_many])
    return [row for row in rows if row.step not in dropped]


def _arrows(observed: Observed, rows: Sequence[Doing]) -> Iterator[Arrow]:
    """Yield an arrow wherever a step uses what another task changed last."""
    shown = {row.step for row in rows}
    changed: dict[Hashable, Use] = {}
    drawn: set[tuple[int, int]] = set()
    for use in observed.uses:
        if use.step.number not in shown:
            continue
        last = changed.get(use.touch.thing)
        if last is not None and last.lane != use.lane and (last.step.number, use.step.number) not in drawn:
            drawn.add((last.step.number, use.step.number))
            yield Arrow(of=last.step.number, to=use.step.number, why=use.touch.what)
        if use.touch.writes:
            changed[use.touch.thing] = use


def _blocked(failing: Seen, passing: Seen | None) -> Iterator[Blocked]:
    """Yield who waits for ever, when the run ended so."""
    stuck = next((leaf for leaf in leaves(failing.run.error or Exception()) if isinstance(leaf, Deadlock)), None)
    if stuck is None:
        return
    labels = [said.partition(" at ")[0] for said in stuck.blocked]
    observed = failing.observed
    last_use = {use.lane: use for use in observed.uses}
    last_step: dict[str, Step] = {step.lane.label: step for step in observed.steps if step.lane is not None}
    every = [*observed.uses, *(passing.observed.uses if passing is not None else ())]
    parents = {lane.label: lane.parent.label for lane in failing.run.lanes if lane.parent is not None}
    for label in labels:
        use, children = last_use.get(label), tuple(one for one in labels if parents.get(one) == label)
        is_last = use is not None and label in last_step and use.step.number == last_step[label].number
        if use is not None and is_last and use.touch.how.startswith(_WAITS):
            others = _partners(use, every)
            waits = f"{use.touch.how} {use.touch.what}"
            yield Blocked(
                lane=label, site=use.touch.site, source=source_of(use.touch.site), waits_for=waits, until=others
            )
        else:
            site = _stands_at(failing, label) or (last_step[label].site if label in last_step else None)
            waits = "waits until its tasks have ended" if children else ""
            yield Blocked(lane=label, site=site, source=source_of(site), waits_for=waits, until=children)


def _stands_at(failing: Seen, label: str) -> Site | None:
    """Return where a blocked task stands: the clean-up that wakes it tells."""
    later = (step for step in failing.run.trace if step.number > failing.observed.until)
    return next((step.site for step in later if step.lane is not None and step.lane.label == label), None)


def _partners(use: Use, every: Sequence[Use]) -> tuple[str, ...]:
    """Return who could let a task go on: whoever has ever done the other half to this thing."""
    halves = _PARTNERS.get(use.touch.how, ())
    if use.touch.how == "has to wait for":
        return _holders(use, every)
    found = [
        other.lane
        for other in every
        if other.touch.what == use.touch.what and other.touch.how in halves and other.lane != use.lane
    ]
    return tuple(dict.fromkeys(found))


def _holders(use: Use, every: Sequence[Use]) -> tuple[str, ...]:
    """Return who has taken a thing in this run and not let go of it."""
    holders: dict[str, None] = {}
    for other in every:
        if other.touch.what != use.touch.what:
            continue
        if other.order > use.order and other.step.number > use.step.number:
            break
        if other.touch.how == "takes":
            holders[other.lane] = None
        elif other.touch.how == "lets go of":
            holders.pop(other.lane, None)
    return tuple(lane for lane in holders if lane != use.lane)


def _parting(form: Form, failing: Seen, other: Form, passing: Seen) -> Parting:
    """Return where the two runs part."""
    common = parting(failing.observed, passing.observed)
    return Parting(
        step=common + 1,
        failing=_goes_on(failing.observed, common),
        passing=_goes_on(passing.observed, common),
        difference=_difference(form, other),
    )


def _goes_on(observed: Observed, at: int) -> str:
    if at >= len(observed.steps):
        return "the run is over"
    step = observed.steps[at]
    if step.lane is None:
        return "time passes"
    where = "begins" if step.site is None else f"goes on from {step.site}: {source_of(step.site)}"
    return f"`{step.lane.label}` {where}"


def _difference(form: Form, other: Form) -> str:
    missing = [event for event in form.events if event not in other.events]
    added = [event for event in other.events if event not in form.events]
    said = [f"without: {event}" for event in missing] + [f"with: {event}" for event in added]
    if form.base is not other.base:
        said.append(f"in the other order: {ORDERS[other.base]}")
    return "; ".join(said)
