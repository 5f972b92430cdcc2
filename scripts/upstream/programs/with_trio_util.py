"""trio-util: values and events that can be waited for."""

from __future__ import annotations

import trio
from trio_util import AsyncValue, RepeatedEvent, trio_async_generator

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_eventual_values_end_with_the_last_one() -> None:
    """AsyncValue.eventual_values: values may be missed, the last one never."""
    value, seen = AsyncValue(0), list[int]()

    async def watch() -> None:
        async for one in value.eventual_values():
            seen.append(one)
            await steps(2)
            if one == 3:
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        for number in (1, 2, 3):
            await steps(1)
            value.value = number
    assert seen[-1] == 3


@explore(runs=RUNS, certify=Hold(1))
async def test_a_wait_returns_the_value_that_ended_it() -> None:
    """AsyncValue: "the specific value that triggered the wakeup is always returned"."""
    value, got = AsyncValue(0), list[int]()

    def is_large(number: int) -> bool:
        return number >= 10

    async def wait() -> None:
        got.append(await value.wait_value(is_large))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await steps(2)
        value.value = 10
        value.value = 5
        await steps(2)
        value.value = 12
    assert all(is_large(one) for one in got)
    assert len(got) == 1


@explore(runs=RUNS, certify=Hold(1))
async def test_events_tell_of_the_latest_state() -> None:
    """RepeatedEvent.events: "you're ensured to eventually receive an event to process the most recent state"."""
    event, items, stored = RepeatedEvent(), list[int](), list[int]()
    listening, complete, life = trio.Event(), trio.Event(), trio.CancelScope()

    async def store() -> None:
        with life:
            async for _ in event.events(repeat_last=True):
                listening.set()
                copy = list(items)
                await steps(2)
                stored[:] = copy
                if len(copy) == 3:
                    complete.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store)
        await listening.wait()
        for number in range(3):
            items.append(number)
            event.set()
            await steps(1)
        await complete.wait()
        life.cancel()
    assert stored == items


@explore(runs=RUNS, certify=Hold(1))
async def test_generator_in_a_task_gives_every_value_once() -> None:
    """trio_async_generator: the values of the generator, in order, and its cleanup is run."""
    cleaned = list[bool]()

    @trio_async_generator
    async def numbers():  # type: ignore[no-untyped-def]  # the decorator is not typed
        try:
            async with trio.open_nursery():
                for number in range(4):
                    await steps(1)
                    yield number
        finally:
            cleaned.append(True)

    got = list[int]()
    async with numbers() as values:
        async for number in values:
            got.append(number)
            if number == 2:
                break
    assert got == [0, 1, 2]
    assert cleaned
