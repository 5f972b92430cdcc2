"""Twins of the ports of SCTBench in the zoo, for asyncio."""

from __future__ import annotations

import asyncio

from scripts.bench.rival_programs.twin import Twin, work


class Bluetooth(Twin):
    """A driver is stopped by one that does not count who is about to enter."""

    ZOO = "bluetooth"
    WORKERS = ("adder", "stopper")

    def prepare(self) -> None:
        self.pending = 1
        self.is_stopping = self.is_stopped = self.is_used_stopped = False
        self.nobody_inside = asyncio.Event()

    async def _leave(self) -> None:
        await work(1)
        self.pending -= 1
        if not self.pending:
            self.nobody_inside.set()

    async def adder(self) -> None:
        if self.fixed:
            self.pending += 1
        await work(1)
        if not self.is_stopping:
            await work(1)
            if not self.fixed:
                self.pending += 1
            await work(1)
            self.is_used_stopped = self.is_stopped
        elif not self.fixed:
            return
        await self._leave()

    async def stopper(self) -> None:
        await work(1)
        self.is_stopping = True
        await self._leave()
        await self.nobody_inside.wait()
        await work(1)
        self.is_stopped = True

    def holds(self) -> bool:
        return not self.is_used_stopped


class Deadlock01(Twin):
    """Two threads take two locks in opposite order."""

    ZOO = "deadlock01"
    WORKERS = ("first", "second")
    IS_STUCK = True

    def prepare(self) -> None:
        self.left, self.right = asyncio.Lock(), asyncio.Lock()

    async def _both(self, one: asyncio.Lock, other: asyncio.Lock) -> None:
        async with one:
            await work(1)
            async with other:
                await work(1)

    async def first(self) -> None:
        await self._both(self.left, self.right)

    async def second(self) -> None:
        await work(5)
        await (self._both(self.left, self.right) if self.fixed else self._both(self.right, self.left))


class Reorder10(Twin):
    """Nine set one value and then another, and one looks at them in the same order."""

    ZOO = "reorder_10"
    WORKERS = (*(f"setter_{number}" for number in range(9)), "checker")

    def prepare(self) -> None:
        self.a = self.b = 0
        self.seen = (0, 0)
        self.guard = asyncio.Lock()

    async def _set(self) -> None:
        await work(1)
        self.a = 1
        await work(1)
        self.b = -1

    async def _look(self) -> None:
        await work(1)
        first = self.a
        await work(1)
        self.seen = (first, self.b)

    async def setter(self) -> None:
        if self.fixed:
            async with self.guard:
                await self._set()
        else:
            await self._set()

    setter_0 = setter_1 = setter_2 = setter_3 = setter_4 = setter_5 = setter_6 = setter_7 = setter_8 = setter

    async def checker(self) -> None:
        if self.fixed:
            async with self.guard:
                await self._look()
        else:
            await self._look()

    def holds(self) -> bool:
        return self.seen in ((0, 0), (1, -1))


class Wronglock3(Twin):
    """One takes another lock than the other three, for the same value."""

    ZOO = "wronglock_3"
    WORKERS = ("right_one", "wrong_1", "wrong_2", "wrong_3")

    def prepare(self) -> None:
        self.data = 0
        self.right, self.wrong = asyncio.Lock(), asyncio.Lock()

    async def _add(self, lock: asyncio.Lock) -> None:
        async with lock:
            await work(1)
            seen = self.data
            await work(1)
            self.data = seen + 1

    async def right_one(self) -> None:
        await self._add(self.right)

    async def _later(self, after: int) -> None:
        await work(after)
        await self._add(self.right if self.fixed else self.wrong)

    async def wrong_1(self) -> None:
        await self._later(1)

    async def wrong_2(self) -> None:
        await self._later(2)

    async def wrong_3(self) -> None:
        await self._later(3)

    def holds(self) -> bool:
        return self.data == 4


class Philosophers31(Twin):
    """Each of thirty-one takes the fork at its left and waits for the one at its right."""

    ZOO = "philosophers_31"
    WORKERS = tuple(f"philosopher_{seat}" for seat in range(31))
    IS_STUCK = True

    def prepare(self) -> None:
        self.forks = [asyncio.Lock() for _ in range(31)]

    async def _dine(self, seat: int) -> None:
        mine, following = self.forks[seat], self.forks[(seat + 1) % len(self.forks)]
        if self.fixed and seat == 0:
            mine, following = following, mine
        async with mine:
            await work(1)
            async with following:
                await work(1)


def _philosopher(seat: int):  # type: ignore[no-untyped-def]  # the type of a method that a loop makes has no name
    async def philosopher(self: Philosophers31) -> None:
        await self._dine(seat)

    return philosopher


for _seat in range(31):
    setattr(Philosophers31, f"philosopher_{_seat}", _philosopher(_seat))
