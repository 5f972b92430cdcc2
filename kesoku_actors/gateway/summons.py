"""Sessions that somebody should look at: a set with a bell. Coalescing, never full, never lost (B1).

Who looks reads the store and finds out what there is; being called twice is being called once. It is bounded by the
sessions that the store holds, and outlives the tasks of both sides.
"""

from __future__ import annotations

import trio
from attrs import field

from kesoku_actors.values import define


@define(eq=False)
class Summons:
    """The sessions called and not looked at yet, oldest first."""

    _sessions: dict[str, None] = field(factory=dict, init=False)
    _bell: trio.Event = field(factory=trio.Event, init=False)

    def call(self, session_id: str) -> None:
        """Have a session looked at; returns at once."""
        self._sessions[session_id] = None
        self._bell.set()

    async def next(self) -> str:
        """Wait for a session to look at."""
        while not self._sessions:
            self._bell = trio.Event()
            await self._bell.wait()
        session_id = next(iter(self._sessions))
        del self._sessions[session_id]
        return session_id
