"""What a life left: the store, read from a copy so that nothing of it changes, and the files of the trial."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from attrs import frozen

from kesoku_actors.protocol import job_id
from scripts.crashes.files import lines


@frozen(kw_only=True)
class Remains:
    """A trial's folder between two lives."""

    integrity: str
    messages: tuple[dict[str, Any], ...]
    """Rows with `id external_id session_id role type status content parent_id root_id metadata`, by seq."""
    sessions: dict[str, str]
    """Session id to state."""
    chunks: dict[tuple[str, int], str]
    """Message id and number to state."""
    posted: dict[str, tuple[str, str]]
    """External id of each accepted message to its id and session."""
    cleared: tuple[str, ...]
    """Sessions whose clear was accepted."""
    edited: frozenset[str]
    """External ids of messages whose edit was taken."""
    withdrawn: dict[str, bool]
    """External ids of messages that were to be taken back, and whether they are known to be."""
    attached: dict[str, str | None]
    """External ids of messages whose file was saved, and what is in that file; none when it is gone."""
    attempts: int
    """The most that any turn was begun again after an unclean end."""
    sent: Counter[tuple[str, int]]
    """Message id and number to how often the platform got it."""
    runs: Counter[str]
    """Tool to how often it began to run."""
    folders: frozenset[str]
    """Names in the sessions' directory."""
    jobs: tuple[tuple[str, str, str, str], ...] = ()
    """Of each job its session, name, call and state."""

    @property
    def unrecorded(self) -> frozenset[tuple[str, int]]:
        """What the platform got although the store does not know it: the kill fell between the send and its record."""
        return frozenset(part for part in self.sent if self.chunks.get(part) != "sent")


def remains_of(folder: Path) -> Remains:
    """Read what is left in a trial's folder."""
    facts, sessions_dir = lines(folder / "facts"), folder / "sessions"
    with _copied(folder) as database:
        return Remains(
            integrity=str(database.pragma("integrity_check")),
            messages=tuple(_messages(database)),
            sessions=dict(_select(database, "SELECT id, state FROM sessions")),
            chunks={(id, number): state for id, number, state in _select(database, _CHUNKS)},
            posted={fact[1]: (fact[2], fact[3]) for fact in facts if fact[0] == "posted"},
            cleared=tuple(fact[2] for fact in facts if fact[0] == "cleared"),
            edited=frozenset(fact[1] for fact in facts if fact[0] == "edited" and fact[2] == "yes"),
            withdrawn={fact[1]: fact[-1] == "yes" for fact in facts if fact[0] in ("withdrawing", "withdrawn")},
            attached={fact[1]: _read(sessions_dir / fact[2]) for fact in facts if fact[0] == "attached"},
            attempts=max((attempts for (attempts,) in _select(database, "SELECT attempts FROM turns")), default=0),
            sent=Counter((id, int(number)) for id, number in lines(folder / "sent")),
            runs=Counter(words[0] for words in lines(folder / "runs")),
            jobs=tuple((id, job_id(no), call, state) for id, no, call, state in _select(database, _JOBS)),
            folders=frozenset(path.name for path in sessions_dir.iterdir()) if sessions_dir.exists() else frozenset(),
        )


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


_JOBS = "SELECT s.id, j.number, j.call_id, j.state FROM jobs j JOIN sessions s ON s.no = j.session_no"
_CHUNKS = "SELECT message_id, number, state FROM chunks"
_MESSAGES = (
    "SELECT m.id, m.external_id, s.id AS session_id, m.role, m.type, m.status, m.content, m.parent_id, m.root_id,"
    " m.metadata FROM messages m JOIN sessions s ON s.no = m.session_no ORDER BY m.seq"
)


def _messages(database: apsw.Connection) -> Iterator[dict[str, Any]]:
    names = ("id", "external_id", "session_id", "role", "type", "status", "content", "parent_id", "root_id", "metadata")
    for row in _select(database, _MESSAGES):
        found = dict(zip(names, row, strict=True))
        yield {**found, "metadata": json.loads(found["metadata"])}


def _select(database: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows; none when the life ended before there was such a table."""
    if not database.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'messages'").get:
        return []
    return list(database.execute(sql))


@contextmanager
def _copied(folder: Path) -> Iterator[apsw.Connection]:
    with tempfile.TemporaryDirectory() as copy:
        for path in folder.glob("kesoku.db*"):
            if not path.name.endswith((".lock", "-shm")):
                shutil.copy(path, copy)
        database = apsw.Connection(str(Path(copy) / "kesoku.db"))
        try:
            yield database
        finally:
            database.close()
