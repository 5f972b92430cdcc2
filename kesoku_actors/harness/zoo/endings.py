"""Planted bugs of ends: termination, shutdown, and references to what is no longer there."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, ring, work


def last_one_out(*, fixed: bool = False) -> Program:
    """The worker that finds no more jobs closes the results, while another still has one in hand."""

    async def main() -> None:
        jobs = ["first", "second"]
        to_main, results = trio.open_memory_channel[str](9)

        async def worker(out: trio.MemorySendChannel[str]) -> None:
            while jobs:
                job = jobs.pop(0)
                await work(4)
                await out.send(job)
            out.close()  # race: the sibling may still have something to send

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            for _ in range(2):
                nursery.start_soon(worker, to_main.clone() if fixed else to_main)
        assert results.statistics().current_buffer_used == 2

    return main


def quiet_means_done(*, fixed: bool = False) -> Program:
    """A detector takes empty queues and idle workers for the end, when a task is between queue and worker."""

    async def main() -> None:
        queue, handled = [2], list[int]()
        busy, declared = [0], list[int]()

        async def worker() -> None:
            for _ in range(4):
                await work(1)
                if not queue:
                    continue
                task = queue.pop()
                if not fixed:
                    await work(1)  # race: the task is in no queue, and nobody is busy
                busy[0] += 1
                await work(1)
                if task:
                    queue.append(task - 1)
                handled.append(task)
                busy[0] -= 1

        async def detector() -> None:
            await work(8)
            if not queue and not busy[0]:
                declared.append(len(handled))

        async with trio.open_nursery() as nursery:
            for task in (ring, worker, worker, detector):
                nursery.start_soon(task)
        assert not declared or declared == [len(handled)], "the end was declared while a task was under way"

    return main


def reader_left(*, fixed: bool = False) -> Program:
    """A reader is interrupted and closes its mailbox, and the sender does not know that this may happen."""

    async def main() -> None:
        to_reader, mailbox = trio.open_memory_channel[int](0)
        reading = trio.CancelScope()

        async def reader() -> None:
            with reading:
                async with mailbox:
                    async for _ in mailbox:
                        await work(1)

        async def sender() -> None:
            async with to_reader:
                for number in range(3):
                    await work(1)
                    try:
                        await to_reader.send(number)  # race: with the reader's leaving
                    except trio.BrokenResourceError:
                        if not fixed:
                            raise
                        return

        async def person() -> None:
            await work(17)
            reading.cancel()

        async with trio.open_nursery() as nursery:
            for task in (ring, reader, sender, person):
                nursery.start_soon(task)

    return main


def grace_instead_of_join(*, fixed: bool = False) -> Program:
    """At shutdown the log is closed after a second, which was always enough for the last words of the worker."""

    async def main() -> None:
        to_log, log = trio.open_memory_channel[str](9)
        stop, has_ended = trio.Event(), trio.Event()

        async def worker() -> None:
            await stop.wait()
            await work(4)
            await to_log.send("the last words")  # race: with the second
            has_ended.set()

        async def shutdown() -> None:
            stop.set()
            if fixed:
                await has_ended.wait()
            else:
                await trio.sleep(1)
            to_log.close()

        async with trio.open_nursery() as nursery:
            for task in (worker, shutdown):
                nursery.start_soon(task)
        assert log.statistics().current_buffer_used == 1

    return main


def accepted_after_drain(*, fixed: bool = False) -> Program:
    """A shutdown handles what is queued and then shuts the door; what came in between nobody handles."""

    async def main() -> None:
        queue, accepted, handled = list[int](), list[int](), list[int]()
        is_open = [True]

        async def door() -> None:
            for number in range(3):
                await work(2)
                if is_open[0]:
                    queue.append(number)  # race: the queue may have been emptied for the last time
                    accepted.append(number)

        async def shutdown() -> None:
            await work(10)
            if fixed:
                is_open[0] = False
            while queue:
                handled.append(queue.pop(0))
                await work(1)
            await work(2)
            is_open[0] = False

        async with trio.open_nursery() as nursery:
            for task in (ring, door, shutdown):
                nursery.start_soon(task)
        assert handled == accepted, "what was accepted was never handled"

    return main


def evicted_session(*, fixed: bool = False) -> Program:
    """A door looks a session up, takes its time, and gives the message to a session that was evicted meanwhile."""

    async def main() -> None:
        sessions: dict[str, list[int]] = {"s": []}
        stored: list[int] = []

        async def door() -> None:
            for number in range(3):
                session = sessions.setdefault("s", [])
                await work(1)  # race: the session may be evicted
                if fixed:
                    session = sessions.setdefault("s", [])
                session.append(number)

        async def evictor() -> None:
            await work(9)
            stored.extend(sessions.pop("s"))

        async with trio.open_nursery() as nursery:
            for task in (ring, door, evictor):
                nursery.start_soon(task)
        stored.extend(sessions.get("s", []))
        assert stored == [0, 1, 2], "a message was given to an evicted session"

    return main


def reused_slot(*, fixed: bool = False) -> Program:
    """A person stops the job in slot 0; until the yes comes, another job has taken the slot."""

    async def main() -> None:
        slots: dict[int, tuple[str, trio.CancelScope]] = {}
        finished: list[str] = []

        async def jobs() -> None:
            for name in ("first", "second"):
                with trio.CancelScope() as scope:
                    slots[0] = (name, scope)  # race: a person may have chosen what was here before
                    await work(9)
                    finished.append(name)

        async def person() -> None:
            await work(2)
            name, chosen = slots.get(0, ("none", trio.CancelScope()))
            if name != "first":
                return
            await work(3)
            (chosen if fixed else slots[0][1]).cancel()

        async with trio.open_nursery() as nursery:
            for task in (jobs, person):
                nursery.start_soon(task)
        assert "second" in finished, "another job was stopped than the person chose"

    return main


def subscriber_left(*, fixed: bool = False) -> Program:
    """A publisher walks through the subscribers, waits at each, and one of them leaves meanwhile."""

    async def main() -> None:
        ways = {name: trio.open_memory_channel[str](1) for name in "abc"}
        subscribers = {name: way[0] for name, way in ways.items()}

        async def publisher() -> None:
            for mailbox in list(subscribers.values()) if fixed else subscribers.values():
                await mailbox.send("news")  # race: while it is sent, a subscriber may leave

        async def subscriber() -> None:
            await work(5)
            del subscribers["b"]

        async with trio.open_nursery() as nursery:
            for task in (ring, publisher, subscriber):
                nursery.start_soon(task)

    return main
