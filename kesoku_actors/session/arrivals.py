"""Waiting for the files of a prompt (M8). What becomes of those that do not come is the turn machine's to say.

The store is the truth: each time something is heard of attachments, the awaited messages are read again. The bell only
says when, so that any number of settlements are one look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from attrs import field

from kesoku_actors.protocol import Message
from kesoku_actors.session.history import History
from kesoku_actors.values import define

LONGEST_WAIT_S: Final = 60.0
"""How long a turn waits for the expected attachments of its prompt."""


@define(eq=False)
class Bell:
    """Rung when attachments of the session changed; ringing twice is ringing once."""

    _rung: trio.Event | None = field(default=None, init=False)
    """Of whoever waits, or waited last."""

    def ring(self) -> None:
        """Let whoever waits look again; never blocks."""
        if self._rung is not None:
            self._rung.set()

    def muffle(self) -> trio.Event:
        """Forget what was rung and return what is set by the next ring.

        A wait that is given up may come after the one that took its place: nobody's next ring is taken from them.
        """
        if self._rung is None or self._rung.is_set():
            self._rung = trio.Event()
        return self._rung


async def wait_for_files(
    history: History, bell: Bell, read: Callable[[str], Awaitable[Message | None]]
) -> tuple[str, ...]:
    """Keep the history up to date until no message awaits an attachment; return those that do when time is over."""
    with trio.move_on_after(LONGEST_WAIT_S):
        while history.awaiting:
            rung = bell.muffle()
            for message_id in history.awaiting:
                row = await read(message_id)
                history.add([row] if row is not None else [])
            if history.awaiting:
                await rung.wait()
    return history.awaiting
