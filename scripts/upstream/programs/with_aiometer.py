"""aiometer: many calls, not too many at once."""

from __future__ import annotations

from functools import partial

import aiometer

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_no_more_at_once_than_allowed() -> None:
    """run_all(max_at_once=2): never three inside, and the results stand in the order of the calls."""
    inside, most = [0], [0]

    async def call(number: int) -> int:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        await steps(2)
        inside[0] -= 1
        return number

    results = await aiometer.run_all([partial(call, number) for number in range(4)], max_at_once=2)
    assert results == [0, 1, 2, 3]
    assert most[0] <= 2


@explore(runs=RUNS, certify=Hold(1))
async def test_amap_gives_every_result_once() -> None:
    """amap: each result once, in whatever order, and the iteration ends."""

    async def call(number: int) -> int:
        await steps(number)
        return number

    async with aiometer.amap(call, [2, 0, 1], max_at_once=2) as results:
        got = [result async for result in results]
    assert sorted(got) == [0, 1, 2]


@explore(runs=RUNS, certify=Hold(1))
async def test_run_any_returns_and_stops_the_others() -> None:
    """run_any: "return the first result", and nothing goes on after it."""
    running = [0]

    async def call(number: int) -> int:
        running[0] += 1
        try:
            await steps(number)
            return number
        finally:
            running[0] -= 1

    first = await aiometer.run_any([partial(call, number) for number in (1, 2)])
    assert first in (1, 2)
    assert running[0] == 0
