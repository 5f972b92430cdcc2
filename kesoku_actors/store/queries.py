"""Reads of one connection, shared by the transactions and the reader. Nothing here writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import apsw

from kesoku_actors.protocol import (
    Approval,
    BusyMode,
    CallState,
    Channel,
    Job,
    JobEnding,
    Message,
    Outcome,
    Reason,
    Role,
    SessionInfo,
    SessionState,
    Status,
    Stop,
    StoredStep,
    Waiting,
)
from kesoku_actors.store.port import Chunk, OpenCall, Publication, StopOutcome
from kesoku_actors.store.rows import (
    CHUNK_COLUMNS,
    JOB_COLUMNS,
    MESSAGE_COLUMNS,
    STOP_COLUMNS,
    approval_of,
    chunk_of,
    job_of_row,
    message_of,
    step_of,
    stop_of,
)
from kesoku_actors.store.sql import first, scalar, select
from kesoku_actors.values import frozen

_HEAD = (
    "SELECT (SELECT value FROM meta WHERE name = 'counter'), (SELECT max(seq) FROM messages),"
    " (SELECT max(rev) FROM messages WHERE rev != seq)"
)
_MESSAGES = f"SELECT {MESSAGE_COLUMNS} FROM messages m JOIN sessions s ON s.no = m.session_no"
# A new row's rev is its seq; only rows changed since stand in the index by rev.
_NEW = f"{_MESSAGES} WHERE m.seq > ? AND m.rev = m.seq ORDER BY m.seq LIMIT ?"
_MOVED = f"{_MESSAGES} WHERE m.rev > ? AND m.rev != m.seq ORDER BY m.rev LIMIT ?"
# Named, because the planner would rather walk the whole history of a session.
_OPEN = f"SELECT {MESSAGE_COLUMNS} FROM messages m INDEXED BY messages_open JOIN sessions s ON s.no = m.session_no"
_INFO = "SELECT id, chatbot_id, channel_id, state, created, last_activity, turns, title FROM sessions"
_JOBS = f"SELECT {JOB_COLUMNS}, j.root_seq FROM jobs j JOIN sessions s ON s.no = j.session_no"
_STOPS = f"SELECT {STOP_COLUMNS} FROM stops t JOIN sessions s ON s.no = t.session_no"

# A returned turn, a waiting person's message, a waiting message that a stop covers, or, while the session is open and
# within the bound, a waiting notice that wakes.
_RUNNABLE = (
    "SELECT s.id, s.chatbot_id, s.channel_id FROM messages m INDEXED BY messages_open"
    " JOIN sessions s ON s.no = m.session_no WHERE m.status IN ('pending_agent', 'processing')"
    " AND (m.root_seq IS NOT NULL OR m.role = 'user'"
    " OR EXISTS (SELECT 1 FROM covers WHERE message_id = m.id AND ended IS NULL)"
    " OR (s.state = 'open' AND s.self_started < ? AND json_extract(m.metadata, '$.wakes')))"
)


@frozen(kw_only=True)
class SessionHistory:
    """What a session holds: messages in the order of O1, steps in the order of their turns."""

    messages: tuple[Message, ...]
    steps: tuple[StoredStep, ...]


def message(connection: apsw.Connection, message_id: str) -> Message | None:
    """Return one message, or none."""
    row = first(connection, f"{_MESSAGES} WHERE m.id = ?", (message_id,))
    return None if row is None else message_of(row)


def in_open_sessions(
    connection: apsw.Connection, message_ids: tuple[str, ...]
) -> tuple[tuple[Message, SessionInfo], ...]:
    """Return those of the named messages that open sessions hold, each with its session, in the order of the names."""
    found, sessions = [], dict[str, SessionInfo | None]()
    for message_id in message_ids:
        row = message(connection, message_id)
        if row is None:
            continue
        if row.session_id not in sessions:
            sessions[row.session_id] = session(connection, row.session_id)
        info = sessions[row.session_id]
        if info is not None and info.state is SessionState.OPEN:
            found.append((row, info))
    return tuple(found)


def is_removed(connection: apsw.Connection, message_id: str) -> bool:
    """Return whether there is a tombstone of this message."""
    return first(connection, "SELECT 1 FROM removed WHERE message_id = ? LIMIT 1", (message_id,)) is not None


def birth(connection: apsw.Connection) -> str:
    """Return what tells this store from any other at the same path: when it was made, in full precision."""
    return repr(scalar(connection, "SELECT applied FROM migrations WHERE number = 1"))


def history(connection: apsw.Connection, session_id: str) -> SessionHistory:
    """Return a session's history (O1): one range scan of `messages_history`, and one of its steps."""
    no = session_no(connection, session_id)
    scan = f"{_MESSAGES} WHERE m.session_no = ? AND m.root_seq > 0 ORDER BY m.root_seq, m.place"
    steps = "SELECT root_id, number, step, message_ids FROM steps WHERE session_no = ? ORDER BY root_seq, number"
    return SessionHistory(
        messages=tuple(map(message_of, select(connection, scan, (no,)))),
        steps=tuple(step_of(*row) for row in select(connection, steps, (no,))),
    )


def has_history(connection: apsw.Connection, no: int) -> bool:
    """Return whether a message of the session belongs to a turn or ended without one (O1)."""
    sql = "SELECT 1 FROM messages WHERE session_no = ? AND root_seq > 0 LIMIT 1"
    return first(connection, sql, (no,)) is not None


def session_no(connection: apsw.Connection, session_id: str) -> int | None:
    """Return the row number of a session, or none."""
    found: int | None = scalar(connection, "SELECT no FROM sessions WHERE id = ?", (session_id,))
    return found


def session(connection: apsw.Connection, session_id: str) -> SessionInfo | None:
    """Return one session, or none."""
    row = first(connection, f"{_INFO} WHERE id = ?", (session_id,))
    return None if row is None else _info(row)


def sessions(connection: apsw.Connection, limit: int, chatbot_id: str | None) -> tuple[SessionInfo, ...]:
    """Return sessions that are not wiped, the one last active first."""
    order = "ORDER BY last_activity DESC, no DESC LIMIT ?"
    of_chatbot = "AND chatbot_id = ?" if chatbot_id is not None else ""
    values = (limit,) if chatbot_id is None else (chatbot_id, limit)
    return tuple(map(_info, select(connection, f"{_INFO} WHERE state != 'tombstone' {of_chatbot} {order}", values)))


def sessions_named(connection: apsw.Connection, part: str, limit: int) -> tuple[SessionInfo, ...]:
    """Return sessions that are not wiped with `part` in their id, the one last active first."""
    sql = f"{_INFO} WHERE state != 'tombstone' AND instr(id, ?) > 0 ORDER BY last_activity DESC, no DESC LIMIT ?"
    return tuple(map(_info, select(connection, sql, (part, limit))))


def closed_sessions(connection: apsw.Connection) -> tuple[str, ...]:
    """Return the ids of sessions that are closed and not wiped, oldest first."""
    return tuple(id for (id,) in select(connection, "SELECT id FROM sessions WHERE state = 'closed' ORDER BY no"))


def open_session(connection: apsw.Connection, channel: Channel) -> str | None:
    """Return the id of a channel's open session, or none (M6)."""
    sql = "SELECT id FROM sessions WHERE chatbot_id = ? AND channel_id = ? AND state = 'open'"
    found: str | None = scalar(connection, sql, (channel.chatbot_id, channel.channel_id))
    return found


def changes(connection: apsw.Connection, after_rev: int, limit: int) -> Publication:
    """Return what has changed since `after_rev`, each row once in its present state, about `limit` of them (B1).

    Its `rev` is where to go on: the counter, or the last rev that fitted in.
    """
    top = head(connection)
    new, moved = (select(connection, sql, (after_rev, limit)) for sql in (_NEW, _MOVED))
    rows = sorted([*new, *moved], key=lambda row: int(row[2]))[:limit]
    gone = "SELECT message_id, session_id, rev FROM removed WHERE rev > ? ORDER BY rev LIMIT ?"
    removed = select(connection, gone, (after_rev, limit))
    upto = min([top, *(found[-1][2] for found in (rows, removed) if len(found) == limit)])
    return Publication(
        base=after_rev,
        rev=upto,
        changed=tuple(message_of(row) for row in rows if row[2] <= upto),
        removed=tuple(row for row in removed if row[2] <= upto),
    )


def leaving(connection: apsw.Connection, channel: Channel) -> tuple[Message, ...]:
    """Return a channel's messages not delivered yet, by seq (O2)."""
    sql = f"{_MESSAGES} WHERE m.status = 'pending' AND s.chatbot_id = ? AND s.channel_id = ? ORDER BY m.seq"
    return tuple(map(message_of, select(connection, sql, (channel.chatbot_id, channel.channel_id))))


def waiting(connection: apsw.Connection, no: int | None) -> tuple[Waiting, ...]:
    """Return the messages of a session that wait to be taken and belong to no turn, by seq."""
    sql = (
        "SELECT id, seq, role, metadata FROM messages INDEXED BY messages_open WHERE session_no = ?"
        " AND status IN ('pending_agent', 'processing') AND root_seq IS NULL ORDER BY seq"
    )
    return tuple(
        Waiting(id=id, seq=seq, is_person=person, wakes=person or bool(json.loads(metadata).get("wakes", False)))
        for id, seq, role, metadata in select(connection, sql, (no,))
        for person in [role == Role.USER]
    )


def turn(connection: apsw.Connection, no: int) -> tuple[Message, ...]:
    """Return the messages of a session's one open turn, claimed or returned: root first, then by place."""
    sql = (
        f"{_OPEN} WHERE m.session_no = ? AND m.status IN ('pending_agent', 'processing')"
        " AND m.root_seq IS NOT NULL ORDER BY m.place"
    )
    return tuple(map(message_of, select(connection, sql, (no,))))


def stops(connection: apsw.Connection, no: int | None, done: bool) -> tuple[Stop, ...]:
    """Return the stops of a session that are done, or those that are not, by seq."""
    sql = f"{_STOPS} WHERE t.session_no = ? AND t.done = ? ORDER BY t.seq"
    return tuple(_stop(connection, row) for row in select(connection, sql, (no, done)))


def open_stops(connection: apsw.Connection) -> tuple[Stop, ...]:
    """Return the stops of all sessions that are not done, by seq."""
    return tuple(_stop(connection, row) for row in select(connection, f"{_STOPS} WHERE NOT t.done ORDER BY t.seq"))


def stop(connection: apsw.Connection, seq: int) -> Stop | None:
    """Return one stop as it is now, or none."""
    row = first(connection, f"{_STOPS} WHERE t.seq = ?", (seq,))
    return None if row is None else _stop(connection, row)


def stop_outcome(connection: apsw.Connection, seq: int) -> StopOutcome:
    """Return what a stop did; nothing for an unknown one."""
    known = stop(connection, seq)
    if known is None:
        return StopOutcome()
    sql = "SELECT message_id, ended FROM covers WHERE stop_seq = ? AND ended IS NOT NULL ORDER BY message_id"
    rows = select(connection, sql, (seq,))
    no = session_no(connection, known.session_id)
    roots = [root.seq for root in map(partial(message, connection), known.covers) if root and root.id == root.root_id]
    ending, living = [], []
    for job, root_seq in _jobs(connection, no):
        is_its = known.reason is Reason.CLEARED or (known.forced and root_seq in roots)
        if is_its and (job.is_running or job.ending in _ENDED_WITH_A_STOP):
            ending.append(_job_words(job))
        elif job.is_running:
            living.append(_job_words(job))
    are_ended = known.reason is Reason.CLEARED  # with the session's jobs
    left = [words for root_seq in roots for words in _left_by(connection, no, root_seq, processes=not are_ended)]
    return StopOutcome(
        ended=tuple(id for id, ended in rows if ended != Status.PROCESSED),
        answered=tuple(id for id, ended in rows if ended == Status.PROCESSED),
        jobs=tuple(ending),
        survivors=(*living, *left),
    )


_ENDED_WITH_A_STOP = frozenset({JobEnding.FORCED, JobEnding.CLEARED})


def _left_by(connection: apsw.Connection, no: int | None, root_seq: int, *, processes: bool) -> Iterator[str]:
    """Yield what the calls of a turn left behind, in words: a function in its thread, and processes if wanted."""
    sql = "SELECT metadata FROM messages WHERE session_no = ? AND root_seq = ? AND type = 'tool_result' ORDER BY place"
    for (text,) in select(connection, sql, (no, root_seq)):
        metadata = json.loads(text)
        if isinstance(thread := metadata.get("thread"), str):
            yield f"a thread ({thread})"
        if not processes or metadata["outcome"] == Outcome.BACKGROUND:
            continue
        for process in metadata.get("survivors") or ():
            yield f"{process['name']} (pid {process['pid']})"


def jobs(connection: apsw.Connection, no: int | None) -> tuple[Job, ...]:
    """Return the jobs of a session, oldest first."""
    return tuple(job for job, _root_seq in _jobs(connection, no))


def job_of(connection: apsw.Connection, call_id: str) -> Job | None:
    """Return the job that a call became, or none."""
    row = first(connection, f"{_JOBS} WHERE j.call_id = ?", (call_id,))
    return None if row is None else job_of_row(row)


def _jobs(connection: apsw.Connection, no: int | None) -> list[tuple[Job, int]]:
    rows = select(connection, f"{_JOBS} WHERE j.session_no = ? ORDER BY j.number", (no,))
    return [(job_of_row(row), row[-1]) for row in rows]


def _job_words(job: Job) -> str:
    return f"{job.id}: {' '.join(job.title.split())[:_JOB_CHARS]}"


_JOB_CHARS = 120


def approvals(connection: apsw.Connection, no: int | None) -> tuple[Approval, ...]:
    """Return the calls of a session that wait for a person, in call order."""
    sql = (
        "SELECT c.id, s.id, m.root_id, m.metadata, c.expires, c.parts FROM calls c INDEXED BY calls_waiting"
        " JOIN messages m ON m.id = c.id JOIN sessions s ON s.no = c.session_no"
        " WHERE c.session_no = ? AND c.state = 'waiting' ORDER BY c.seq"
    )
    return tuple(map(approval_of, select(connection, sql, (no,))))


def mode(connection: apsw.Connection, channel: Channel) -> BusyMode | None:
    """Return the stored mode of a channel, or none when nobody changed it."""
    sql = "SELECT mode FROM channels WHERE chatbot_id = ? AND channel_id = ?"
    stored = scalar(connection, sql, (channel.chatbot_id, channel.channel_id))
    return None if stored is None else BusyMode(stored)


def chosen_model(connection: apsw.Connection, channel: Channel) -> str | None:
    """Return the model that a person chose for a channel, or none."""
    sql = "SELECT llm FROM channels WHERE chatbot_id = ? AND channel_id = ?"
    found: str | None = scalar(connection, sql, (channel.chatbot_id, channel.channel_id))
    return found


def last_seen(connection: apsw.Connection, channel: Channel) -> str | None:
    """Return the external id of a channel's last message stored or refused (M8), or none."""
    sql = "SELECT last_seen FROM channels WHERE chatbot_id = ? AND channel_id = ?"
    found: str | None = scalar(connection, sql, (channel.chatbot_id, channel.channel_id))
    return found


def runnable(
    connection: apsw.Connection, channels: tuple[Channel, ...] | None, max_self_started: int
) -> tuple[str, ...]:
    """Return the sessions that a worker can be started for (I6), in the order of their oldest open message."""
    rows = select(connection, f"{_RUNNABLE} GROUP BY s.no ORDER BY min(m.seq)", (max_self_started,))
    return tuple(
        id
        for id, chatbot_id, channel_id in rows
        if channels is None or Channel(chatbot_id=chatbot_id, channel_id=channel_id) in channels
    )


def is_runnable(connection: apsw.Connection, no: int | None, max_self_started: int) -> bool:
    """Return whether a worker can be started for one session (I6)."""
    return first(connection, f"{_RUNNABLE} AND m.session_no = ? LIMIT 1", (max_self_started, no)) is not None


def calls(connection: apsw.Connection, no: int, root_seq: int) -> tuple[OpenCall, ...]:
    """Return the calls of a turn that have no result yet, in call order."""
    sql = "SELECT id, state FROM calls WHERE session_no = ? AND root_seq = ? AND published = 0 ORDER BY seq"
    rows = select(connection, sql, (no, root_seq))
    return tuple(OpenCall(call_id=id, state=CallState(state)) for id, state in rows)


def spent(connection: apsw.Connection, no: int, root_seq: int) -> tuple[int, float]:
    """Return how many steps a turn has, and the seconds that they and its results took (B4)."""
    row = first(connection, "SELECT steps, spent_s FROM turns WHERE session_no = ? AND root_seq = ?", (no, root_seq))
    return (0, 0.0) if row is None else (row[0], row[1])


def calls_of(connection: apsw.Connection, root_id: str) -> tuple[OpenCall, ...]:
    """Return the open calls of the turn with this root; empty for an unknown one."""
    row = first(connection, "SELECT session_no, seq FROM messages WHERE id = ?", (root_id,))
    return () if row is None else calls(connection, *row)


def chunks(connection: apsw.Connection, message_id: str) -> tuple[Chunk, ...]:
    """Return the parts of a delivery as planned, in order; empty before the plan is stored."""
    sql = f"SELECT {CHUNK_COLUMNS} FROM chunks WHERE message_id = ? ORDER BY number"
    return tuple(map(chunk_of, select(connection, sql, (message_id,))))


def head(connection: apsw.Connection) -> int:
    """Return the counter: no row has a higher `rev`, and no deleted one had.

    Messages carry their numbers themselves; what is written down is the number given last to anything else.
    """
    return max(found or 0 for found in select(connection, _HEAD)[0])


def _info(row: tuple[Any, ...]) -> SessionInfo:
    id, chatbot_id, channel_id, state, created, last_activity, turns, title = row
    return SessionInfo(
        id=id,
        chatbot_id=chatbot_id,
        channel_id=channel_id,
        state=SessionState(state),
        created=created,
        last_activity=last_activity,
        turns=turns,
        title=title,
    )


def _stop(connection: apsw.Connection, row: tuple[Any, ...]) -> Stop:
    covers = select(connection, "SELECT message_id FROM covers WHERE stop_seq = ?", (row[0],))
    return stop_of(row, (id for (id,) in covers))
