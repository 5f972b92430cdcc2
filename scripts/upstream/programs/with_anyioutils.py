"""anyioutils: queues, futures, and a lock for each resource."""

from __future__ import annotations

import anyio
from anyioutils import Event, Future, Queue, ResourceLock

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_resource_lock_is_held_by_one() -> None:
    """ResourceLock: "ensures that accesses cannot be done concurrently on the same resource"."""
    lock, inside = ResourceLock(), [0]

    async def access(after: int) -> None:
        await steps(after)
        async with lock("file"):
            inside[0] += 1
            assert inside[0] == 1, "two access one resource"
            await steps(2)
            inside[0] -= 1

    async with anyio.create_task_group() as tasks:
        for after in (0, 1, 4):
            tasks.start_soon(access, after)


@explore(runs=RUNS, certify=Hold(1))
async def test_queue_loses_nothing_when_a_getter_is_cancelled() -> None:
    """Queue: what was put is got, once, and a get that is cancelled takes nothing."""
    queue, got = Queue[int](1), list[int]()
    gone, rest = anyio.CancelScope(), anyio.CancelScope()

    async def put() -> None:
        for number in range(4):
            await queue.put(number)

    async def get(scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                got.append(await queue.get())
                if len(got) == 4:
                    rest.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(get, gone)
        tasks.start_soon(put)
        await steps(3)
        gone.cancel()
        await steps(1)
        tasks.start_soon(get, rest)
    assert sorted(got) == [0, 1, 2, 3]


@explore(runs=RUNS, certify=Hold(1))
async def test_future_gives_everybody_the_same_result() -> None:
    """Future: "can be awaited multiple times and the result is same"."""
    future, got = Future[int](), list[int | None]()

    async def wait() -> None:
        got.append(await future.wait())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await steps(2)
        future.set_result(7)
    assert got == [7, 7, 7]


@explore(runs=RUNS, certify=Hold(1))
async def test_event_awakens_all_who_wait() -> None:
    """Event.set: "all tasks waiting for event to be set will be immediately awakened", also when it is cleared then."""
    event, woken = Event(), list[int]()

    async def wait(number: int) -> None:
        await event.wait()
        woken.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(2):
            tasks.start_soon(wait, number)
        await anyio.wait_all_tasks_blocked()
        event.set()
        event.clear()
    assert sorted(woken) == [0, 1]
