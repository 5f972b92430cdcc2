"""Planted bugs of cancellation: what is lost between two steps, and what is kept by somebody who has left."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, emptied, ring, work


def interrupted_worker(*, fixed: bool = False) -> Program:
    """A worker is interrupted between taking a message and storing it."""

    async def main() -> None:
        to_worker, mailbox = trio.open_memory_channel[int](9)
        stored, turn = list[int](), trio.CancelScope()

        async def store(mail: int) -> None:
            await work(1)  # race: the interruption may come here
            stored.append(mail)

        async def worker() -> None:
            with turn:
                async for mail in mailbox:
                    with trio.CancelScope(shield=fixed):
                        await store(mail)

        async def sender() -> None:
            for number in range(4):
                await work(2)
                await to_worker.send(number)

        async def person() -> None:
            await work(11)
            turn.cancel()

        async with trio.open_nursery() as nursery:
            for task in (ring, worker, sender, person):
                nursery.start_soon(task)
        assert [*stored, *emptied(mailbox)] == [0, 1, 2, 3], "a message was lost in an interruption"

    return main


def tool_before_shield(*, fixed: bool = False) -> Program:
    """A tool must not be stopped half-way, and enters its shield one step after it began."""

    async def main() -> None:
        begun, ended = list[int](), list[int]()
        turn = trio.CancelScope()

        async def tool(number: int) -> None:
            begun.append(number)
            if not fixed:
                await work(1)  # race: the interruption may come here
            with trio.CancelScope(shield=True):
                await work(2)
                ended.append(number)

        async def thought() -> None:
            with turn:
                for number in range(3):
                    await work(4)
                    await tool(number)

        async def person() -> None:
            await work(23)
            turn.cancel()

        async with trio.open_nursery() as nursery:
            for task in (ring, thought, person):
                nursery.start_soon(task)
        assert begun == ended, "a tool was stopped half-way"

    return main


def permit_leak(*, fixed: bool = False) -> Program:
    """A worker is cancelled after it got its permit and before it promised to give it back."""

    async def main() -> None:
        permits, turn = trio.Semaphore(1), trio.CancelScope()

        async def impatient() -> None:
            with turn:
                if fixed:
                    async with permits:
                        await work(3)
                    return
                await permits.acquire()
                await work(1)  # race: cancelled here, the permit is lost
                try:
                    await work(2)
                finally:
                    permits.release()

        async def person() -> None:
            await work(9)
            turn.cancel()

        async def patient() -> None:
            await work(12)
            async with permits:
                await work(1)

        async with trio.open_nursery() as nursery:
            for task in (ring, impatient, person, patient):
                nursery.start_soon(task)

    return main


def waiter_left_in_line(*, fixed: bool = False) -> Program:
    """Somebody who waits in line is cancelled and stays in the line, and the resource is handed to nobody."""

    async def main() -> None:
        line, is_taken = list[trio.Event](), [False]
        turn = trio.CancelScope()

        async def take() -> None:
            if not is_taken[0]:
                is_taken[0] = True
                return
            mine = trio.Event()
            line.append(mine)
            try:
                await mine.wait()
            except trio.Cancelled:
                if fixed and mine in line:
                    line.remove(mine)
                elif fixed:
                    give_back()  # it was handed over in the moment of the cancellation
                raise

        def give_back() -> None:
            if line:
                line.pop(0).set()  # race: whoever is first in line may have left
            else:
                is_taken[0] = False

        async def use(steps: int) -> None:
            await take()
            try:
                await work(steps)
            finally:
                give_back()

        async def holder() -> None:
            await use(3)

        async def impatient() -> None:
            await work(1)
            with turn:
                await use(1)

        async def person() -> None:
            await work(8)
            turn.cancel()

        async def patient() -> None:
            await work(12)
            await use(1)

        async with trio.open_nursery() as nursery:
            for task in (ring, holder, impatient, person, patient):
                nursery.start_soon(task)

    return main


def connection_given_back_twice(*, fixed: bool = False) -> Program:
    """A query that runs out of time gives its connection back, and its caller does so too: two then share it."""

    async def main() -> None:
        pool, borrowed = ["connection"], list[str]()
        shared: list[str] = []

        async def query() -> None:
            connection = pool.pop()
            try:
                with trio.move_on_after(5) as limit:
                    await work(5)
                if limit.cancelled_caught and not fixed:
                    pool.append(connection)  # race: with the time the query takes
            finally:
                pool.append(connection)

        async def borrower(after: float) -> None:
            await trio.sleep(after)
            if pool:
                connection = pool.pop()
                if connection in borrowed:
                    shared.append(connection)
                borrowed.append(connection)
                await work(2)
                borrowed.remove(connection)
                pool.append(connection)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(query)
            nursery.start_soon(borrower, 20)
            nursery.start_soon(borrower, 20)
        assert not shared, "two share one connection"

    return main
