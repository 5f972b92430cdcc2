"""tricycle: its readers-writer lock and its service nursery."""

from __future__ import annotations

import trio
from tricycle import RWLock, open_service_nursery
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_rwlock_has_one_writer_or_many_readers() -> None:
    """RWLock: "may be held by one writer and no readers, by many readers and no writer, or by no one"."""
    lock, readers, writers = RWLock(), [0], [0]
    gone = trio.CancelScope()

    async def write(scope: trio.CancelScope) -> None:
        with scope:
            async with lock.write_locked():
                writers[0] += 1
                assert (readers[0], writers[0]) == (0, 1)
                try:
                    await steps(1)
                finally:
                    writers[0] -= 1

    async def read() -> None:
        async with lock.read_locked():
            readers[0] += 1
            assert not writers[0]
            await steps(2)
            readers[0] -= 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(write, gone)
        nursery.start_soon(read)
        nursery.start_soon(write, trio.CancelScope())
        await steps(2)
        gone.cancel()


@explore(runs=RUNS, certify=Hold(1))
async def test_rwlock_stays_exclusive_when_it_becomes_read_biased() -> None:
    """RWLock.read_biased: set to True it "will immediately wake up all waiting readers to grant them the lock if it is
    currently readers-held": while a writer holds it, nobody may come in.
    """
    lock, writes = RWLock(), [False]

    async def write() -> None:
        async with lock.write_locked():
            writes[0] = True
            await steps(2)
            writes[0] = False

    async def read() -> None:
        async with lock.read_locked():
            assert not writes[0], "a reader is in while a writer is"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        nursery.start_soon(read)
        await steps(1)
        lock.read_biased = True


@explore(runs=RUNS, certify=Hold(1))
async def test_rwlock_is_fair_after_a_writer_in_line_was_cancelled() -> None:
    """RWLock: "if task A tried to acquire the lock before task B did, task B won't get it first"."""
    lock, served = RWLock(), list[str]()
    gone, leave = trio.CancelScope(), trio.Event()

    async def hold() -> None:
        async with lock.read_locked():
            await leave.wait()

    async def write() -> None:
        with gone:
            async with lock.write_locked():
                raise AssertionError("it was cancelled in line")

    async def read(who: str) -> None:
        await lock.acquire_read()
        served.append(who)
        lock.release()

    async with trio.open_nursery() as nursery:
        for task in (hold, write):
            nursery.start_soon(task)
            await wait_all_tasks_blocked()
        nursery.start_soon(read, "early")
        await wait_all_tasks_blocked()
        gone.cancel()
        nursery.start_soon(read, "late")
        await wait_all_tasks_blocked()
        leave.set()
    assert served == ["early", "late"], "who came later was served first"


@explore(runs=RUNS, certify=Hold(1))
async def test_service_nursery_outlives_its_body() -> None:
    """open_service_nursery: the body is cancelled first; no child before the body has been left."""
    ended = list[str]()
    everything = trio.CancelScope()

    async def serve() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("service")

    async def use() -> None:
        with everything:
            async with open_service_nursery() as nursery:
                nursery.start_soon(serve)
                await steps(1)
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.CancelScope(shield=True):
                        await steps(2)
                    ended.append("body")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        await steps(4)
        everything.cancel()
    if "body" in ended:
        assert ended[0] == "body", "the service ended before its user"
