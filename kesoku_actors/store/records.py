"""All that is stored of one session, read in one snapshot: for those who look back at it. Nothing here writes."""

from __future__ import annotations

from typing import Final

import apsw

from kesoku_actors.protocol import CallState, Job, Message, Outcome, SessionInfo, Stop, StoredStep
from kesoku_actors.store import queries
from kesoku_actors.store.rows import MESSAGE_COLUMNS, message_of
from kesoku_actors.store.sql import scalar, select
from kesoku_actors.values import frozen

_TURNS: Final = (
    "SELECT m.id, t.began, t.attempts, t.spent_s FROM turns t JOIN messages m ON m.seq = t.root_seq"
    " WHERE t.session_no = ? ORDER BY t.root_seq"
)
_CALLS: Final = (
    "SELECT id, state, outcome, duration_s, expires, decided_by FROM calls WHERE session_no = ? ORDER BY seq"
)
_WAITING: Final = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages m JOIN sessions s ON s.no = m.session_no"
    " WHERE m.session_no = ? AND m.root_seq IS NULL ORDER BY m.seq"
)


@frozen(kw_only=True)
class TurnRecord:
    """A turn that was begun."""

    root_id: str
    began: float
    """UTC seconds of its first claim."""
    attempts: int
    """Unclean ends of workers that had it (C2)."""
    spent_s: float


@frozen(kw_only=True)
class CallRecord:
    """A call as it stands (C3)."""

    call_id: str
    state: CallState
    outcome: Outcome | None
    duration_s: float | None
    expires: float | None
    """Until when it waits or waited for a person, UTC seconds; none: it never did."""
    decided_by: str | None


@frozen(kw_only=True)
class SessionRecord:
    """What is stored of a session."""

    session: SessionInfo
    messages: tuple[Message, ...]
    """Those that belong to turns, in the order of the history (O1)."""
    outside: tuple[Message, ...]
    """Those that belong to no turn, by seq: what waits, and notices that no turn caused."""
    steps: tuple[StoredStep, ...]
    turns: tuple[TurnRecord, ...]
    calls: tuple[CallRecord, ...]
    stops: tuple[Stop, ...]
    jobs: tuple[Job, ...]


def record(connection: apsw.Connection, session_id: str) -> SessionRecord | None:
    """Return what is stored of a session, or none."""
    session = queries.session(connection, session_id)
    if session is None:
        return None
    no = queries.session_no(connection, session_id)
    history = queries.history(connection, session_id)
    stops = (*queries.stops(connection, no, True), *queries.stops(connection, no, False))
    return SessionRecord(
        session=session,
        messages=history.messages,
        outside=tuple(map(message_of, select(connection, _WAITING, (no,)))),
        steps=history.steps,
        turns=tuple(
            TurnRecord(root_id=root_id, began=began, attempts=attempts, spent_s=spent_s)
            for root_id, began, attempts, spent_s in select(connection, _TURNS, (no,))
        ),
        calls=tuple(
            CallRecord(
                call_id=id,
                state=CallState(state),
                outcome=None if outcome is None else Outcome(outcome),
                duration_s=duration_s,
                expires=expires,
                decided_by=decided_by,
            )
            for id, state, outcome, duration_s, expires, decided_by in select(connection, _CALLS, (no,))
        ),
        stops=tuple(sorted(stops, key=lambda stop: stop.seq)),
        jobs=queries.jobs(connection, no),
    )


def count_steps(connection: apsw.Connection, session_id: str, without: str) -> int:
    """Return how many inferences of a session are stored, apart from the one with the id `without`."""
    sql = "SELECT count(*) FROM steps WHERE session_no = ? AND json_extract(step, '$.inference_id') IS NOT ?"
    return int(scalar(connection, sql, (queries.session_no(connection, session_id), without)))
