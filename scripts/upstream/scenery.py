"""What the programs share: steps to take, and how much of each is explored."""

from __future__ import annotations

from typing import Final

import trio

RUNS: Final = 400
"""Schedules of each, besides all with at most one hold or tick."""


async def steps(count: int) -> None:
    """Take so many steps; others may run at each."""
    for _ in range(count):
        await trio.lowlevel.checkpoint()
