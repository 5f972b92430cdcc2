"""Wakes the one task that looks after others: a supervisor.

A ring says that something changed, never what: the woken task looks at everything. So rings may merge, and one that
comes before the wait is not lost.
"""

from __future__ import annotations

from typing import final

import trio


@final
class Bell:
    """Rung from any task, heard by one."""

    __slots__ = ("_rung",)

    def __init__(self) -> None:
        self._rung = trio.Event()

    def ring(self) -> None:
        """Wake the listener, now or at its next `wait`."""
        self._rung.set()

    async def wait(self) -> None:
        """Return at a ring."""
        await self._rung.wait()
        self._rung = trio.Event()
