"""aioresult: the results of tasks."""

from __future__ import annotations

import trio
from aioresult import Future, ResultCapture, results_to_channel, wait_any

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_wait_any_returns_one_that_is_done() -> None:
    """wait_any: what it returns is done, and it returns when one is."""

    async def give(number: int) -> int:
        await steps(number)
        return number

    async with trio.open_nursery() as nursery:
        results = [ResultCapture.start_soon(nursery, give, number) for number in (1, 2)]
        first = await wait_any(results)
        assert first.is_done()
        assert first.result() in (1, 2)


@explore(runs=RUNS, certify=Hold(1))
async def test_results_reach_the_channel_each_once() -> None:
    """results_to_channel: every result is sent once, and the channel is closed at the end."""

    async def give(number: int) -> int:
        await steps(number)
        return number

    sender, receiver = trio.open_memory_channel[ResultCapture[int]](1)
    async with trio.open_nursery() as nursery:
        results = [ResultCapture.start_soon(nursery, give, number) for number in (1, 2, 1)]
        nursery.start_soon(results_to_channel, results, sender)
        got = [result.result() async for result in receiver]
    assert sorted(got) == [1, 1, 2]


@explore(runs=RUNS, certify=Hold(1))
async def test_future_wakes_everybody_who_waits() -> None:
    """Future: all who wait get what was set, whoever of them is cancelled."""
    future, got = Future[int](), list[int]()
    gone = trio.CancelScope()

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            await future.wait_done()
            got.append(future.result())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, gone)
        nursery.start_soon(wait, trio.CancelScope())
        await steps(1)
        gone.cancel()
        future.set_result(7)
    assert got in ([7], [7, 7])
