"""culsans, a queue with a face for threads and one for tasks; here for tasks of trio."""

from __future__ import annotations

import culsans
import trio

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_queue_loses_nothing_when_a_getter_is_cancelled() -> None:
    """Queue.async_q: what was put is got, once, whoever gives up waiting; `join` ends."""
    queue, got = culsans.Queue[int](1), list[int]()
    mine = queue.async_q
    gone, rest = trio.CancelScope(), trio.CancelScope()

    async def put() -> None:
        for number in range(3):
            await mine.put(number)

    async def get(scope: trio.CancelScope) -> None:
        with scope:
            while True:
                got.append(await mine.get())
                mine.task_done()
                if len(got) == 3:
                    rest.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get, gone)
        nursery.start_soon(put)
        await steps(3)
        gone.cancel()
        await steps(1)
        nursery.start_soon(get, rest)
        await mine.join()
    assert sorted(got) == [0, 1, 2]


@explore(runs=RUNS, certify=Hold(1))
async def test_a_queue_that_grows_wakes_who_waits() -> None:
    """maxsize: "if it increases (growing), the required number of waiting putters will be woken up"."""
    queue = culsans.Queue[int](1)
    mine = queue.async_q
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(mine.put, number)
        await steps(2)
        mine.maxsize = 3
    assert mine.qsize() == 3
