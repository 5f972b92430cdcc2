"""Turns: taking messages into one, ending them, the results of its calls, and giving it back.

Invariants: a session has at most one open turn, that is, one root whose messages are claimed or returned. A message
gets its root once (O1). A call gets one result, ever (O4). A turn goes back whole (C2).
"""

from __future__ import annotations

import json
from typing import Any, Final

from kesoku_actors.protocol import CallState, Message, Outcome, Reason, Role, Status, Type
from kesoku_actors.store import queries
from kesoku_actors.store.jobs import tell_end
from kesoku_actors.store.port import Ending, StoreFault, Taking
from kesoku_actors.store.posting import notify
from kesoku_actors.store.rows import changed
from kesoku_actors.store.stops import covering, settle_stops
from kesoku_actors.store.transaction import Session, Transaction

_UNSTAGED: Final = {
    CallState.COMMITTED: (Outcome.INTERRUPTED, "The call was interrupted before it started; nothing was done."),
    CallState.WAITING: (
        Outcome.INTERRUPTED,
        "The call was withdrawn while it waited for approval; nothing was done.",
    ),
    CallState.STARTED: (Outcome.UNKNOWN, "The call had started; how it ended is not known."),
}


class PlanInvalid(StoreFault):
    """A commit's plan breaks a rule; a fault of ours."""


def moved(message: Message, status: Status, reason: Reason | None) -> Message:
    """Return the message in its next status (M2), with the reason in its metadata (I5)."""
    metadata = message.metadata if reason is None else {**message.metadata, "reason": str(reason)}
    message.check_move(status)
    return changed(message, status=status, metadata=metadata)


def take(tx: Transaction, session: Session, taking: Taking, root: Message) -> Message:
    """A waiting or returned message is `processing` in the turn of `root`."""
    message = stored(tx, taking.message_id)
    if message.root_id not in (None, root.id):
        raise PlanInvalid(f"C2: {message.id} belongs to the turn {message.root_id}, not to {root.id}")
    if message.root_id is None and session.turn_is_open and session.turn_root != root.seq:
        raise PlanInvalid(f"C2: {message.id} cannot be taken before the turn that is open")
    taken = moved(message, Status.PROCESSING, taking.reason)
    return tx.save(taken) if message.root_id else tx.save_in_turn(taken, root)


def end(tx: Transaction, session: Session, ending: Ending, turn_root: Message | None) -> Message:
    """A message reaches its terminal status; one without a root gets its home in the history first (O1)."""
    message = stored(tx, ending.message_id)
    ended = moved(message, ending.status, ending.reason)
    if session.has_open(message.seq):
        _end_turn(tx, session)
    if message.root_id is not None:
        return tx.save(ended)
    return tx.save_in_turn(ended, turn_root if turn_root and message.seq < turn_root.seq else message)


def stored(tx: Transaction, message_id: str) -> Message:
    """Return a message that must be there. Raises `PlanInvalid`."""
    message = tx.get(message_id)
    if message is None:
        raise PlanInvalid(f"there is no message {message_id!r}")
    return message


def begin_turn(tx: Transaction, session: Session, root: Message, *, by_person: bool) -> None:
    """Record the first claim of a root; it counts as self-started unless a person is in it (I6)."""
    session.begin_turn(root.seq, tx.clock.wall())
    session.self_started = 0 if by_person else session.self_started + 1


def publish_results(tx: Transaction, session: Session, root: Message, *, only_staged: bool) -> None:
    """Insert the result of every call of the open turn that has none, in call order (O3, O4).

    With `only_staged`, raises `PlanInvalid` if a call is not settled yet.
    """
    columns = "id, state, outcome, content, duration_s, metadata"
    sql = f"SELECT {columns} FROM calls WHERE session_no = ? AND root_seq = ? AND published = 0 ORDER BY seq"
    spent_s = 0.0
    jobs: list[str] = []
    for call_id, state, outcome, content, duration_s, metadata in tx.select(sql, (session.no, root.seq)):
        if state != CallState.SETTLED:
            if only_staged:
                raise PlanInvalid(f"O3: the call {call_id} is not settled")
            outcome, content = _UNSTAGED[CallState(state)]
        spent_s += duration_s or 0.0
        _insert_result(tx, session, root, call_id, outcome, content, duration_s or 0.0, json.loads(metadata or "{}"))
        settled = "state = 'settled', outcome = ?, published = 1, content = NULL, metadata = NULL"
        tx.execute(f"UPDATE calls SET {settled} WHERE id = ?", (outcome, call_id))
        if outcome == Outcome.BACKGROUND:
            jobs.append(call_id)
    for call_id in jobs:  # behind all results of the batch, which stand together (O3)
        tell_end(tx, session, call_id)
    session.turn_spent_s += spent_s


def give_back(tx: Transaction, session: Session, *, clean: bool, max_attempts: int) -> tuple[Message, ...]:
    """The worker is no more: its turn waits again, or ends when it was tried too often (C2). Return changed rows."""
    session.epoch = session.worker = session.hired = None
    tx.memory.hire(session.id, None)
    if not session.turn_is_open:
        return ()
    turn = [row for row in queries.turn(tx.connection, session.no) if row.status is Status.PROCESSING]
    if not turn:
        return ()
    root = stored(tx, turn[0].root_id or turn[0].id)
    session.turn_attempts += not clean
    if session.turn_attempts < max_attempts:
        rows = tuple(tx.save(moved(message, Status.PENDING_AGENT, None)) for message in turn)
    else:
        rows = _give_up(tx, session, root, turn, session.turn_attempts)
        _end_turn(tx, session)
    settle_stops(tx, session)
    return rows


def _end_turn(tx: Transaction, session: Session) -> None:
    """The open turn is over: what was counted of it is kept beside what the next one counts."""
    session.turn_is_open = 0
    counted = (session.turn_began, session.turn_attempts, session.turn_steps, session.turn_spent_s)
    tx.execute("INSERT INTO ended_turns VALUES (?, ?, ?, ?, ?, ?)", (session.no, session.turn_root, *counted))


def _give_up(
    tx: Transaction, session: Session, root: Message, turn: list[Message], attempts: int
) -> tuple[Message, ...]:
    stop_reason = covering(tx, turn)
    publish_results(tx, session, root, only_staged=False)
    if stop_reason is not None:
        return tuple(tx.save(moved(message, Status.INTERRUPTED, stop_reason)) for message in turn)
    text = f"This could not be finished: {attempts} attempts broke off. Send it again if you like."
    notice = notify(tx, session, text, root, {"reason": str(Reason.ATTEMPTS)})
    return (notice, *(tx.save(moved(message, Status.ERROR, Reason.ATTEMPTS)) for message in turn))


def _insert_result(
    tx: Transaction,
    session: Session,
    root: Message,
    call_id: str,
    outcome: str,
    content: str,
    duration_s: float,
    metadata: dict[str, Any],
) -> None:
    call = stored(tx, call_id)
    name = call.metadata["tool_name"]
    facts = {"tool_name": name, "tool_call_id": call.metadata["tool_call_id"]}
    tx.insert(
        session,
        role=Role.TOOL,
        type=Type.TOOL_RESULT,
        status=Status.RESPONDED,
        sender=name,
        content=content,
        metadata={**metadata, **facts, "outcome": outcome, "duration_s": duration_s},
        root=root,
        parent_id=call_id,
    )
