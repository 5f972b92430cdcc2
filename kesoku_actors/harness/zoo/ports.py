"""Ports of programs of SCTBench, the benchmark of systematic concurrency testing of Thomson, Donaldson and Betts.

The rule of the port: a checkpoint wherever a thread of the original could be preempted between two accesses to what is
shared. trio's `Lock.release` has none, so there is one behind a release where the original goes on to something shared.
"""

from __future__ import annotations

from contextlib import nullcontext

import trio

from kesoku_actors.harness.zoo.scenery import Program, work


async def preempted() -> None:
    """Be where a thread could be preempted."""
    await work(1)


def account(*, fixed: bool = False) -> Program:
    """`account_bad`: a check runs when both have moved money, and expects the wrong balance."""

    async def main() -> None:
        balance, done, guard = [100], set[str](), trio.Lock()

        async def deposit() -> None:
            async with guard:
                balance[0] += 30
                done.add("deposit")

        async def withdraw() -> None:
            async with guard:
                balance[0] -= 20
                done.add("withdraw")

        async def check_result() -> None:
            async with guard:  # race: whether both are done
                if len(done) == 2:
                    assert balance[0] == (110 if fixed else 50), "the balance is wrong"

        async with trio.open_nursery() as nursery:
            for thread in (check_result, deposit, withdraw):
                nursery.start_soon(thread)

    return main


def bluetooth(*, fixed: bool = False) -> Program:
    """`bluetooth_driver_bad`: a driver is stopped by one that does not count who is about to enter."""

    async def main() -> None:
        pending, is_stopping, is_stopped = [1], [False], [False]
        nobody_inside = trio.Event()

        async def leave() -> None:
            await preempted()
            pending[0] -= 1
            if not pending[0]:
                nobody_inside.set()

        async def adder() -> None:
            if fixed:
                pending[0] += 1
            await preempted()
            if not is_stopping[0]:
                await preempted()  # race: the driver may be stopped
                if not fixed:
                    pending[0] += 1
                await preempted()
                assert not is_stopped[0], "the driver is used when it is stopped"
            elif not fixed:
                return
            await leave()

        async def stopper() -> None:
            await preempted()
            is_stopping[0] = True
            await leave()
            await nobody_inside.wait()
            await preempted()
            is_stopped[0] = True

        async with trio.open_nursery() as nursery:
            for thread in (adder, stopper):
                nursery.start_soon(thread)

    return main


def carter01(*, fixed: bool = False) -> Program:
    """`carter01_bad`: two classes of readers share a lock, which the first of a class takes within a mutex."""

    async def main() -> None:
        mutex, resource = trio.Lock(), trio.Semaphore(1)
        inside = {"a": 0, "b": 0}

        async def reader(kind: str) -> None:
            if fixed:
                await resource.acquire()
            async with mutex:
                inside[kind] += 1
                if inside[kind] == 1 and not fixed:
                    await resource.acquire()  # race: its holder may need the mutex to release it
            await preempted()
            async with mutex:
                inside[kind] -= 1
                if inside[kind] == 0:
                    resource.release()

        async with trio.open_nursery() as nursery:
            for kind in "ab":
                nursery.start_soon(reader, kind)

    return main


def circular_buffer(*, fixed: bool = False) -> Program:
    """`circular_buffer_bad`: elements are put into a ring whose two ends are moved without a lock."""

    async def main() -> None:
        buffer, following, guard = [-1] * 4, [0], trio.Lock()

        async def insert(element: int) -> None:
            at = following[0]
            await preempted()
            buffer[at] = element
            await preempted()  # race: another element may be put at the same place
            following[0] = (at + 1) % len(buffer)

        async def producer(element: int) -> None:
            for _ in range(element):
                await preempted()
            if fixed:
                async with guard:
                    await insert(element)
            else:
                await insert(element)

        async with trio.open_nursery() as nursery:
            for element in (1, 8):
                nursery.start_soon(producer, element)
        assert sorted(buffer[: following[0]]) == [1, 8], "an element was overwritten"

    return main


def deadlock01(*, fixed: bool = False) -> Program:
    """`deadlock01_bad`: two threads take two locks in opposite order."""

    async def main() -> None:
        left, right = trio.Lock(), trio.Lock()
        counter = [0]

        async def first() -> None:
            async with left, right:  # race: the other may have the second lock
                counter[0] += 1

        async def second() -> None:
            for _ in range(5):
                await preempted()
            async with left if fixed else right, right if fixed else left:
                counter[0] -= 1

        async with trio.open_nursery() as nursery:
            for thread in (first, second):
                nursery.start_soon(thread)

    return main


def lazy01(*, fixed: bool = False) -> Program:
    """`lazy01_bad`: whoever looks last sees more than it expects."""

    async def main() -> None:
        data, mutex = [0], trio.Lock()

        async def add_one() -> None:
            async with mutex:
                data[0] += 1

        async def add_two() -> None:
            async with mutex:
                data[0] += 2

        async def look() -> None:
            async with mutex:  # race: who was here before
                assert data[0] <= (3 if fixed else 2), "three were added"

        async with trio.open_nursery() as nursery:
            for thread in (look, add_one, add_two):
                nursery.start_soon(thread)

    return main


def philosophers_31(*, fixed: bool = False) -> Program:
    """`din_phil_sat`, of thirty-one: each takes the fork at its left and waits for the one at its right."""

    async def main() -> None:
        forks, meals = [trio.Lock() for _ in range(31)], list[int]()

        async def philosopher(seat: int) -> None:
            mine, next_one = forks[seat], forks[(seat + 1) % len(forks)]
            if fixed and seat == 0:
                mine, next_one = next_one, mine
            async with mine, next_one:  # race: with all the others at once
                meals.append(seat)

        async with trio.open_nursery() as nursery:
            for seat in range(len(forks)):
                nursery.start_soon(philosopher, seat)

    return main


def queue(*, fixed: bool = False) -> Program:
    """`queue_bad`: a reader counts its rounds, also those in which there was nothing to read."""

    async def main() -> None:
        elements, written = list[int](), [-1] * 3
        guard, read = trio.Lock(), [0]

        async def enqueuer() -> None:
            for element in range(3):
                async with guard:
                    elements.append(element)
                    written[element] = element
                await preempted()

        async def dequeuer() -> None:
            await preempted()
            for round_ in range(3):
                async with guard:
                    if elements:  # race: whether there is one in this round
                        place = read[0] if fixed else round_
                        assert elements.pop(0) == written[place], "another element was read"
                        read[0] += 1
                await preempted()

        async with trio.open_nursery() as nursery:
            for thread in (enqueuer, dequeuer):
                nursery.start_soon(thread)

    return main


def reorder_10(*, fixed: bool = False) -> Program:
    """`reorder_10_bad`: nine set one value and then another, and one looks at them in the same order."""

    async def main() -> None:
        values, guard = {"a": 0, "b": 0}, trio.Lock()

        async def setter() -> None:
            async with guard if fixed else nullcontext():
                await preempted()
                values["a"] = 1
                await preempted()  # race: the checker may come here
                values["b"] = -1

        async def checker() -> None:
            async with guard if fixed else nullcontext():
                await preempted()
                first = values["a"]
                await preempted()  # race: the setters may come here
                assert (first, values["b"]) in ((0, 0), (1, -1)), "one value is set and the other is not"

        async with trio.open_nursery() as nursery:
            for _ in range(9):
                nursery.start_soon(setter)
            nursery.start_soon(checker)

    return main


def sigma(*, fixed: bool = False) -> Program:
    """`sigma_bad`: each thread marks the place of an index that its creator has moved on."""

    async def main() -> None:
        marks, index = [0] * 4, [0]

        async def thread(mine: int) -> None:
            marks[mine if fixed else index[0] - 1] = 1  # race: the creator may be further

        async with trio.open_nursery() as nursery:
            for place in range(len(marks)):
                nursery.start_soon(thread, place)
                index[0] = place + 1
                await preempted()
        assert sum(marks) == len(marks), "a place was marked twice"

    return main


def stack(*, fixed: bool = False) -> Program:
    """`stack_bad`: one pushes and one pops, under a lock, and nobody looks whether there is something."""

    async def main() -> None:
        elements, changed = list[int](), trio.Condition()

        async def pusher() -> None:
            for element in range(3):
                async with changed:
                    elements.append(element)
                    changed.notify_all()

        async def popper() -> None:
            await preempted()
            for _ in range(3):
                async with changed:
                    while fixed and not elements:
                        await changed.wait()
                    assert elements, "the stack is empty"  # race: with the next push
                    elements.pop()

        async with trio.open_nursery() as nursery:
            for thread in (pusher, popper):
                nursery.start_soon(thread)

    return main


def token_ring(*, fixed: bool = False) -> Program:
    """`token_ring_bad`: three hand a value round, and a fourth looks before it has come round."""

    async def main() -> None:
        values, passed = [5, 0, 0], [trio.Event() for _ in range(3)]

        async def station(mine: int) -> None:
            if fixed and mine:
                await passed[mine - 1].wait()
            await preempted()
            values[mine] = values[mine - 1] if mine else values[0]  # race: the station before may not have it yet
            passed[mine].set()

        async def checker() -> None:
            for event in passed:
                await event.wait()
            assert values == [5, 5, 5], "the token was lost"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(checker)
            for mine in range(3):
                nursery.start_soon(station, mine)

    return main


def twostage_20(*, fixed: bool = False) -> Program:
    """`twostage_20_bad`: a value is set under one lock and its successor under another, and a reader is between."""

    async def main() -> None:
        locks, data = [trio.Lock(), trio.Lock()], [0, 0]

        async def writer() -> None:
            async with locks[0]:
                data[0] = 1
                if fixed:
                    data[1] = data[0] + 1
            await preempted()  # race: a reader may see the first stage alone
            async with locks[1]:
                data[1] = data[0] + 1

        async def reader() -> None:
            async with locks[0]:
                first = data[0]
            if not first:
                return
            await preempted()
            async with locks[1]:
                assert data[1] == first + 1, "the second stage is missing"

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(reader)
                nursery.start_soon(writer)

    return main


def wronglock_3(*, fixed: bool = False) -> Program:
    """`wronglock_3_bad`: one takes another lock than the other three, for the same value."""

    async def main() -> None:
        data, right, wrong = [0], trio.Lock(), trio.Lock()

        async def add(lock: trio.Lock) -> None:
            async with lock:
                seen = data[0]
                await preempted()  # race: whoever holds the other lock may add too
                data[0] = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, right)
            for _ in range(3):
                await preempted()
                nursery.start_soon(add, right if fixed else wrong)
        assert data[0] == 4, "an addition was lost"

    return main
