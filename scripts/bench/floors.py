"""The floors: the least a program without our promises would do, on the same file system in the same run.

`BareStore` is one indexed table behind apsw, one row and one commit a message, on the trio thread. `BareTalk` is a turn
over it: the history cached in a list, the model called, the tools run as tasks of one nursery, no supervision, no
interruption, no recovery.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import trio
from attrs import define, field

from kesoku_actors.store import Durability

_SCHEMA: Final = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, session TEXT NOT NULL, role TEXT NOT NULL, type TEXT NOT NULL,
    status TEXT NOT NULL, content TEXT NOT NULL, metadata TEXT NOT NULL, timestamp REAL NOT NULL
) STRICT;
CREATE INDEX messages_of_session ON messages (session, seq);
"""
_INSERT: Final = "INSERT INTO messages VALUES (?, ?, ?, ?, 'text', 'responded', ?, '{}', 0.0)"
_SCAN: Final = "SELECT seq, id, role, type, status, content, metadata FROM messages WHERE session = ? ORDER BY seq"

Model = Callable[[list[str]], Awaitable[tuple[str, int]]]
"""Takes the history, returns a text and how many calls it asks for."""


@define(eq=False)
class BareStore:
    """One connection, in the loop."""

    connection: apsw.Connection
    seq: int = 0

    def add(self, session: str, role: str, content: str) -> int:
        """Insert one row, in a transaction of its own unless one is open."""
        self.seq += 1
        self.connection.execute(_INSERT, (self.seq, f"{self.seq:026}", session, role, content))
        return self.seq

    def add_all(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Insert several rows in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        for row in rows:
            self.add(*row)
        self.connection.execute("COMMIT")

    def rows(self, session: str) -> list[tuple[object, ...]]:
        """Return a session's rows in order."""
        return list(self.connection.execute(_SCAN, (session,)).fetchall())


@contextmanager
def bare_store(folder: Path, durability: Durability) -> Iterator[BareStore]:
    """Open the floor's database in `folder`, with the same journal and the same `synchronous` as ours."""
    connection = apsw.Connection(str(folder / f"floor-{durability}.db"))
    try:
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", durability.name)
        connection.execute(_SCHEMA)
        yield BareStore(connection=connection)
    finally:
        connection.close()


@define(eq=False)
class BareTalk:
    """One session of the floor."""

    store: BareStore
    session: str
    model: Model
    tool: Callable[[], Awaitable[str]]
    history: list[str] = field(factory=list)

    async def turn(self, text: str) -> None:
        """Take a person's message, infer, run what the model asks for, until it answers."""
        self._add("user", text)
        while True:
            reply, calls = await self.model(self.history)
            if not calls:
                self._add("assistant", reply)
                return
            for number in range(calls):
                self._add("call", json.dumps({"tool": "look", "number": number}))
            for result in await self._run(calls):
                self._add("tool", result)

    async def _run(self, calls: int) -> list[str]:
        results = [""] * calls

        async def one(number: int) -> None:
            results[number] = await self.tool()

        async with trio.open_nursery() as nursery:
            for number in range(calls):
                nursery.start_soon(one, number)
        return results

    def _add(self, role: str, content: str) -> None:
        self.store.add(self.session, role, content)
        self.history.append(content)


class GroupWriter:
    """The floor of many posters: one task that commits all that waits at once and wakes those who wait."""

    def __init__(self, store: BareStore) -> None:
        self._store = store
        self._send, self._receive = trio.open_memory_channel[tuple[tuple[str, str, str], trio.Event]](1024)

    async def run(self) -> None:
        """Commit until cancelled."""
        async for first in self._receive:
            letters = [first]
            while self._receive.statistics().current_buffer_used:
                letters.append(self._receive.receive_nowait())
            self._store.add_all([row for row, _ in letters])
            for _, done in letters:
                done.set()

    async def post(self, session: str, role: str, content: str) -> None:
        """Return when the row is committed."""
        done = trio.Event()
        await self._send.send(((session, role, content), done))
        await done.wait()
