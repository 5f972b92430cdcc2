"""How the database is reached: which connections there are and which thread runs them. The store's executor seam.

* `Inline`: one connection for everything, used on the trio thread. For `durability = "normal"`, whose commits do not
  wait for the disk, and for simulation, where there are neither threads nor shared memory.
* `Threaded`: calls run in a thread, reads on connections of their own. For `durability = "full"`, where a commit
  waits milliseconds for the disk. It borrows trio's cached threads, so that there is none to end, and keeps plain
  connections: the engine is the same for both.

A call that has begun is waited for, also by a cancelled caller: what it committed is then known (C10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

import apsw
import outcome
import trio
from attrs import field

from kesoku_actors.store.port import StoreBusy, StoreFault
from kesoku_actors.store.reading import open_for_reading, reading
from kesoku_actors.values import define

T = TypeVar("T")

_STATEMENTS: Final = 256
"""Prepared statements kept: turns with tools and deliveries use more than the hundred that apsw keeps by itself."""

Connect = Callable[[Path, int], apsw.Connection]
"""Opens the database file with SQLite's flags: where a VFS of one's own comes in."""


def connect_plainly(path: Path, flags: int) -> apsw.Connection:
    """Open the file with the platform's own VFS."""
    return apsw.Connection(str(path), flags=flags, statementcachesize=_STATEMENTS)


class Access(Protocol):
    """One process's way to one database. It outlives the store actor's restarts."""

    connect: Connect
    life: str
    """Names this life of the process (C3); the store gives it when it first opens."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call of the writer; only one at a time."""
        ...

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query on one snapshot. Raises a `StoreFault`."""
        ...

    def lend(self, writer: apsw.Connection) -> AbstractContextManager[None]:
        """Let reads use the writer's connection meanwhile, if this access does so."""
        ...

    async def close(self) -> None:
        """Close the connections of its own; a later read opens new ones."""
        ...


@define(eq=False, kw_only=True)
class Inline:
    """One connection, on the trio thread; there is something to read while the store is open."""

    connect: Connect = connect_plainly
    life: str = ""
    _connection: apsw.Connection | None = field(default=None, init=False)

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call here and now."""
        return call()

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query here, after the other tasks had their turn. Raises `StoreBusy` while the store is not open."""
        await trio.lowlevel.checkpoint()
        if self._connection is None:
            raise StoreBusy("the store is not open at the moment; try again")
        with reading():
            return query(self._connection)

    @contextmanager
    def lend(self, writer: apsw.Connection) -> Iterator[None]:
        """Read from the writer's connection: between two calls it is in no transaction."""
        self._connection = writer
        try:
            yield
        finally:
            self._connection = None

    async def close(self) -> None:
        """Nothing is its own."""


@define(eq=False)
class _Place:
    """Room for one read-only connection, opened by the first query that has it.

    The thread of a query uses `connection`; everything else, and who has the place, is decided on the trio thread.
    """

    connection: apsw.Connection | None = None
    is_closing: bool = False
    closed: trio.Event = field(factory=trio.Event)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@define(eq=False, kw_only=True)
class Threaded:
    """Calls in a thread; up to `readers` read-only connections, opened when first needed."""

    path: Path
    connect: Connect = connect_plainly
    readers: int = 2
    life: str = ""
    _free: list[_Place] = field(init=False)
    _taken: list[_Place] = field(factory=list, init=False)
    _room: trio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._free = [_Place() for _ in range(self.readers)]
        self._room = trio.Semaphore(self.readers)

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread."""
        return await in_thread(call)

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query in a thread, in a read transaction of a connection of its own."""
        async with self._room:
            place = self._free.pop()
            self._taken.append(place)
            try:
                return await in_thread(partial(self._query, query, place))
            finally:
                self._taken.remove(place)
                if place.is_closing:
                    place.close()
                    place.closed.set()
                    place = _Place()
                self._free.append(place)

    def lend(self, writer: apsw.Connection) -> AbstractContextManager[None]:
        """Readers have connections of their own."""
        return nullcontext()

    async def close(self) -> None:
        """Close the readers; one that a query is using is waited for."""
        unused, self._free = self._free, [_Place() for _ in self._free]
        used = tuple(self._taken)
        for place in used:
            place.is_closing = True
        await in_thread(partial(_close_all, unused))
        for place in used:
            await place.closed.wait()

    def _query(self, query: Callable[[apsw.Connection], T], place: _Place) -> T:
        connection = place.connection = place.connection or open_for_reading(self.path, self.connect)
        try:
            with reading():
                connection.execute("BEGIN")
                try:
                    return query(connection)
                finally:
                    connection.execute("ROLLBACK")
        except StoreFault:
            place.close()
            raise


def _close_all(places: list[_Place]) -> None:
    for place in places:
        place.close()


async def in_thread(call: Callable[[], T]) -> T:
    """Run `call` in one of trio's cached threads and return its answer, whatever happens to the caller meanwhile.

    `trio.to_thread` costs twice as much, for context and limits that are not needed here.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()

    def deliver(result: outcome.Outcome[T]) -> None:
        token.run_sync_soon(trio.lowlevel.reschedule, task, result)

    trio.lowlevel.start_thread_soon(call, deliver)
    answer: T = await trio.lowlevel.wait_task_rescheduled(lambda _raise_cancel: trio.lowlevel.Abort.FAILED)
    return answer
