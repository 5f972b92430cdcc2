"""trio itself: its locks, channels, limits and nurseries."""

from __future__ import annotations

import trio

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_fifo_lock_serves_in_the_order_of_arrival() -> None:
    """StrictFIFOLock: who begins to wait first is served first, also when somebody in line is cancelled."""
    lock, line, served = trio.StrictFIFOLock(), list[str](), list[str]()
    gone = trio.CancelScope()

    async def take(who: str, scope: trio.CancelScope) -> None:
        with scope:
            line.append(who)
            async with lock:
                served.append(who)
                await steps(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, "a", trio.CancelScope())
        nursery.start_soon(take, "b", gone)
        nursery.start_soon(take, "c", trio.CancelScope())
        await steps(2)
        gone.cancel()
    assert served == [who for who in line if who in served]
    assert {"a", "c"} <= set(served)


@explore(runs=RUNS, certify=Hold(1))
async def test_semaphore_keeps_its_permits_when_waiters_are_cancelled() -> None:
    """Semaphore: never more inside than permits, and every permit is there in the end."""
    permits, inside, most = trio.Semaphore(2, max_value=2), [0], [0]
    gone = trio.CancelScope()

    async def use(scope: trio.CancelScope) -> None:
        with scope:
            async with permits:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                try:
                    await steps(2)
                finally:
                    inside[0] -= 1

    async with trio.open_nursery() as nursery:
        for scope in (trio.CancelScope(), gone, trio.CancelScope(), gone_too := trio.CancelScope()):
            nursery.start_soon(use, scope)
        await steps(3)
        gone.cancel()
        gone_too.cancel()
    assert most[0] <= 2
    assert permits.value == 2


@explore(runs=RUNS, certify=Hold(1))
async def test_channel_loses_nothing_when_a_receiver_is_cancelled() -> None:
    """open_memory_channel: cancelled means not received; each value goes to exactly one receiver, in order."""
    sender, receiver = trio.open_memory_channel[int](1)
    got = list[int]()
    gone = trio.CancelScope()

    async def send() -> None:
        async with sender:
            for number in range(4):
                await sender.send(number)

    async def receive(scope: trio.CancelScope) -> None:
        with scope:
            async for number in receiver.clone():
                got.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive, gone)
        nursery.start_soon(receive, trio.CancelScope())
        nursery.start_soon(send)
        await steps(3)
        gone.cancel()
    assert sorted(got) == [0, 1, 2, 3]


@explore(runs=RUNS, certify=Hold(1))
async def test_condition_passes_no_notification_to_the_dead() -> None:
    """Condition.notify wakes one who waits, also when another who waits is cancelled just then."""
    changed, waiting = trio.Condition(), [0]
    ready, woken = trio.Event(), trio.Event()
    gone, rest = trio.CancelScope(), trio.CancelScope()

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            async with changed:
                waiting[0] += 1
                if waiting[0] == 2:
                    ready.set()
                await changed.wait()
                woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, gone)
        nursery.start_soon(wait, rest)
        await ready.wait()
        async with changed:
            changed.notify(1)
        gone.cancel()
        await woken.wait()
        rest.cancel()


@explore(runs=RUNS, certify=Hold(1))
async def test_limiter_grants_what_it_has_gained() -> None:
    """CapacityLimiter: a higher total lets as many waiters in as there are new tokens."""
    limiter, inside, most = trio.CapacityLimiter(1), [0], [0]
    leave, full = trio.Event(), trio.Event()

    async def borrow() -> None:
        async with limiter:
            inside[0] += 1
            if inside[0] == 3:
                full.set()
            most[0] = max(most[0], inside[0])
            assert inside[0] <= limiter.total_tokens
            await leave.wait()
            inside[0] -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(borrow)
        await steps(2)
        limiter.total_tokens = 3
        await full.wait()
        leave.set()
    assert limiter.borrowed_tokens == 0
