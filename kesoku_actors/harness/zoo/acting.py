"""Planted bugs of acting on what was so a moment ago: checks, duplicates, and timers."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, ring, work


def two_doors(*, fixed: bool = False) -> Program:
    """Two front doors open one session at once, and each starts an actor for it."""

    async def main() -> None:
        sessions, turn = dict[str, int](), trio.Lock()
        started: list[int] = []

        async def open_session(door: int) -> None:
            if "s" not in sessions:
                await work(2)  # race: another door may be here already
                sessions["s"] = door
                started.append(door)

        async def door(number: int, after: int) -> None:
            await work(after)
            if fixed:
                async with turn:
                    await open_session(number)
            else:
                await open_session(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(door, 1, 1)
            nursery.start_soon(door, 2, 15)
        assert len(started) == 1, "two actors for one session"

    return main


def stale_cache(*, fixed: bool = False) -> Program:
    """A reader loads a value, a writer changes it and clears the cache, and the reader caches the old one."""

    async def main() -> None:
        table, cache, version = {"name": "old"}, dict[str, str](), [0]

        async def reader() -> None:
            seen = version[0]
            value = table["name"]
            await work(3)  # race: the value may change, and the cache be cleared
            if not fixed or seen == version[0]:
                cache["name"] = value

        async def writer() -> None:
            await work(7)
            table["name"] = "new"
            version[0] += 1
            cache.pop("name", None)

        async with trio.open_nursery() as nursery:
            for task in (ring, reader, writer):
                nursery.start_soon(task)
        assert cache.get("name", "new") == "new", "an old value stays in the cache"

    return main


def overdrawn(*, fixed: bool = False) -> Program:
    """A turn looks whether the purse has enough, asks the model, and pays afterwards; so does another one."""

    async def main() -> None:
        purse, lowest = [10], [10]

        def pay(sum_: int) -> None:
            purse[0] -= sum_
            lowest[0] = min(lowest[0], purse[0])

        async def turn(after: int) -> None:
            await work(after)
            if purse[0] < 6:
                return
            if fixed:
                pay(6)
            await work(3)  # race: the other turn may spend the same money
            if not fixed:
                pay(6)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(turn, 0)
            nursery.start_soon(turn, 9)
        assert lowest[0] >= 0, "the purse was overdrawn"

    return main


def seen_too_late(*, fixed: bool = False) -> Program:
    """A message that is sent again is known by its number only when the first delivery has come to its end."""

    async def main() -> None:
        seen, applied = set[int](), list[int]()
        applied_once = trio.Event()

        async def deliver(number: int) -> None:
            if number in seen:
                return
            if fixed:
                seen.add(number)
            await work(4)  # race: the same message may come again
            seen.add(number)
            applied.append(number)
            applied_once.set()

        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(deliver, 7)
                with trio.move_on_after(5):
                    await applied_once.wait()
                    break
        assert applied == [7], "a message was applied twice"

    return main


def ack_before_store(*, fixed: bool = False) -> Program:
    """A receiver acknowledges before it stores; it is stopped in between, and the sender has forgotten."""

    async def main() -> None:
        to_receiver, mailbox = trio.open_memory_channel[int](9)
        outbox, stored = {0, 1, 2}, set[int]()
        life = trio.CancelScope()

        async def receiver() -> None:
            with life:
                async for number in mailbox:
                    await work(1)
                    if fixed:
                        stored.add(number)
                    outbox.discard(number)
                    await work(1)  # race: the stop may come here
                    stored.add(number)

        async def stopper() -> None:
            await work(17)
            life.cancel()

        for number in sorted(outbox):
            to_receiver.send_nowait(number)
        to_receiver.close()
        async with trio.open_nursery() as nursery:
            for task in (ring, receiver, stopper):
                nursery.start_soon(task)
        assert outbox | stored == {0, 1, 2}, "acknowledged, and neither stored nor sent again"

    return main


def lease_ran_out(*, fixed: bool = False) -> Program:
    """A worker sees that its lease is good, and writes its result when the next one has the lease already."""

    async def main() -> None:
        results: list[str] = []

        async def first() -> None:
            await work(2)
            if trio.current_time() < 5:
                if not fixed:
                    await work(1)  # race: the lease may run out
                results.append("first")

        async def second() -> None:
            await trio.sleep(5)
            await work(2)
            if not results:
                results.append("second")

        async with trio.open_nursery() as nursery:
            for task in (ring, first, second):
                nursery.start_soon(task)
        assert len(results) == 1, "one job was done by two"

    return main


def late_result(*, fixed: bool = False) -> Program:
    """A job is run again when its result does not come in time, and the result comes just then."""

    async def main() -> None:
        runs: list[int] = []
        reply, result = trio.open_memory_channel[str](2)

        async def job(number: int) -> None:
            runs.append(number)
            await work(6)
            await reply.send("done")

        async def caller(nursery: trio.Nursery) -> None:
            for number in range(2):
                nursery.start_soon(job, number)
                with trio.move_on_after(5):  # race: with the result
                    await result.receive()
                    return
                if fixed:
                    await result.receive()
                    return

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(caller, nursery)
        assert len(runs) == 1, "the job ran twice"

    return main


def renewed_and_reaped(*, fixed: bool = False) -> Program:
    """A reaper finds a lease run out, and takes it away although it is renewed in the same moment."""

    async def main() -> None:
        runs_out, reaped_at = [5.0], list[float]()

        async def holder() -> None:
            await trio.sleep(5)
            await work(1)
            if not reaped_at:
                runs_out[0] = trio.current_time() + 5  # race: with what the reaper saw

        async def reaper() -> None:
            await trio.sleep(5)
            is_over = runs_out[0] <= trio.current_time()
            await work(1)
            if fixed:
                is_over = runs_out[0] <= trio.current_time()
            if is_over:
                reaped_at.append(trio.current_time())
                assert runs_out[0] <= trio.current_time(), "a renewed lease was taken away"

        async with trio.open_nursery() as nursery:
            for task in (reaper, holder):
                nursery.start_soon(task)

    return main


def last_key_unsaved(*, fixed: bool = False) -> Program:
    """A key that is pressed while the timer saves starts no timer, as one is running, and is never saved."""

    async def main() -> None:
        typed, saved = [""], [""]
        is_running = [False]

        async def save_later() -> None:
            await trio.sleep(1)
            copy = typed[0]
            if fixed:
                is_running[0] = False
            await work(2)  # race: a key may be pressed
            if not fixed:
                is_running[0] = False
            saved[0] = max(saved[0], copy, key=len)

        async def typist(nursery: trio.Nursery) -> None:
            for key in "abc":
                typed[0] += key
                if not is_running[0]:
                    is_running[0] = True
                    nursery.start_soon(save_later)
                await trio.sleep(2)
                await work(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(typist, nursery)
        assert saved == typed, "the last key was never saved"

    return main


def equal_stamps(*, fixed: bool = False) -> Program:
    """Rows are told apart by a time of one millisecond, and a reply is as old as its question."""

    async def main() -> None:
        rows: list[tuple[float, int, str]] = []
        stamps = iter(range(99))

        async def store(stamp: float, row: str) -> None:
            await work(1)
            rows.append((stamp, len(rows), row))  # race: among rows of one stamp this order decides

        async def person() -> None:
            async with trio.open_nursery() as writes:
                for row in ("question", "reply", "thanks"):
                    stamp = next(stamps) if fixed else trio.current_time()
                    writes.start_soon(store, stamp, row)
                    await work(4)

        async with trio.open_nursery() as nursery:
            for task in (ring, person):
                nursery.start_soon(task)
        history = [row for _, _, row in sorted(rows)]
        assert history == ["question", "reply", "thanks"], "rows of one millisecond change places"

    return main
