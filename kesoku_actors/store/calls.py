"""Calls (C3, O3): each move of a call's state is one guarded update, so the first to come decides."""

from __future__ import annotations

import apsw

from kesoku_actors.protocol import CallState
from kesoku_actors.store.port import CallProcess, CallStarted, DeadCall, StageOutcome
from kesoku_actors.store.rows import to_json
from kesoku_actors.store.sql import select
from kesoku_actors.store.transaction import Transaction

_STAGE = (
    "UPDATE calls SET state = 'settled', outcome = ?, content = ?, duration_s = ?, metadata = ?"
    " WHERE id = ? AND state != 'settled' RETURNING expires, decided_by"
)
_SESSION = "SELECT s.id FROM calls c JOIN sessions s ON s.no = c.session_no WHERE c.id = ?"


def start(tx: Transaction, command: CallStarted) -> bool:
    """`committed -> started`, before the process or function is entered."""
    sql = "UPDATE calls SET state = 'started', life = ? WHERE id = ? AND state = 'committed' RETURNING 1"
    return tx.one(sql, (tx.life, command.call_id)) is not None


def record_process(tx: Transaction, command: CallProcess) -> None:
    """Store where a started call runs."""
    sql = "UPDATE calls SET pid = ?, process_start = ? WHERE id = ? AND state = 'started'"
    tx.execute(sql, (command.pid, command.process_start, command.call_id))


def stage(tx: Transaction, command: StageOutcome) -> bool:
    """Anything -> `settled`; the first outcome stands."""
    staged = (command.outcome, command.content, command.duration_s, to_json(command.metadata))
    row = tx.first(_STAGE, (*staged, command.call_id))
    if row is not None and row[0] is not None and row[1] is None:  # it was waiting for a person
        session_id = tx.one(_SESSION, (command.call_id,))
        tx.changes.approvals.append((command.call_id, session_id, CallState.SETTLED))
    return row is not None


def commands(connection: apsw.Connection) -> tuple[DeadCall, ...]:
    """Return the calls whose process was recorded."""
    sql = (
        "SELECT c.id, s.id, c.pid, c.process_start FROM calls c JOIN sessions s ON s.no = c.session_no"
        " WHERE c.pid IS NOT NULL ORDER BY c.seq"
    )
    return tuple(
        DeadCall(call_id=call_id, session_id=session_id, pid=pid, process_start=start)
        for call_id, session_id, pid, start in select(connection, sql)
    )
