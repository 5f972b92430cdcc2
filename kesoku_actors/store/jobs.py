"""Jobs (I8): a call that goes on behind its result, and the one notice of its end.

Invariants: a call becomes a job in the transaction that stages its result; a job ends once, and its notice is stored
in the transaction that ends it, after the result of its call is published, or in the one that publishes it. A session
that is not open any more is told nothing.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.protocol import (
    SYSTEM,
    WAKING,
    CallState,
    Channel,
    JobBegun,
    JobEnding,
    JobState,
    Outcome,
    Role,
    SessionState,
    Status,
    TooManyJobs,
    Type,
    job_id,
)
from kesoku_actors.store import queries
from kesoku_actors.store.port import BeginJob, DeadCall, EndJob
from kesoku_actors.store.rows import to_json
from kesoku_actors.store.transaction import Session, Transaction

_CALL: Final = "SELECT c.state, c.root_seq, s.id FROM calls c JOIN sessions s ON s.no = c.session_no WHERE c.id = ?"
_RUNNING: Final = "SELECT count(*) FROM jobs WHERE session_no = ? AND state = 'running'"
_NEXT: Final = "SELECT coalesce(max(number), 0) + 1 FROM jobs WHERE session_no = ?"
_STAGED: Final = (
    "UPDATE calls SET state = 'settled', outcome = ?, content = ?, duration_s = ?, metadata = ? WHERE id = ?"
)


def begin_job(tx: Transaction, command: BeginJob) -> JobBegun | TooManyJobs | None:
    """`started -> settled` with the outcome `background`, and the job; none when the call is settled or gone."""
    known = queries.job_of(tx.connection, command.call_id)
    if known is not None:
        return JobBegun(number=known.number)
    row = tx.first(_CALL, (command.call_id,))
    if row is None or row[0] != CallState.STARTED:
        return None
    session = tx.session(row[2])
    if tx.one(_RUNNING, (session.no,)) >= command.max_jobs:
        return TooManyJobs(max_jobs=command.max_jobs)
    number: int = tx.one(_NEXT, (session.no,))
    before, after = command.content
    content, metadata = f"{before}{job_id(number)}{after}", {**command.metadata, "job": job_id(number)}
    tx.execute(_STAGED, (Outcome.BACKGROUND, content, command.duration_s, to_json(metadata), command.call_id))
    columns = "(session_no, number, call_id, root_seq, title, output_file, state, life, began)"
    values = (session.no, number, command.call_id, row[1], command.title, command.output_file, JobState.RUNNING)
    tx.execute(f"INSERT INTO jobs {columns} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, tx.life, tx.clock.wall()))
    return JobBegun(number=number)


def end_job(tx: Transaction, command: EndJob) -> bool:
    """A job has ended: tell of it now, or when the result of its call is published. False when it had ended before."""
    sql = (
        "UPDATE jobs SET state = 'over', ended = ?, ending = ?, detail = ?, notice = ?"
        " WHERE call_id = ? AND state = 'running' RETURNING session_no"
    )
    values = (tx.clock.wall(), command.ending, command.detail, command.notice, command.call_id)
    if tx.one(sql, values) is None:
        return False
    published = "SELECT s.id FROM calls c JOIN sessions s ON s.no = c.session_no WHERE c.id = ? AND c.published = 1"
    session_id = tx.one(published, (command.call_id,))
    if session_id is not None:
        tell_end(tx, tx.session(session_id), command.call_id)
    return True


def tell_end(tx: Transaction, session: Session, call_id: str) -> None:
    """Store the notice of a job that is over; its call's result is published. Nothing for any other call."""
    sql = "SELECT number, ending, notice FROM jobs WHERE call_id = ? AND state = 'over'"
    row = tx.first(sql, (call_id,))
    if row is None:
        return
    number, ending, notice = row
    tx.execute("UPDATE jobs SET state = 'told', notice = NULL WHERE call_id = ?", (call_id,))
    if session.state is SessionState.OPEN:
        wakes = JobEnding(ending) in WAKING
        tx.insert(
            session,
            role=Role.SYSTEM,
            type=Type.TEXT,
            status=Status.PENDING_AGENT,
            sender=SYSTEM,
            content=notice,
            metadata={"notice": "job", "job": job_id(number), "ending": ending, "wakes": wakes},
        )


def dead_jobs(tx: Transaction, channels: tuple[Channel, ...] | None) -> tuple[DeadCall, ...]:
    """Return the jobs that an earlier life of the process began and did not end."""
    sql = (
        "SELECT j.call_id, s.id, s.chatbot_id, s.channel_id, c.pid, c.process_start, j.number, j.title FROM jobs j"
        " JOIN sessions s ON s.no = j.session_no JOIN calls c ON c.id = j.call_id"
        " WHERE j.state = 'running' AND j.life != ? ORDER BY j.session_no, j.number"
    )
    return tuple(
        DeadCall(call_id=call_id, session_id=session_id, pid=pid, process_start=start, job=job_id(number), title=title)
        for call_id, session_id, chatbot_id, channel_id, pid, start, number, title in tx.select(sql, (tx.life,))
        if channels is None or Channel(chatbot_id=chatbot_id, channel_id=channel_id) in channels
    )
