"""What is stored when everything is over, read past the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw
from attrs import field, frozen

from kesoku_actors.actors import SupervisorSpec
from kesoku_actors.protocol import Message, SessionInfo
from kesoku_actors.store import queries
from kesoku_actors.store.queries import SessionHistory
from kesoku_actors.store.sql import select

_BY_SESSION: Final = ("messages", "ended_turns", "steps", "calls", "jobs", "grants", "stops", "commits", "summaries")
_GONE: Final = "session_no NOT IN (SELECT no FROM sessions WHERE state != 'tombstone')"
_STRAYED: Final = {
    **dict.fromkeys(_BY_SESSION, _GONE),
    "covers": "stop_seq NOT IN (SELECT seq FROM stops)",
    "chunks": "message_id NOT IN (SELECT id FROM messages)",
}
"""By table: what of it belongs to nothing that is there."""


@frozen(kw_only=True)
class StoredStop:
    """A stop, with what it covers and how that ended: the status, or `gone`."""

    seq: int
    reason: str
    forced: bool
    covers: dict[str, str | None]


@frozen(kw_only=True)
class Truth:
    """What is true in the end."""

    rows: tuple[Message, ...]
    """Every row, by `rev`."""
    removed: frozenset[str]
    stops: tuple[StoredStop, ...]
    sessions: dict[str, SessionInfo]
    """Those that are not wiped."""
    histories: dict[str, SessionHistory]
    trees: tuple[SupervisorSpec, ...]
    """What ran, life by life."""
    numbers: tuple[tuple[int, str], ...] = ()
    """Numbers that stand in no row, each with what it was given to: the end of a row, or a stop."""
    last_seen: dict[str, str | None] = field(factory=dict)
    """By channel: the external id of the last message that was stored (M8)."""
    strayed: frozenset[str] = frozenset()
    """Tables with something in them that belongs to nothing that is there."""


def read_truth(connection: apsw.Connection, trees: tuple[SupervisorSpec, ...]) -> Truth:
    """Read everything. Raises `AssertionError` when the database is damaged (C8)."""
    [(sound,)] = connection.execute("PRAGMA integrity_check").fetchall()
    assert sound == "ok", f"the database is damaged: {sound}"
    sessions = {session.id: session for session in queries.sessions(connection, 1000, None)}
    everything = queries.changes(connection, 0, 100_000)
    return Truth(
        rows=everything.changed,
        removed=frozenset(message_id for message_id, _session, _rev in everything.removed),
        stops=tuple(read_stops(connection)),
        sessions=sessions,
        histories={session_id: queries.history(connection, session_id) for session_id in sessions},
        trees=trees,
        numbers=(
            *((rev, message_id) for message_id, _session, rev in everything.removed),
            *((seq, f"stop {seq}") for (seq,) in select(connection, "SELECT seq FROM stops")),
        ),
        last_seen=dict(select(connection, "SELECT channel_id, last_seen FROM channels WHERE last_seen IS NOT NULL")),
        strayed=frozenset(
            table
            for table, where in _STRAYED.items()
            if select(connection, f"SELECT 1 FROM {table} WHERE {where} LIMIT 1")
        ),
    )


def read_stops(connection: apsw.Connection) -> Iterator[StoredStop]:
    """Yield every stop that is stored, in order."""
    for seq, reason, forced in select(connection, "SELECT seq, reason, forced FROM stops ORDER BY seq"):
        covers: dict[str, str | None] = dict(
            select(connection, "SELECT message_id, ended FROM covers WHERE stop_seq = ?", (seq,))
        )
        yield StoredStop(seq=seq, reason=reason, forced=bool(forced), covers=covers)
