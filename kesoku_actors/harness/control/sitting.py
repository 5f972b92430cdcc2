"""A run in pieces: between them whoever drives it goes on, as the rules of a state machine do.

trio runs as a guest here, and its host turns the loop only inside `turn`, one step at a time. Where trio would go and
wait for files in a thread, nothing is runnable and no deadline may come yet: there the program rests, until the next
piece. Time passes up to the moment that a piece allows, and never between pieces.

Invariant: outside of `turn` every function of the system is the real one, so that whoever drives the run may do what a
program under control may not.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import outcome
import trio
from attrs import define, field

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control.control import Control, check_trio
from kesoku_actors.harness.control.privates import run as loop
from kesoku_actors.harness.control.run import Limits
from kesoku_actors.harness.control.standins import without_the_system
from kesoku_actors.harness.control.traps import trapped
from kesoku_actors.harness.control.watchdog import watched
from kesoku_actors.harness.errors import Deadlock
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.sites import site_of
from kesoku_actors.harness.strategy import Strategy

_AT_LAST: Final = sys.float_info.max
"""Later than any deadline but the one that never comes."""


@define(eq=False)
class Sitting:
    """A program under control, from `begin` to `end`. Raises `UnsupportedTrio`."""

    strategy: Strategy
    limits: Limits = field(factory=Limits)
    allow: Allow = field(factory=Allow)
    nursery: trio.Nursery = field(init=False)
    """For what lives between the pieces."""
    _control: Control = field(init=False)
    _host: deque[Callable[[], object]] = field(factory=deque, init=False)
    """What trio wants to be called next."""
    _wake: Callable[[outcome.Outcome[Any]], object] | None = field(default=None, init=False)
    """Goes on where the program rests; none while it does not."""
    _ended: outcome.Outcome[Any] | None = field(default=None, init=False)

    @property
    def now(self) -> float:
        """The virtual time."""
        return self._control.clock.now

    @property
    def has_begun(self) -> bool:
        """Whether there is a program."""
        return hasattr(self, "_control")

    def begin(self, start: Callable[[], Awaitable[object]]) -> None:
        """Begin the program, and run `start` to its end, with the nursery open. Raises what it raises."""
        check_trio()
        self._control = Control(self.strategy, self.limits, may_tick=True, keeps_trace=False)
        has_started = False

        async def main() -> None:
            nonlocal has_started
            async with trio.open_nursery() as self.nursery:
                await start()
                has_started = True
                await trio.sleep_forever()

        with self._inside():
            trio.lowlevel.start_guest_run(
                main,
                run_sync_soon_threadsafe=self._host.append,
                done_callback=self._is_done,
                host_uses_signal_set_wakeup_fd=True,
                clock=self._control.clock,
                instruments=[self._control],
            )
        self.turn(lambda: has_started)

    def do(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a function to its end as a task, beside everything else, and return what it returns.

        Raises what it raises, and `Deadlock` when it can never end.
        """
        ended: list[outcome.Outcome[Any]] = []

        async def job() -> None:
            ended.append(await outcome.acapture(function, *arguments))

        name = getattr(function, "__name__", str(function))
        self.nursery.start_soon(job, name=name)
        lane = self._control.lanes[-1]
        if not self.turn(lambda: bool(ended)):
            raise Deadlock([f"{lane.label} at {site_of(lane.task.coro)}"])
        return ended[0].unwrap()

    def settle(self, within_s: float = 0.0) -> None:
        """Let everybody run until nobody can, and time pass meanwhile, up to so many seconds."""
        end = self.now + within_s
        self.turn(lambda: False, until=end)
        if self._ended is None:
            self._control.clock.now = max(self.now, end)

    def turn(self, is_over: Callable[[], bool], *, until: float = _AT_LAST) -> bool:
        """Take steps until this is so, and return whether it is; not when the program rests before.

        Raises what the program ended with, if it ended.
        """
        self._control.clock.until = until
        with self._inside():
            if self._wake is not None:
                wake, self._wake = self._wake, None
                wake(outcome.Value(()))
            while self._host and self._ended is None and not is_over():
                self._host.popleft()()
        if self._ended is not None:
            self._raise_the_end()
        return is_over()

    def end(self) -> None:
        """End the program, in a fair order, and undo what its world did. Raises what it ended with."""
        if not self.has_begun:
            return
        control = self._control
        try:
            if self._ended is None:
                control.is_fair = True
                self.nursery.cancel_scope.cancel()
                self.turn(lambda: False, until=math.inf)
        finally:
            while control.events.undo:
                control.events.undo.pop()()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Let the program have its own system meanwhile. Raises what it reached out for, and a step that is stuck."""
        names = vars(loop)
        before = names["start_thread_soon"]
        with without_the_system(), watched(self._control, self.limits.stuck_s) as watch, trapped(self.allow) as guard:
            names["start_thread_soon"] = self._rest
            try:
                yield
            finally:
                names["start_thread_soon"] = before
        for error in (self._control.refused, watch.error, guard.escaped):
            if error is not None:
                raise error

    def _rest(self, _look: object, wake: Callable[[outcome.Outcome[Any]], object], _name: object = None) -> None:
        self._wake = wake

    def _is_done(self, ended: outcome.Outcome[Any]) -> None:
        self._ended = ended

    def _raise_the_end(self) -> None:
        """Raise the one error there is, or all of them."""
        if not isinstance(self._ended, outcome.Error):
            return
        errors = list(dict.fromkeys(leaves(self._ended.error)))
        raise errors[0] if len(errors) == 1 else self._ended.error
