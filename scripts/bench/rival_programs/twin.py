"""What a twin is, how it is run once, and the bystanders around it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

SECOND: Final = 0.001
"""Of the program: a loop without a simulated clock has to wait for it."""
BYSTANDERS: Final = ("bystander_0", "bystander_1", "bystander_2")


def loop_time() -> float:
    return asyncio.get_running_loop().time()


async def work(steps: int) -> None:
    """Take so many steps; others may run at each."""
    for _ in range(steps):
        await asyncio.sleep(0)


class Twin(ABC):
    """A program with a planted bug, or without it; the object is what its tasks share."""

    ZOO: ClassVar[str]
    """The program of the zoo that it is a twin of."""
    WORKERS: ClassVar[tuple[str, ...]]
    """The methods that are its tasks, in the order in which they are started."""
    IS_STUCK: ClassVar[bool] = False
    """Whether the bug is that it never ends."""
    TAKES_TIME: ClassVar[bool] = False

    def __init__(self, *, fixed: bool, now: Callable[[], float] = loop_time) -> None:
        self.fixed = fixed
        self.now = now
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make what the tasks share."""

    def holds(self) -> bool:
        """Return whether all is well, when every task has ended."""
        return True


class Crowded(Twin):
    """A twin among bystanders, who hand tokens round."""

    LENGTH: ClassVar[int] = 3
    ROUNDS: ClassVar[int] = 5

    def __init__(self, *, fixed: bool, now: Callable[[], float] = loop_time) -> None:
        self.ways: list[asyncio.Queue[int]] = [asyncio.Queue(1) for _ in range(self.LENGTH)]
        super().__init__(fixed=fixed, now=now)

    async def _bystand(self, place: int) -> None:
        for number in range(self.ROUNDS):
            await self.ways[place].put(number)
            await work(1)
            await self.ways[place - 1].get()
            await work(1)

    async def bystander_0(self) -> None:
        await self._bystand(0)

    async def bystander_1(self) -> None:
        await self._bystand(1)

    async def bystander_2(self) -> None:
        await self._bystand(2)


async def once(kind: type[Twin], *, fixed: bool) -> None:
    """Run it once. Raises `AssertionError` when the bug shows."""
    twin = kind(fixed=fixed)
    await asyncio.gather(*(getattr(twin, name)() for name in kind.WORKERS))
    assert twin.holds(), f"{kind.ZOO} shows its bug"
