"""A trio run that a synchronous test drives from outside, so that actors live on between the rules of a machine.

trio runs as a guest of this object: its loop turns only inside `do` and `close`. Time is virtual and moves only when
nothing else can happen.
"""

from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any

import trio
from trio.testing import MockClock


class GuestRun:
    """`do` runs one async function to its end; `close` ends the run. `nursery` holds what lives between."""

    nursery: trio.Nursery

    def __init__(self) -> None:
        self._host: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._jobs, self._incoming = trio.open_memory_channel[Callable[[], Awaitable[None]]](1)
        self._token: trio.lowlevel.TrioToken | None = None
        self._outcome: Any = None
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._host.put,
            done_callback=self._done,
            clock=MockClock(autojump_threshold=0),
        )
        self._pump(lambda: self._token is not None)

    def do(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run `job` and raise what it raises."""
        ends: list[BaseException | None] = []

        async def run() -> None:
            try:
                await job()
            except Exception as error:
                ends.append(error)
            else:
                ends.append(None)

        self._from_outside(lambda: self._jobs.send_nowait(run))
        self._pump(lambda: bool(ends) or self._outcome is not None)
        if not ends:
            self._outcome.unwrap()
        elif ends[0] is not None:
            raise ends[0]

    def close(self) -> None:
        """Cancel what lives in the nursery and end the run; raises what came out of it."""
        if self._outcome is None:
            self._from_outside(self._jobs.close)
            self._pump(lambda: self._outcome is not None)
        self._outcome.unwrap()

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            self._token = trio.lowlevel.current_trio_token()
            async for job in self._incoming:
                await job()
            self.nursery.cancel_scope.cancel()

    def _done(self, outcome: Any) -> None:
        self._outcome = outcome

    def _from_outside(self, call: Callable[[], object]) -> None:
        assert self._token is not None
        self._token.run_sync_soon(call)

    def _pump(self, ready: Callable[[], bool]) -> None:
        while not ready():
            self._host.get()()
