"""Twins of programs of the zoo for threads; a step is whatever a thread can be preempted at."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import ClassVar


class Threaded(ABC):
    """A program of threads with a planted bug, or without it; the object is what they share."""

    ZOO: ClassVar[str]
    WORKERS: ClassVar[tuple[str, ...]]
    IS_STUCK: ClassVar[bool] = False

    def __init__(self, *, fixed: bool) -> None:
        self.fixed = fixed
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make what the threads share."""

    def holds(self) -> bool:
        """Return whether all is well, when every thread has ended."""
        return True


def run(kind: type[Threaded], *, fixed: bool) -> None:
    """Run it once. Raises `AssertionError` when the bug shows."""
    program = kind(fixed=fixed)
    threads = [threading.Thread(target=getattr(program, name), name=name) for name in kind.WORKERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert program.holds(), f"{kind.ZOO} shows its bug"


class TwoDoors(Threaded):
    """Two front doors open one session at once, and each starts an actor for it."""

    ZOO = "two_doors"
    WORKERS = ("first", "second")

    def prepare(self) -> None:
        self.sessions: dict[str, int] = {}
        self.started: list[int] = []
        self.turn = threading.Lock()

    def _open(self, door: int) -> None:
        if "s" not in self.sessions:
            self.sessions["s"] = door
            self.started.append(door)

    def _door(self, door: int) -> None:
        if self.fixed:
            with self.turn:
                self._open(door)
        else:
            self._open(door)

    def first(self) -> None:
        self._door(1)

    def second(self) -> None:
        self._door(2)

    def holds(self) -> bool:
        return len(self.started) == 1


class Overdrawn(Threaded):
    """Two turns look whether the purse has enough, and pay afterwards."""

    ZOO = "overdrawn"
    WORKERS = ("first", "second")

    def prepare(self) -> None:
        self.purse = 10
        self.turn = threading.Lock()

    def _pay(self) -> None:
        if self.purse >= 6:
            self.purse -= 6

    def first(self) -> None:
        if self.fixed:
            with self.turn:
                self._pay()
        else:
            self._pay()

    second = first

    def holds(self) -> bool:
        return self.purse == 4


class StolenWakeup(Threaded):
    """A consumer that was woken does not look again, and what it was woken for has been taken by another."""

    ZOO = "stolen_wakeup"
    WORKERS = ("first", "second", "producer")

    def prepare(self) -> None:
        self.changed = threading.Condition()
        self.items: list[int] = []
        self.taken: list[int] = []

    def first(self) -> None:
        with self.changed:
            if not self.items:
                self.changed.wait()
            while self.fixed and not self.items:
                self.changed.wait()
            self.taken.append(self.items.pop() if self.items else -1)

    second = first

    def producer(self) -> None:
        for number in range(2):
            with self.changed:
                self.items.append(number)
                self.changed.notify()

    def holds(self) -> bool:
        return sorted(self.taken) == [0, 1]


class Bluetooth(Threaded):
    """A driver is stopped by one that does not count who is about to enter."""

    ZOO = "bluetooth"
    WORKERS = ("adder", "stopper")

    def prepare(self) -> None:
        self.pending = 1
        self.guard = threading.Lock()
        self.is_stopping = self.is_stopped = self.is_used_stopped = False
        self.nobody_inside = threading.Event()

    def _count(self, change: int) -> None:
        with self.guard:
            self.pending += change
            if not self.pending:
                self.nobody_inside.set()

    def adder(self) -> None:
        if self.fixed:
            self._count(1)
        if not self.is_stopping:
            if not self.fixed:
                self._count(1)
            self.is_used_stopped = self.is_stopped
        elif not self.fixed:
            return
        self._count(-1)

    def stopper(self) -> None:
        self.is_stopping = True
        self._count(-1)
        self.nobody_inside.wait()
        self.is_stopped = True

    def holds(self) -> bool:
        return not self.is_used_stopped


class Deadlock01(Threaded):
    """Two threads take two locks in opposite order."""

    ZOO = "deadlock01"
    WORKERS = ("first", "second")
    IS_STUCK = True

    def prepare(self) -> None:
        self.left, self.right = threading.Lock(), threading.Lock()

    def first(self) -> None:
        with self.left, self.right:
            pass

    def second(self) -> None:
        one, other = (self.left, self.right) if self.fixed else (self.right, self.left)
        with one, other:
            pass


class Reorder10(Threaded):
    """Nine set one value and then another, and one looks at them in the same order."""

    ZOO = "reorder_10"
    WORKERS = (*(f"setter_{number}" for number in range(9)), "checker")

    def prepare(self) -> None:
        self.a = self.b = 0
        self.seen = (0, 0)
        self.guard = threading.Lock()

    def _set(self) -> None:
        self.a = 1
        self.b = -1

    def _look(self) -> None:
        first = self.a
        self.seen = (first, self.b)

    def setter(self) -> None:
        if self.fixed:
            with self.guard:
                self._set()
        else:
            self._set()

    setter_0 = setter_1 = setter_2 = setter_3 = setter_4 = setter_5 = setter_6 = setter_7 = setter_8 = setter

    def checker(self) -> None:
        if self.fixed:
            with self.guard:
                self._look()
        else:
            self._look()

    def holds(self) -> bool:
        return self.seen in ((0, 0), (1, -1))


class Wronglock3(Threaded):
    """One takes another lock than the other three, for the same value."""

    ZOO = "wronglock_3"
    WORKERS = ("right_one", "wrong_1", "wrong_2", "wrong_3")

    def prepare(self) -> None:
        self.data = 0
        self.right, self.wrong = threading.Lock(), threading.Lock()

    def _add(self, lock: threading.Lock) -> None:
        with lock:
            self.data += 1

    def right_one(self) -> None:
        self._add(self.right)

    def wrong_1(self) -> None:
        self._add(self.right if self.fixed else self.wrong)

    wrong_2 = wrong_3 = wrong_1

    def holds(self) -> bool:
        return self.data == 4
