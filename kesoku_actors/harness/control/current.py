"""The run that goes on now, for what a program calls: notes, faults, worlds."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

from attrs import define, field

from kesoku_actors.harness.control.privates import GLOBAL_RUN_CONTEXT
from kesoku_actors.harness.control.standins import VirtualClock
from kesoku_actors.harness.errors import HarnessError, RunEnded
from kesoku_actors.harness.faults import Fire, Fires
from kesoku_actors.harness.lanes import Lane
from kesoku_actors.harness.notes import Note
from kesoku_actors.harness.sites import Site

RATE: Final = 0.25
"""How often a fault happens, where nothing else decides."""


class Controlled(Protocol):
    """A run, as what is in it sees it."""

    strategy: Any
    runner: Any
    clock: VirtualClock
    steps: int
    last: Lane | None
    choices: list[int]
    is_fair: bool
    refused: BaseException | None
    lanes: list[Lane]
    events: Events


@define(eq=False)
class Events:
    """What happened in a run besides steps, and what is to be undone behind it."""

    notes: list[Note] = field(factory=list)
    asked: Counter[str] = field(factory=Counter)
    fired: list[Fire] = field(factory=list)
    fired_in_step: list[Fire] = field(factory=list)
    undo: list[Callable[[], object]] = field(factory=list)


def current() -> Controlled | None:
    """Return the run under control that the caller is in; none in production."""
    runner = getattr(GLOBAL_RUN_CONTEXT, "runner", None)
    clock = getattr(runner, "clock", None)
    return clock.control if isinstance(clock, VirtualClock) else None  # type: ignore[return-value]  # it drives itself


def note_in(run: Controlled, kind: str, fields: dict[str, Any], depth: int) -> Note:
    """Note an event; the line is that of the frame so many calls up."""
    frame = sys._getframe(depth)
    lane, notes = run.last, run.events.notes
    note = Note(
        kind=kind,
        fields=fields,
        number=len(notes),
        step=run.steps,
        lane=lane.label if lane is not None else "",
        lane_step=lane.steps if lane is not None else 0,
        time=run.clock.now,
        steps_of={one.label: one.steps for one in run.lanes if not one.ended},
        site=Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name),
    )
    notes.append(note)
    return note


def fault_in(run: Controlled, name: str, rate: float) -> bool:
    """Tell whether a fault happens now; a choice of the schedule."""
    events = run.events
    events.asked[name] += 1
    if run.is_fair or rate <= 0:
        return False
    fault = Fire(name, events.asked[name])
    if isinstance(run.strategy, Fires):
        try:
            fires = run.strategy.fires(fault)
        except HarnessError as refused:  # it is not the program's
            run.refused = refused
            raise RunEnded("the strategy gave up") from refused
    else:
        rng = getattr(run.strategy, "rng", None) or random.Random(f"{run.choices} {fault}")
        fires = rng.random() < rate
    run.choices += (int(fires), 2)
    if fires:
        events.fired.append(fault)
        events.fired_in_step.append(fault)
    return fires
