"""Waiting out the faults of a journal: a store may restart under a running tool, whose outcome waits for it (C9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

import trio

from kesoku_actors.errors import Fault

T = TypeVar("T")

_FIRST_DELAY_S: Final = 0.05
_LONGEST_DELAY_S: Final = 2.0


def delays() -> Iterator[float]:
    """Seconds between tries, without an end."""
    delay_s = _FIRST_DELAY_S
    while True:
        yield delay_s
        delay_s = min(2 * delay_s, _LONGEST_DELAY_S)


async def until_it_stands(record: Callable[[], Awaitable[T]]) -> T:
    """Call `record`, safe to repeat, until the journal takes it; return what it says."""
    for delay_s in delays():
        try:
            return await record()
        except Fault:
            await trio.sleep(delay_s)
    raise AssertionError("the delays have no end")
