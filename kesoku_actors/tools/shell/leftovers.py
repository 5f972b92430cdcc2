"""What commands left running behind their end (M7, C7, C3).

A call is over when its command is; a child in the background lives on and is named. It may serve the session's later
calls, so it lives as long as the session and the program do: a clear ends it with the jobs, an orderly stop of the
program when no call runs any more. It is found by the marks of its call, never by a number that may be another's now.

What commands of an earlier life of the program left is ended when this one begins, before any session goes on: that
life was killed, or it would have done so itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import trio
from attrs import field

from kesoku_actors.actors import Cell, ChildSpec
from kesoku_actors.tools.shell.ending import end_all
from kesoku_actors.tools.shell.kernel import END_GRACE_S, MACHINE, Kernel
from kesoku_actors.tools.shell.process_table import Family, living_marks, marked_calls
from kesoku_actors.tools.shell.survivors import DeadCall, Survivors, end_survivors
from kesoku_actors.values import define

_SHUTDOWN_S = 10.0
"""For all of them together: each takes a grace and about two seconds at most."""


@define(eq=False)
class Leftovers:
    """The calls that left something, by session. To be used from the trio thread alone."""

    grace_s: float = END_GRACE_S
    """Between TERM and KILL."""
    kernel: Kernel = MACHINE
    outlived: Callable[[Survivors], None] = lambda _found: None
    """Told what was found of commands of an earlier life."""
    _calls: dict[str, list[str]] = field(factory=dict, init=False)
    _has_looked: bool = field(default=False, init=False)
    """Whether what an earlier life left was looked for. Only once: later it may be what this life left."""

    def add(self, session_id: str, call_id: str) -> None:
        """Remember a call that left processes behind."""
        self._calls.setdefault(session_id, []).append(call_id)

    async def end(self, session_id: str) -> None:
        """End what the session's calls left, and wait until it has ended."""
        async with trio.open_nursery() as nursery:
            for call_id in self._calls.pop(session_id, ()):
                nursery.start_soon(self._end, call_id)

    def spec(self, earlier: Callable[[], Awaitable[Sequence[DeadCall]]] | None = None) -> ChildSpec:
        """Return the child that ends all of them when it is stopped; it stands before those who run commands.

        `earlier` returns the calls of earlier lives that ran commands; it is asked when any command runs.
        """
        return ChildSpec(id="leftovers", start=partial(self._keep, earlier=earlier), shutdown_s=_SHUTDOWN_S)

    async def _keep(self, cell: Cell[Any], *, earlier: Callable[[], Awaitable[Sequence[DeadCall]]] | None) -> None:
        if earlier is not None and not self._has_looked:
            await self._end_earlier(earlier)
            self._has_looked = True
        cell.started()
        await cell.stopping.wait()
        async with trio.open_nursery() as nursery:
            for session_id in tuple(self._calls):
                nursery.start_soon(self.end, session_id)

    async def _end_earlier(self, earlier: Callable[[], Awaitable[Sequence[DeadCall]]]) -> None:
        marks = living_marks(self.kernel)  # some milliseconds, before anybody waits for anything
        if not marks:
            return  # as nearly always; what every command ever was need not be read
        calls = await earlier()
        left = set(marked_calls([call.call_id for call in calls], marks))
        dead = [call for call in calls if call.call_id in left]
        for found in await end_survivors(dead, grace_s=self.grace_s, kernel=self.kernel):
            self.outlived(found)

    async def _end(self, call_id: str) -> None:
        await end_all(Family(leader=None, call_id=call_id, kernel=self.kernel), grace_s=self.grace_s)
