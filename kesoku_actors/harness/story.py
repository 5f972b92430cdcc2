"""What happened, for a person: who raced with whom, who is blocked on what, and the steps that matter. Pure.

Most of a run is of no interest. Shown are the tasks that take part: the two whose order decides, the one that failed,
those that are held, those that are blocked; of these, the steps that use what several tasks use and that happened
before the failure; all else is a bystander.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from attrs import define, field

from kesoku_actors.harness.cause import Observed, Use, cone, parting, source_of
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
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Form, Hold, Tick
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site, in_own_file
from kesoku_actors.harness.witnesses import PARTNERS, WAITS, Looking, stands_at

_MOST_ROWS: Final = 40


def told(form: Form, failing: Seen, near: tuple[Form, Seen] | None) -> Story:
    """Return the story of a failing run beside the nearest one that passes."""
    passing = near[1] if near is not None else None
    blocked = tuple(_blocked(failing, passing))
    looking = Looking(form, failing, passing, blocked, failing.focus or _waited_at(failing, blocked))
    deciding = looking.deciding()
    telling = _Telling(form, failing, passing, deciding.witnesses, blocked)
    error = failing.run.error
    raised = failing.raised
    return Story(
        message="" if error is None else _message(error),
        raised_by=raised.lane if raised is not None else "",
        raised_at=raised.site if raised is not None else None,
        raised_source=source_of(raised.site) if raised is not None else "",
        witnesses=deciding.witnesses,
        decides=deciding.words,
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
    witnesses: tuple[Witness, ...]
    blocked: tuple[Blocked, ...]
    shown: frozenset[str] = field(init=False)
    """The labels of the tasks that take part."""
    ends: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        taking_part = {one.lane for one in self.witnesses} | {one.lane for one in self.blocked}
        for event in self.form.events:
            match event:
                case Hold(who, _, until):
                    taking_part.add(who)
                    taking_part |= {until.who} if until is not None else set()
                case Tick() | Fire():
                    pass  # the task that ran last before time passes is no cause; a fault is the world's
        if self.failing.raised is not None:
            taking_part.add(self.failing.raised.lane)
        self.shown = frozenset(taking_part - {"time"})
        raised = self.failing.raised
        last = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
        waiting = [last[one.lane] for one in self.blocked if one.lane in last]
        self.ends = [raised.step] if raised is not None else waiting or list(last.values())[-1:]

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
        witnesses = {(one.lane, one.site, one.what) for one in self.witnesses}
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
            is_witness = any(_is_of(use, witnesses) for use in here)
            is_held = is_failing and (lane.label, step.lane_step) in held
            is_end = raised is not None and raised.step == step.number
            if not (is_witness or is_held or is_end or (here and step.number in numbers)):
                continue
            said = list(dict.fromkeys(_said(here)))
            said += ["FAILS"] if is_end else []
            first = next((use.touch.site for use in here if _is_of(use, witnesses)), None)
            site = (
                raised.site
                if is_end and raised is not None
                else first or next((use.touch.site for use in here if use.touch.site is not None), step.site)
            )
            site = None if site is None else in_own_file(site)
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


def _is_of(use: Use, witnesses: set[tuple[str, Site | None, str]]) -> bool:
    return (use.lane, use.touch.site, f"{use.touch.how} {use.touch.what}") in witnesses


def _waited_at(failing: Seen, blocked: Sequence[Blocked]) -> frozenset[Hashable]:
    """Return the things that blocked tasks wait at."""
    waits = {(one.lane, one.waits_for) for one in blocked}
    uses = failing.observed.uses
    return frozenset(use.touch.thing for use in uses if (use.lane, f"{use.touch.how} {use.touch.what}") in waits)


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
        if use is not None and is_last and use.touch.how.startswith(WAITS):
            others = _partners(use, every)
            waits = f"{use.touch.how} {use.touch.what}"
            yield Blocked(
                lane=label, site=use.touch.site, source=source_of(use.touch.site), waits_for=waits, until=others
            )
        else:
            site = stands_at(failing, label, observed.until) or (last_step[label].site if label in last_step else None)
            waits = "waits until its tasks have ended" if children else ""
            yield Blocked(lane=label, site=site, source=source_of(site), waits_for=waits, until=children)


def _partners(use: Use, every: Sequence[Use]) -> tuple[str, ...]:
    """Return who could let a task go on: whoever has ever done the other half to this thing."""
    halves = PARTNERS.get(use.touch.how, ())
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
    if not step.lane.is_program:
        return "the program has ended"
    where = "begins" if step.site is None else f"goes on from {step.site}: {source_of(step.site)}"
    return f"`{step.lane.label}` {where}"


def _difference(form: Form, other: Form) -> str:
    missing = [event for event in form.events if event not in other.events]
    added = [event for event in other.events if event not in form.events]
    said = [f"without: {event}" for event in missing] + [f"with: {event}" for event in added]
    if form.base is not other.base:
        said.append(f"in the other order: {ORDERS[other.base]}")
    return "; ".join(said)
