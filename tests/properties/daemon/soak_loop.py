"""A loop for a soak: the world of the harness, under trio's own order of steps.

A run under control keeps every task and every choice, so that it can be reduced and told; over a week that would be all
one measures. This loop keeps what a world needs, and forgets the rest when it is told to.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import define, field

from kesoku_actors.harness.control.current import Events
from kesoku_actors.harness.control.privates import GLOBAL_RUN_CONTEXT, run
from kesoku_actors.harness.control.standins import VirtualClock, without_the_system
from kesoku_actors.harness.lanes import Lane


@define(eq=False)
class Chance:
    """In place of a strategy: faults are drawn."""

    rng: random.Random


@define(eq=False, kw_only=True)
class Loop(trio.abc.Instrument):
    """A run that a world may be made in."""

    strategy: Chance
    clock: VirtualClock = field(init=False)
    runner: Any = None
    steps: int = 0
    last: Lane | None = None
    choices: list[int] = field(factory=list)
    is_fair: bool = False
    refused: BaseException | None = None
    lanes: list[Lane] = field(factory=list)
    events: Events = field(factory=Events)

    def __attrs_post_init__(self) -> None:
        self.clock = VirtualClock(self)

    def before_run(self) -> None:
        self.runner = GLOBAL_RUN_CONTEXT.runner

    def before_task_step(self, _task: trio.lowlevel.Task) -> None:
        self.steps += 1

    def deadlocked(self) -> None:
        """Nothing is runnable, and no time will come. Raises `AssertionError`, which ends the run."""
        raise AssertionError("everybody waits, and for no time")

    def forget(self) -> None:
        """Drop what was noted, drawn and chosen so far."""
        self.choices.clear()
        self.events.notes.clear()
        self.events.fired.clear()
        self.events.fired_in_step.clear()

    @property
    def tasks(self) -> int:
        """How many there are, the loop's own among them."""
        return len(self.runner.tasks)


def run_soak(program: Callable[[Loop], Awaitable[None]], *, seed: int) -> Loop:
    """Run a program in virtual time, in an order drawn with this seed, and return the loop."""
    loop = Loop(strategy=Chance(random.Random(f"{seed}/faults")))
    names = vars(run)
    saved = {name: names[name] for name in ("_r", "_ALLOW_DETERMINISTIC_SCHEDULING")}
    names.update(_r=random.Random(f"{seed}/order"), _ALLOW_DETERMINISTIC_SCHEDULING=True)
    try:
        with without_the_system():
            trio.run(program, loop, clock=loop.clock, instruments=[loop])
    finally:
        names.update(saved)
        for undo in reversed(loop.events.undo):
            undo()
    return loop
