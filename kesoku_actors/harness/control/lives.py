"""Lives of a program that crashes: the disk dies first, then everything is cancelled, then it begins anew.

In that order, because the `finally` blocks of a cancelled program must change nothing: in a real crash they never run.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import trio
from attrs import define, field

from kesoku_actors.harness.control.current import Controlled
from kesoku_actors.harness.errors import HarnessError


class NeverAtRest(AssertionError):
    """Without faults and under a fair order, the program did not come to rest."""


@define(eq=False)
class Lives:
    """The lives that go on, and whether they were ended by a crash."""

    scopes: list[trio.CancelScope] = field(factory=list)
    crashes: int = 0

    def crash(self) -> None:
        """Cancel every life."""
        self.crashes += 1
        for scope in self.scopes:
            scope.cancel()

    async def live(self, program: Callable[[], Awaitable[object]], *, may_crash: Callable[[], None] | None) -> bool:
        """Run a program until it returns or the world crashes; return whether it returned.

        What it raises because it was torn down is no finding. With `may_crash` a task `power cut` of the program's
        calls it when the schedule lets it: at any step.
        """
        before = self.crashes
        with trio.CancelScope() as scope:
            self.scopes.append(scope)
            try:
                async with trio.open_nursery() as nursery:
                    if may_crash is not None:
                        nursery.start_soon(_crash, may_crash, name="power cut")
                    await program()
                    nursery.cancel_scope.cancel()
            except Exception:
                if self.crashes == before:
                    raise
            finally:
                self.scopes.remove(scope)
        return self.crashes == before


async def _crash(crash: Callable[[], None]) -> None:
    await trio.lowlevel.checkpoint()
    crash()


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
