"""asyncstdlib, which is for any event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncstdlib
import trio

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_tee_with_a_lock_gives_everybody_everything() -> None:
    """tee(lock=): "to allow concurrent access", each of its iterators yields all items in order."""

    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await steps(1)
            yield number

    got = dict[str, list[int]]()

    async def collect(who: str, items: AsyncIterator[int]) -> None:
        got[who] = [item async for item in items]

    async with asyncstdlib.tee(numbers(), n=2, lock=trio.Lock()) as (left, right), trio.open_nursery() as nursery:
        nursery.start_soon(collect, "left", left)
        nursery.start_soon(collect, "right", right)
    assert got == {"left": [0, 1, 2], "right": [0, 1, 2]}


@explore(runs=RUNS, certify=Hold(1))
async def test_cached_property_with_a_lock_is_computed_once() -> None:
    """cached_property(lock type): "to enforce that the getter is executed at most once"."""
    computed = list[int]()

    class Page:
        @asyncstdlib.cached_property(trio.Lock)
        async def text(self) -> str:
            computed.append(1)
            await steps(2)
            return "text"

    page = Page()

    async def read() -> None:
        assert await page.text == "text"

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(read)
    assert computed == [1]


@explore(runs=RUNS, certify=Hold(1))
async def test_lru_cache_returns_what_the_function_returns() -> None:
    """lru_cache: concurrent calls may compute twice, and each gives the right value."""

    @asyncstdlib.lru_cache(maxsize=1)
    async def doubled(number: int) -> int:
        await steps(1)
        return 2 * number

    async def call(number: int) -> None:
        assert await doubled(number) == 2 * number

    async with trio.open_nursery() as nursery:
        for number in (1, 1, 2):
            nursery.start_soon(call, number)
