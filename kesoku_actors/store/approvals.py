"""Approvals (T7): a call waits for a person, and the first answer decides.

Invariants: each answer is one guarded update of a call that waits; a call that was approved is not asked about again;
a yes for the session is stored with it, and lets every other call that it covers go, also those that wait already.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kesoku_actors.protocol import CallState, Outcome, Standing
from kesoku_actors.store import queries
from kesoku_actors.store.port import AnswerApproval, ApprovalAnswer, CallExpired, CallWaiting
from kesoku_actors.store.rows import to_json
from kesoku_actors.store.transaction import Transaction

_CALL: Final = (
    "SELECT c.state, c.decided_by, c.expires, c.outcome, c.parts, c.root_seq, c.session_no, s.id,"
    " json_extract(m.metadata, '$.tool_name') FROM calls c JOIN sessions s ON s.no = c.session_no"
    " JOIN messages m ON m.id = c.id WHERE c.id = ?"
)
_SETTLE: Final = (
    "UPDATE calls SET state = 'settled', outcome = ?, content = ?, duration_s = 0.0, metadata = ?, decided_by = ?"
    " WHERE id = ?"
)
WHOLE_TOOL: Final = ""
"""The part that stands for the tool as a whole."""


def wait(tx: Transaction, command: CallWaiting) -> Standing:
    """`committed -> waiting`, unless it was approved before or a yes for the session covers it."""
    row = tx.first(_CALL, (command.call_id,))
    if row is None:
        return Standing(state=None)
    state, decided_by, expires, outcome, _parts, _root_seq, session_no, session_id, tool = row
    if state != CallState.COMMITTED:
        ended = Outcome(outcome) if outcome is not None else None
        return Standing(state=CallState(state), expires=expires, outcome=ended)
    if decided_by is None and (given_by := _given_by(tx, session_no, tool, command.parts)) is not None:
        tx.execute("UPDATE calls SET decided_by = ? WHERE id = ?", (given_by, command.call_id))
        decided_by = given_by
    if decided_by is not None or command.expires is None:
        return Standing(state=CallState.COMMITTED, is_approved=decided_by is not None)
    parts = None if command.parts is None else to_json(command.parts)
    asked = "UPDATE calls SET state = 'waiting', expires = ?, parts = ? WHERE id = ?"
    tx.execute(asked, (command.expires, parts, command.call_id))
    tx.changes.approvals.append((command.call_id, session_id, CallState.WAITING))
    return Standing(state=CallState.WAITING, expires=command.expires)


def expire(tx: Transaction, command: CallExpired) -> bool:
    """`waiting -> settled`: nobody has answered in time."""
    row = tx.first(_CALL, (command.call_id,))
    if row is None or row[0] != CallState.WAITING:
        return False
    text = "The call was not run: nobody approved it in time."
    tx.execute(_SETTLE, (Outcome.ERROR, text, to_json({"reason": "expired"}), None, command.call_id))
    tx.changes.approvals.append((command.call_id, row[7], CallState.SETTLED))
    return True


def answer(tx: Transaction, command: AnswerApproval) -> ApprovalAnswer:
    """`waiting -> committed` (approved) or `settled` (denied), by whoever may answer and is the first."""
    row = tx.first(_CALL, (command.call_id,))
    if row is None:
        return ApprovalAnswer(accepted=False, state=None, decided_by=None)
    state, decided_by, _expires, _outcome, parts, root_seq, session_no, session_id, tool = row
    if state != CallState.WAITING:
        return ApprovalAnswer(accepted=False, state=CallState(state), decided_by=decided_by)
    if not (command.is_admin or _asked(tx, session_no, root_seq, command)):
        return ApprovalAnswer(accepted=False, state=CallState.WAITING, decided_by=None, is_allowed=False)
    if not command.approved:
        text = f"The call was not run: it was denied by {command.by}."
        denied = (Outcome.ERROR, text, to_json({"reason": "denied"}), command.by, command.call_id)
        tx.execute(_SETTLE, denied)
        tx.changes.approvals.append((command.call_id, session_id, CallState.SETTLED))
        return ApprovalAnswer(accepted=True, state=CallState.SETTLED, decided_by=command.by)
    _approve(tx, command.call_id, session_id, command.by)
    for_session = command.for_session and parts is not None
    if for_session:
        _grant(tx, session_no, tool, json.loads(parts), command.by)
        for waiting in queries.approvals(tx.connection, session_no):
            if _given_by(tx, session_no, waiting.tool, waiting.parts) is not None:
                _approve(tx, waiting.call_id, session_id, command.by)
    return ApprovalAnswer(accepted=True, state=CallState.COMMITTED, decided_by=command.by, is_for_session=for_session)


def _approve(tx: Transaction, call_id: str, session_id: str, by: str) -> None:
    tx.execute("UPDATE calls SET state = 'committed', decided_by = ? WHERE id = ?", (by, call_id))
    tx.changes.approvals.append((call_id, session_id, CallState.COMMITTED))


def _grant(tx: Transaction, session_no: int, tool: str, parts: list[str], by: str) -> None:
    for part in parts or [WHOLE_TOOL]:
        tx.execute("INSERT OR IGNORE INTO grants VALUES (?, ?, ?, ?)", (session_no, tool, part, by))


def _given_by(tx: Transaction, session_no: int, tool: str, parts: tuple[str, ...] | None) -> str | None:
    """Return who said yes for the session to all of this; none when nobody did."""
    if parts is None:
        return None
    sql = "SELECT part, given_by FROM grants WHERE session_no = ? AND tool = ?"
    given: dict[str, str] = dict(tx.select(sql, (session_no, tool)))
    wanted = set(parts) or {WHOLE_TOOL}
    return next(given[part] for part in sorted(wanted)) if wanted <= given.keys() else None


def _asked(tx: Transaction, session_no: int, root_seq: int, command: AnswerApproval) -> bool:
    """Say whether who answers is who asked: one of the people of the turn; the last person when it had none."""
    people = "SELECT sender, metadata FROM messages WHERE session_no = ? AND role = 'user' AND root_seq"
    rows = tx.select(f"{people} = ?", (session_no, root_seq)) or tx.select(
        f"{people} < ? ORDER BY root_seq DESC, place DESC LIMIT 1", (session_no, root_seq)
    )
    return any(_is_by(sender, json.loads(metadata), command) for sender, metadata in rows)


def _is_by(sender: str, metadata: dict[str, Any], command: AnswerApproval) -> bool:
    """Ids decide where there are any: a name can be taken (T4)."""
    sender_id = metadata.get("sender_id")
    return sender == command.by if sender_id is None else sender_id == command.by_id
