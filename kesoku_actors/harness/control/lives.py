"""Lives of a program that crashes: the disk dies first, then everything is cancelled, then it begins anew.

In that order, because the `finally` blocks of a cancelled program must change nothing: in a real crash they never run.
For the same reason no shield holds a cancellation off from then on.
What they raise is no finding, and what was raised before the crash is one all the same.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

import trio
from attrs import define, field, frozen

from kesoku_actors.harness.control.current import Controlled
from kesoku_actors.harness.control.footprints import named
from kesoku_actors.harness.control.inflight import errors_in_flight, unwinding
from kesoku_actors.harness.control.shields import without_shields
from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.touches import LIFE

_STEPS: Final = 24
_SLEEPS: Final = 16
_RATE: Final = 0.08
"""How often the power is asked after while a life is busy and while it sleeps, and how often it goes."""


class NeverAtRest(AssertionError):
    """Without faults and under a fair order, the program did not come to rest."""


@frozen
class Power:
    """May go at any time: a task beside a life that asks for the fault `power cut`, step by step, then less and less
    often, so that neither a busy life nor one that sleeps is safe from it."""

    fails: Callable[[str, float], bool]
    crash: Callable[[], None]

    async def watch(self) -> None:
        """Ask, until the power goes or nothing more is to be feared."""
        for number in range(_STEPS + _SLEEPS):
            if number < _STEPS:
                await trio.lowlevel.checkpoint()
            else:
                await trio.sleep(0.01 * 2.0 ** (number - _STEPS))
            if self.fails("power cut", _RATE):
                self.crash()
                return


@define(eq=False)
class Lives:
    """The lives that go on, and whether they were ended by a crash."""

    scopes: list[trio.CancelScope] = field(factory=list)
    begun: int = 0
    crashes: int = 0
    raised_before: list[BaseException] = field(factory=list)
    """What was raised before a crash and was unwinding when it came."""
    _unwinding: ExitStack = field(factory=ExitStack)
    """What is different as long as a life unwinds that crashed."""

    def crash(self, run: Controlled) -> None:
        """Cancel every life."""
        self.crashes += 1
        self.raised_before += errors_in_flight(run)
        if self.scopes:  # else nothing dies that would end what is different
            self._unwinding.enter_context(without_shields(self.scopes, unwinding(run)))
        for scope in self.scopes:
            scope.cancel()

    async def live(self, program: Callable[[], Awaitable[object]], *, power: Power | None) -> bool:
        """Run a program until it returns or the world crashes; return whether it returned.

        What it raises because it was torn down is no finding; raises what was raised before the crash.
        """
        before = self.crashes
        try:
            with trio.CancelScope() as scope:
                self.begun += 1
                named(scope, f"life {self.begun} {LIFE}")
                self.scopes.append(scope)
                try:
                    async with trio.open_nursery() as nursery:
                        if power is not None:
                            nursery.start_soon(power.watch, name="power")
                        await program()
                        nursery.cancel_scope.cancel()
                finally:
                    self.scopes.remove(scope)
                    if not self.scopes:
                        self._unwinding.close()
        except Exception as error:
            if self.crashes == before:
                raise
            group = error if isinstance(error, ExceptionGroup) else ExceptionGroup("before a crash", [error])
            found = group.subgroup(lambda one: any(one is other for other in self.raised_before))
            if found is not None:
                raise found from None
        return self.crashes == before


async def come_to_rest(run: Controlled, until: Callable[[], bool] | None, within_s: float, within_steps: int) -> None:
    """Let the run be fair from now on, and wait for its rest. Raises `NeverAtRest`.

    At rest is a program in which `until` holds, or, without it, in which nothing is runnable and no deadline comes for
    another `within_s` virtual seconds.
    """
    run.is_fair = True
    began, first = run.clock.now, run.steps
    while True:
        await trio.testing.wait_all_tasks_blocked()
        if until is not None and until():
            return
        due = run.runner.deadlines.next_deadline()
        if until is None and due > run.clock.now + within_s:
            return
        if run.clock.now > began + within_s or due == math.inf or run.steps - first > within_steps:
            waiting = [lane.label for lane in run.lanes if not lane.ended and lane.is_program and lane is not run.last]
            raise NeverAtRest(
                f"not at rest after {run.clock.now - began:g} s and {run.steps - first} steps without a fault; "
                f"there are still {', '.join(f'`{label}`' for label in waiting) or 'no other tasks'}"
            )
        await trio.sleep_until(due)


def required(run: Controlled | None) -> Controlled:
    """Return the run. Raises `HarnessError` when there is none."""
    if run is None:
        raise HarnessError("a world belongs to a run under control; in production there is none")
    return run
