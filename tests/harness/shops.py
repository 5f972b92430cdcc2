"""Programs for the front doors of the harness: found by name, in this file and in fresh processes."""

from __future__ import annotations

from hashlib import sha256

import anyio
import trio
from hypothesis import strategies as st

from kesoku_actors.harness import Hold, explore
from kesoku_actors.harness.world import World

_LEFT_OVER: list[int] = []


@explore(runs=200)
async def sold_twice() -> None:
    stock, sold = {"pear": 1}, list[str]()

    async def buy(who: str) -> None:
        if stock["pear"] > 0:
            await trio.lowlevel.checkpoint()  # the bank
            stock["pear"] -= 1
            sold.append(who)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(buy, "ann")
        nursery.start_soon(buy, "bob")
    assert len(sold) == 1, "sold twice"


@explore(runs=60, certify=Hold(1))
async def sold_once() -> None:
    stock, lock = {"pear": 1}, trio.Lock()
    sold: list[str] = []

    async def buy(who: str) -> None:
        async with lock:
            if stock["pear"] > 0:
                await trio.lowlevel.checkpoint()
                stock["pear"] -= 1
                sold.append(who)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(buy, "ann")
        nursery.start_soon(buy, "bob")
    assert len(sold) == 1, "sold twice"


@explore(runs=400, examples=15)
async def sums(amounts=st.lists(st.integers(1, 100), max_size=5)) -> None:  # noqa: B008
    total = 0

    async def add(amount: int) -> None:
        nonlocal total
        seen = total
        await trio.lowlevel.checkpoint()
        total = seen + amount

    async with trio.open_nursery() as nursery:
        for amount in amounts:
            nursery.start_soon(add, amount)
    assert total == sum(amounts), "an amount was lost"


@explore(runs=60)
async def through_anyio() -> None:
    ready, seen = anyio.Event(), list[str]()

    async def waits() -> None:
        await ready.wait()
        seen.append("waited")

    async with anyio.create_task_group() as group:
        group.start_soon(waits)
        await anyio.sleep(1)
        ready.set()
    assert seen == ["waited"]


@explore(runs=60)
async def leaks() -> None:
    _LEFT_OVER.append(1)
    await trio.lowlevel.checkpoint()
    assert len(_LEFT_OVER) < 9, "something is left over"


@explore(runs=200, may_tick=False)
async def crossed() -> None:
    first, second = trio.Lock(), trio.Lock()

    async def both(one: trio.Lock, other: trio.Lock) -> None:
        async with one, other:
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, first, second)
        nursery.start_soon(both, second, first)


async def main() -> None:
    await trio.sleep(1)


@explore(runs=400, examples=6)
async def counted(world: World, amounts=st.lists(st.integers(1, 100), min_size=1, max_size=3)) -> None:  # noqa: B008
    total = 0

    async def add(amount: int) -> None:
        nonlocal total
        if world.fault("late"):
            await trio.lowlevel.checkpoint()
        total += amount

    async with trio.open_nursery() as nursery:
        for amount in amounts:
            nursery.start_soon(add, amount)
    assert total == sum(amounts), "an amount was lost"


@explore(runs=20, examples=3)
async def long_order(words=st.just([sha256(bytes([at])).hexdigest() for at in range(100)])) -> None:  # noqa: B008
    await trio.lowlevel.checkpoint()
    assert len(words) < 100, "the order is long"
