"""anyio on trio: streams, locks, limits, and what its functools cache."""

from __future__ import annotations

import anyio
from anyio.functools import lru_cache

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_memory_stream_loses_nothing_when_a_receiver_is_cancelled() -> None:
    """Memory object streams: each item goes to exactly one receiver; one that is cancelled takes none along."""
    sender, receiver = anyio.create_memory_object_stream[int](1)
    got = list[int]()
    gone = anyio.CancelScope()

    async def send() -> None:
        async with sender:
            for number in range(4):
                await sender.send(number)

    async def receive(scope: anyio.CancelScope) -> None:
        with scope:
            async with receiver.clone() as mine:
                async for number in mine:
                    got.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, gone)
        tasks.start_soon(receive, anyio.CancelScope())
        tasks.start_soon(send)
        await steps(3)
        gone.cancel()
    receiver.close()
    assert sorted(got) == [0, 1, 2, 3]


@explore(runs=RUNS, certify=Hold(1))
async def test_memory_stream_without_a_buffer_hands_over() -> None:
    """A stream of size 0: what `send` returned from has been received, also when receivers are cancelled."""
    sender, receiver = anyio.create_memory_object_stream[int](0)
    got, sent = list[int](), list[int]()
    gone = anyio.CancelScope()

    async def send() -> None:
        async with sender:
            for number in range(3):
                await sender.send(number)
                sent.append(number)

    async def receive(scope: anyio.CancelScope) -> None:
        with scope:
            async with receiver.clone() as mine:
                async for number in mine:
                    got.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, gone)
        tasks.start_soon(receive, anyio.CancelScope())
        tasks.start_soon(send)
        await steps(4)
        gone.cancel()
    receiver.close()
    assert sorted(got) == sent


@explore(runs=RUNS, certify=Hold(1))
async def test_semaphore_keeps_its_permits_when_waiters_are_cancelled() -> None:
    """Semaphore: never more inside than its value, and all of it is back in the end."""
    permits, inside, most = anyio.Semaphore(1, max_value=1), [0], [0]
    gone = anyio.CancelScope()

    async def use(scope: anyio.CancelScope) -> None:
        with scope:
            async with permits:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                try:
                    await steps(2)
                finally:
                    inside[0] -= 1

    async with anyio.create_task_group() as tasks:
        for scope in (anyio.CancelScope(), gone, anyio.CancelScope()):
            tasks.start_soon(use, scope)
        await steps(3)
        gone.cancel()
    assert most[0] == 1
    assert permits.value == 1


@explore(runs=RUNS, certify=Hold(1))
async def test_condition_hands_on_the_notification_of_a_cancelled_waiter() -> None:
    """Condition: exactly n listeners are notified; one that is cancelled does not keep its notification."""
    changed, waiting = anyio.Condition(), [0]
    ready, woken = anyio.Event(), anyio.Event()
    gone, rest = anyio.CancelScope(), anyio.CancelScope()

    async def wait(scope: anyio.CancelScope) -> None:
        with scope:
            async with changed:
                waiting[0] += 1
                if waiting[0] == 2:
                    ready.set()
                await changed.wait()
                woken.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, gone)
        tasks.start_soon(wait, rest)
        await ready.wait()
        async with changed:
            changed.notify(1)
        gone.cancel()
        await woken.wait()
        rest.cancel()


@explore(runs=RUNS, certify=Hold(1))
async def test_lock_is_held_by_one() -> None:
    """Lock: one owner, also when somebody in line is cancelled."""
    lock, inside = anyio.Lock(), [0]
    gone = anyio.CancelScope()

    async def take(scope: anyio.CancelScope) -> None:
        with scope:
            async with lock:
                inside[0] += 1
                assert inside[0] == 1
                try:
                    await steps(2)
                finally:
                    inside[0] -= 1

    async with anyio.create_task_group() as tasks:
        for scope in (anyio.CancelScope(), gone, anyio.CancelScope()):
            tasks.start_soon(take, scope)
        await steps(2)
        gone.cancel()
    assert not lock.locked()


@explore(runs=RUNS, certify=Hold(1))
async def test_lru_cache_returns_what_the_function_returns() -> None:
    """lru_cache, "an asynchronous version of functools.lru_cache": a call gives what the function gives."""

    @lru_cache(maxsize=1)
    async def doubled(number: int) -> int:
        await steps(1)
        return 2 * number

    async def call(number: int) -> None:
        assert await doubled(number) == 2 * number

    async with anyio.create_task_group() as tasks:
        for number in (1, 1, 2):
            tasks.start_soon(call, number)


@explore(runs=RUNS, certify=Hold(1))
async def test_lru_cache_holds_no_more_than_its_size() -> None:
    """lru_cache: of `maxsize` values the oldest go; what is asked for again and was let go is computed again."""
    computed = list[int]()

    @lru_cache(maxsize=1)
    async def doubled(number: int) -> int:
        computed.append(number)
        await steps(1)
        return 2 * number

    async with anyio.create_task_group() as tasks:
        for number in (1, 2):
            tasks.start_soon(doubled, number)
    before = len(computed)
    for number in (1, 2):
        await doubled(number)
    assert len(computed) > before, "two values are kept where there is room for one"
