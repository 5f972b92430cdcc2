"""Who waits for ever, on what, and for whom: read from a run that ended in a deadlock. Pure.

A task that waits at one of trio's primitives waits for another one to do the other half to it: to receive what it wants
to send, to let go of the lock. Who that could be is told by what the tasks did to the thing in this run and in one that
passes; with a lock or a permit, by who has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kesoku_actors.harness.cause import Use, source_of
from kesoku_actors.harness.control import Step
from kesoku_actors.harness.counterexample import Blocked
from kesoku_actors.harness.errors import Deadlock
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site, in_own_file

WAITS: Final = ("has to wait", "waits for")
PARTNERS: Final = {
    "has to wait to send to": ("receives from", "has to wait to receive from"),
    "has to wait to receive from": ("sends to", "closes", "has to wait to send to"),
    "has to wait for": ("takes", "lets go of"),
    "waits for": ("sets", "notifies"),
}
"""What others do to a thing that a task waits at, and that could let it go on."""


def blocked_in(failing: Seen, passing: Seen | None) -> Iterator[Blocked]:
    """Yield who waits for ever, when the run ended so."""
    stuck = next((leaf for leaf in leaves(failing.run.error or Exception()) if isinstance(leaf, Deadlock)), None)
    if stuck is None:
        return
    labels = [said.partition(" at ")[0] for said in stuck.blocked]
    observed = failing.observed
    last_use = {use.lane: use for use in observed.uses if not use.touch.is_plain}
    last_step: dict[str, Step] = {step.lane.label: step for step in observed.steps if step.lane is not None}
    there = () if passing is None else passing.observed.uses
    parents = {lane.label: lane.parent.label for lane in failing.run.lanes if lane.parent is not None}
    for label in labels:
        use, children = last_use.get(label), tuple(one for one in labels if parents.get(one) == label)
        is_last = use is not None and label in last_step and use.step.number == last_step[label].number
        if use is not None and is_last and use.touch.how.startswith(WAITS):
            yield _waiting(failing, use, there)
            continue
        site = stands_at(failing, label, observed.until) or (last_step[label].site if label in last_step else None)
        waits = "waits until its tasks have ended" if children else ""
        yield Blocked(lane=label, site=site, source=source_of(site), waits_for=waits, until=children)


def _waiting(failing: Seen, use: Use, there: Sequence[Use]) -> Blocked:
    here = failing.observed.uses
    if use.touch.how == "has to wait for":
        until, is_held = _holders(use, here), True
    else:
        until, is_held = _partners(use, [*here, *there]), False
    ended = {lane.label for lane in failing.run.lanes if _has_ended(failing, lane.label)}
    return Blocked(
        lane=use.lane,
        site=use.touch.site,
        source=source_of(use.touch.site),
        waits_for=f"{use.touch.how} {use.touch.what}",
        until=until,
        is_held=is_held,
        ended=tuple(lane for lane in until if lane in ended),
    )


def _has_ended(failing: Seen, label: str) -> bool:
    """Whether a task was through before the run was ended."""
    stuck = [leaf for leaf in leaves(failing.run.error or Exception()) if isinstance(leaf, Deadlock)]
    return not any(said.partition(" at ")[0] == label for leaf in stuck for said in leaf.blocked)


def _partners(use: Use, every: Sequence[Use]) -> tuple[str, ...]:
    """Return who could let a task go on: whoever has ever done the other half to this thing, or began to."""
    halves = PARTNERS.get(use.touch.how, ())
    found = [
        other.lane
        for other in every
        if other.touch.what == use.touch.what and other.touch.how in halves and other.lane != use.lane
    ]
    return tuple(dict.fromkeys(found))


def _holders(use: Use, here: Sequence[Use]) -> tuple[str, ...]:
    """Return who has taken a thing in this run and not let go of it, or got it while they waited."""
    holders: dict[str, int] = {}
    waiting: list[str] = []
    for other in here:
        if other.touch.what != use.touch.what:
            continue
        match other.touch.how:
            case "takes":
                holders[other.lane] = holders.get(other.lane, 0) + 1
            case "has to wait for":
                waiting.append(other.lane)
            case "lets go of":
                holders[other.lane] = holders.get(other.lane, 0) - 1
                if waiting:  # it is handed over to the first in the line
                    heir = waiting.pop(0)
                    holders[heir] = holders.get(heir, 0) + 1
            case _:
                pass
    return tuple(lane for lane, count in holders.items() if count > 0)


def circle_of(blocked: Sequence[Blocked]) -> tuple[Blocked, ...]:
    """Return the shortest circle of tasks each of which waits for the next one; nothing when there is none."""
    waiting = {one.lane: one for one in blocked if one.waits_for.startswith(WAITS)}
    circles = (_way_back(waiting, lane) for lane in waiting)
    return min((circle for circle in circles if circle), key=len, default=())


def _way_back(waiting: Mapping[str, Blocked], start: str) -> tuple[Blocked, ...]:
    """Return the shortest way from a task along what is waited for back to it."""
    came_from: dict[str, str] = {}
    todo = [start]
    for lane in todo:
        for other in waiting[lane].until:
            if other == start:
                way = [lane]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(waiting[one] for one in reversed(way))
            if other in waiting and other not in came_from:
                came_from[other] = lane
                todo.append(other)
    return ()


def stands_at(seen: Seen, label: str, after: int) -> Site | None:
    """Return where a task stands after a step: where it goes on from, be it only to clean up."""
    later = (step for step in seen.run.trace if step.number > after and step.lane is not None)
    site = next((step.site for step in later if step.lane is not None and step.lane.label == label), None)
    return None if site is None else in_own_file(site)
