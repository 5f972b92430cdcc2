"""aiologic, whose locks are for threads and for tasks of any loop; here for tasks of trio."""

from __future__ import annotations

import aiologic
import trio

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_lock_is_held_by_one() -> None:
    """Lock: one owner, also when somebody in line is cancelled."""
    lock, inside = aiologic.Lock(), [0]
    gone = trio.CancelScope()

    async def take(scope: trio.CancelScope) -> None:
        with scope:
            async with lock:
                inside[0] += 1
                assert inside[0] == 1
                try:
                    await steps(2)
                finally:
                    inside[0] -= 1

    async with trio.open_nursery() as nursery:
        for scope in (trio.CancelScope(), gone, trio.CancelScope()):
            nursery.start_soon(take, scope)
        await steps(2)
        gone.cancel()


@explore(runs=RUNS, certify=Hold(1))
async def test_queue_loses_nothing_when_a_getter_is_cancelled() -> None:
    """SimpleQueue: each item is got by one."""
    queue, got = aiologic.SimpleQueue(), list[int]()
    gone, rest = trio.CancelScope(), trio.CancelScope()

    async def get(scope: trio.CancelScope) -> None:
        with scope:
            while True:
                got.append(await queue.async_get())
                if len(got) == 3:
                    rest.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get, gone)
        for number in range(3):
            await queue.async_put(number)
            await steps(1)
        gone.cancel()
        await steps(1)
        nursery.start_soon(get, rest)
    assert sorted(got) == [0, 1, 2]
