"""Twins of the actor programs of the zoo, for asyncio."""

from __future__ import annotations

import asyncio

from scripts.bench.rival_programs.twin import BYSTANDERS, SECOND, Crowded, Twin, work


class TwoDoors(Crowded):
    """Two front doors open one session at once, and each starts an actor for it."""

    ZOO = "two_doors"
    WORKERS = (*BYSTANDERS, "early", "late")

    def prepare(self) -> None:
        self.sessions: dict[str, int] = {}
        self.started: list[int] = []
        self.turn = asyncio.Lock()

    async def _open(self, door: int) -> None:
        if "s" not in self.sessions:
            await work(2)
            self.sessions["s"] = door
            self.started.append(door)

    async def _door(self, door: int, after: int) -> None:
        await work(after)
        if self.fixed:
            async with self.turn:
                await self._open(door)
        else:
            await self._open(door)

    async def early(self) -> None:
        await self._door(1, 1)

    async def late(self) -> None:
        await self._door(2, 15)

    def holds(self) -> bool:
        return len(self.started) == 1


class StaleCache(Crowded):
    """A reader loads a value, a writer changes it and clears the cache, and the reader caches the old one."""

    ZOO = "stale_cache"
    WORKERS = (*BYSTANDERS, "reader", "writer")

    def prepare(self) -> None:
        self.table = {"name": "old"}
        self.cache: dict[str, str] = {}
        self.version = 0

    async def reader(self) -> None:
        seen, value = self.version, self.table["name"]
        await work(3)
        if not self.fixed or seen == self.version:
            self.cache["name"] = value

    async def writer(self) -> None:
        await work(7)
        self.table["name"] = "new"
        self.version += 1
        self.cache.pop("name", None)

    def holds(self) -> bool:
        return self.cache.get("name", "new") == "new"


class Overdrawn(Twin):
    """A turn looks whether the purse has enough, asks the model, and pays afterwards; so does another one."""

    ZOO = "overdrawn"
    WORKERS = ("early", "late")

    def prepare(self) -> None:
        self.purse = 10

    async def _turn(self, after: int) -> None:
        await work(after)
        if self.purse < 6:
            return
        if self.fixed:
            self.purse -= 6
        await work(3)
        if not self.fixed:
            self.purse -= 6

    async def early(self) -> None:
        await self._turn(0)

    async def late(self) -> None:
        await self._turn(9)

    def holds(self) -> bool:
        return self.purse >= 0


class ReplacedEvent(Crowded):
    """A consumer finds nothing, says so, and then replaces the event by which it has just been woken."""

    ZOO = "replaced_event"
    WORKERS = (*BYSTANDERS, "consumer", "producer")
    IS_STUCK = True

    def prepare(self) -> None:
        self.items: list[int] = []
        self.ready = asyncio.Event()

    async def producer(self) -> None:
        for number in range(3):
            await work(4)
            self.items.append(number)
            self.ready.set()

    async def consumer(self) -> None:
        taken = 0
        while taken < 3:
            if self.items:
                self.items.pop()
                taken += 1
                continue
            if self.fixed:
                self.ready = asyncio.Event()
                await work(1)
            else:
                await work(1)
                self.ready = asyncio.Event()
            await self.ready.wait()


class StolenWakeup(Twin):
    """A consumer that was woken does not look again, and what it was woken for has been taken by another."""

    ZOO = "stolen_wakeup"
    WORKERS = ("early", "late", "producer")

    def prepare(self) -> None:
        self.changed = asyncio.Condition()
        self.items: list[int] = []
        self.taken: list[int] = []

    async def _consume(self, after: int) -> None:
        await work(after)
        async with self.changed:
            await work(1)
            if not self.items:
                await self.changed.wait()
            while self.fixed and not self.items:
                await self.changed.wait()
            self.taken.append(self.items.pop() if self.items else -1)

    async def early(self) -> None:
        await self._consume(0)

    async def late(self) -> None:
        await self._consume(17)

    async def producer(self) -> None:
        for number in range(2):
            await work(12)
            async with self.changed:
                await work(1)
                self.items.append(number)
                self.changed.notify()

    def holds(self) -> bool:
        return sorted(self.taken) == [0, 1]


class CrossedMailboxes(Crowded):
    """Two actors write to each other before they read; the news takes the last place in both bounded mailboxes."""

    ZOO = "crossed_mailboxes"
    WORKERS = (*BYSTANDERS, "news", "left", "right")
    IS_STUCK = True

    def prepare(self) -> None:
        self.mail: list[asyncio.Queue[int]] = [asyncio.Queue(9 if self.fixed else 2) for _ in range(2)]

    async def _peer(self, mine: int) -> None:
        for number in range(2):
            await self.mail[1 - mine].put(number)
            await work(1)
        for _ in range(3):
            await self.mail[mine].get()
            await work(1)

    async def left(self) -> None:
        await self._peer(0)

    async def right(self) -> None:
        await self._peer(1)

    async def news(self) -> None:
        await work(8)
        for mailbox in self.mail:
            await mailbox.put(99)
            await work(1)


class SnapshotThenSubscribe(Crowded):
    """A viewer reads the state and subscribes afterwards: what is published between the two it never sees."""

    ZOO = "snapshot_then_subscribe"
    WORKERS = (*BYSTANDERS, "publisher", "viewer")

    def prepare(self) -> None:
        self.state = 0
        self.subscribers: list[list[int]] = []
        self.shown: list[int] = []

    async def publisher(self) -> None:
        for number in (1, 2, 3):
            await work(5)
            self.state = number
            for subscriber in self.subscribers:
                subscriber.append(number)

    async def viewer(self) -> None:
        await work(7)
        if self.fixed:
            self.subscribers.append(self.shown)
        self.shown.append(self.state)
        await work(1)
        if not self.fixed:
            self.subscribers.append(self.shown)

    def holds(self) -> bool:
        return self.shown == list(range(self.shown[0], 4))


class HalfTransfer(Crowded):
    """A transfer takes from one account and is interrupted before it gives to the other."""

    ZOO = "half_transfer"
    WORKERS = (*BYSTANDERS, "mover", "person")

    def prepare(self) -> None:
        self.accounts = {"a": 3, "b": 0}
        self.turn: asyncio.Task[None] | None = None

    async def _transfer(self) -> None:
        self.accounts["a"] -= 1
        await work(1)
        self.accounts["b"] += 1

    async def _shielded(self) -> None:
        transfer = asyncio.create_task(self._transfer())
        try:
            await asyncio.shield(transfer)
        except asyncio.CancelledError:
            await transfer
            raise

    async def _transfers(self) -> None:
        for _ in range(3):
            await work(3)
            await (self._shielded() if self.fixed else self._transfer())

    async def mover(self) -> None:
        self.turn = asyncio.create_task(self._transfers())
        await asyncio.wait([self.turn])

    async def person(self) -> None:
        await work(15)
        if self.turn is not None:
            self.turn.cancel()

    def holds(self) -> bool:
        return sum(self.accounts.values()) == 3


class LeaseRanOut(Crowded):
    """A worker sees that its lease is good, and writes its result when the next one has the lease already."""

    ZOO = "lease_ran_out"
    WORKERS = (*BYSTANDERS, "first", "second")
    TAKES_TIME = True

    def prepare(self) -> None:
        self.results: list[str] = []
        self.until = self.now() + 5 * SECOND

    async def first(self) -> None:
        await work(2)
        if self.now() < self.until:
            if not self.fixed:
                await work(1)
            self.results.append("first")

    async def second(self) -> None:
        await asyncio.sleep(5 * SECOND)
        await work(2)
        if not self.results:
            self.results.append("second")

    def holds(self) -> bool:
        return len(self.results) == 1


class CompactionUnderOldLease(Crowded):
    """A writer whose lease has passed to the compactor appends, between the compactor's reading and its replacing."""

    ZOO = "compaction_under_old_lease"
    WORKERS = (*BYSTANDERS, "writer", "compactor")

    def prepare(self) -> None:
        self.log = ["old"]
        self.acknowledged: list[str] = []
        self.lease = "writer"

    async def writer(self) -> None:
        await work(2)
        if self.lease != "writer":
            return
        if not self.fixed:
            await work(1)
        self.log.append("new")
        self.acknowledged.append("new")

    async def compactor(self) -> None:
        await work(20)
        self.lease = "compactor"
        kept = sorted(self.log)
        await work(1)
        self.log[:] = kept

    def holds(self) -> bool:
        return set(self.acknowledged) <= set(self.log)


class BothCopiesTorn(Crowded):
    """A reader takes the copy that is whole, and there are two; both are being written."""

    ZOO = "both_copies_torn"
    WORKERS = (*BYSTANDERS, "early", "late", "reader")
    ROUNDS = 4

    def prepare(self) -> None:
        self.copies = [{"head": 0, "body": 0} for _ in range(2)]
        self.found_whole = False

    async def _write(self, number: int, after: int) -> None:
        await work(after)
        self.copies[number]["head"] = 1
        if not self.fixed:
            await work(1)
        self.copies[number]["body"] = 1

    async def early(self) -> None:
        await self._write(0, 2)

    async def late(self) -> None:
        await self._write(1, 22)

    async def reader(self) -> None:
        await work(44)
        self.found_whole = any(copy["head"] == copy["body"] for copy in self.copies)

    def holds(self) -> bool:
        return self.found_whole
