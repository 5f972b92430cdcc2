"""Calls (C3, O3): each move of a call's state is one guarded update, so the first to come decides."""

from __future__ import annotations

from kesoku_actors.protocol import CallState, Outcome
from kesoku_actors.store.port import (
    AnswerApproval,
    ApprovalAnswer,
    CallProcess,
    CallStarted,
    CallWaiting,
    StageOutcome,
)
from kesoku_actors.store.rows import to_json
from kesoku_actors.store.transaction import Transaction

_STAGE = (
    "UPDATE calls SET state = 'settled', outcome = ?, content = ?, duration_s = ?, metadata = ?"
    " WHERE id = ? AND state != 'settled' RETURNING 1"
)


def start(tx: Transaction, command: CallStarted) -> bool:
    """`committed -> started`, before the process or function is entered."""
    sql = "UPDATE calls SET state = 'started', life = ? WHERE id = ? AND state = 'committed' RETURNING 1"
    return tx.one(sql, (tx.life, command.call_id)) is not None


def wait(tx: Transaction, command: CallWaiting) -> bool:
    """`committed -> waiting`; a call that was approved before is not asked about again (T7)."""
    sql = (
        "UPDATE calls SET state = 'waiting', expires = ?"
        " WHERE id = ? AND state = 'committed' AND decided_by IS NULL RETURNING 1"
    )
    return tx.one(sql, (command.expires, command.call_id)) is not None


def record_process(tx: Transaction, command: CallProcess) -> None:
    """Store where a started call runs."""
    sql = "UPDATE calls SET pid = ?, process_start = ? WHERE id = ? AND state = 'started'"
    tx.execute(sql, (command.pid, command.process_start, command.call_id))


def stage(tx: Transaction, command: StageOutcome) -> bool:
    """Anything -> `settled`; the first outcome stands."""
    staged = (command.outcome, command.content, command.duration_s, to_json(command.metadata))
    return tx.one(_STAGE, (*staged, command.call_id)) is not None


def answer_approval(tx: Transaction, command: AnswerApproval) -> ApprovalAnswer:
    """`waiting -> committed` (approved) or `settled` (denied), by whoever answers first (T7)."""
    sql = "SELECT c.state, c.decided_by, s.id FROM calls c JOIN sessions s ON s.no = c.session_no WHERE c.id = ?"
    row = tx.first(sql, (command.call_id,))
    if row is None:
        return ApprovalAnswer(accepted=False, state=None, decided_by=None)
    state, decided_by, session_id = row
    if state != CallState.WAITING:
        return ApprovalAnswer(accepted=False, state=CallState(state), decided_by=decided_by)
    decided = "UPDATE calls SET state = 'committed', decided_by = ? WHERE id = ?"
    tx.execute(decided, (command.by, command.call_id))
    if not command.approved:
        denied = (Outcome.ERROR, f"The call was denied by {command.by}.", 0.0, to_json({"reason": "denied"}))
        tx.select(_STAGE, (*denied, command.call_id))
    tx.changes.approvals.append((command.call_id, session_id, command.approved))
    state = CallState.COMMITTED if command.approved else CallState.SETTLED
    return ApprovalAnswer(accepted=True, state=state, decided_by=command.by)
