"""How long the event loop stands still while something goes on, held against 50 ms.

A task on the loop asks to be woken every two milliseconds; how late it is then is how long everybody waits. Wall time:
what else runs on the machine counts too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Final

import trio

from scripts.bench.children import run_child
from scripts.bench.report import Row, row

ROUNDS: Final = 5
BOUND_S: Final = 0.05
_EVERY_S: Final = 0.002


async def longest_stall(work: Callable[[], Awaitable[object]]) -> float:
    """Do it, and return how long the loop stood still at most meanwhile, in seconds."""
    longest = 0.0

    async def probe() -> None:
        nonlocal longest
        while True:
            asked_at = perf_counter()
            await trio.sleep(_EVERY_S)
            longest = max(longest, perf_counter() - asked_at - _EVERY_S)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(probe)
        await trio.sleep(10 * _EVERY_S)
        longest = 0.0
        await work()
        await trio.sleep(10 * _EVERY_S)
        nursery.cancel_scope.cancel()
    return longest


def stall_rows(goal: int, told: str, module: str, names: Iterable[str]) -> list[Row]:
    """Measure each name by the function `stall` of that module, which prints seconds; a process for each round."""
    script = "from scripts.bench.{} import stall; stall({!r})"
    return [
        row(
            goal,
            f"{told.format(name)} / 50 ms",
            limit=1.0,
            ours=[float(run_child("-c", script.format(module, name)).said) for _ in range(ROUNDS)],
            floor=[BOUND_S] * ROUNDS,
        )
        for name in names
    ]
