"""A worker's commit: one plan, carried out whole or not at all (C10).

The guards, in this order: a commit known by its id is answered from what it did; the worker must be the registered
one and its turn still claimed (`stale`); what it takes or ends must still be open, no stop may cover what it takes
anew, and nobody who spoke earlier may be left behind (`moved`); the plan must keep the rules (`invalid`). Then the
parts are carried out in the order of the fields of `Commit`.

A commit refused as `moved` keeps its step, because that inference has happened, and is remembered like one that
stands: sent again it neither counts the step twice nor takes effect after all.
"""

from __future__ import annotations

import json
from typing import Final

from kesoku_actors.protocol import (
    ASKS,
    ENDED,
    CallState,
    Message,
    Role,
    Status,
    Type,
)
from kesoku_actors.store import queries, spending
from kesoku_actors.store.attachments import settle_as_late
from kesoku_actors.store.port import (
    Commit,
    CommitReply,
    Committed,
    RefusalReason,
    Refused,
    ResultMode,
)
from kesoku_actors.store.rows import step_to_json, to_json
from kesoku_actors.store.sessions import mode_of
from kesoku_actors.store.stops import is_covered, open_stops, settle_stops
from kesoku_actors.store.transaction import Session, Transaction
from kesoku_actors.store.turns import (
    PlanInvalid,
    begin_turn,
    end,
    give_back,
    publish_results,
    stored,
    take,
)
from kesoku_actors.store.workers import is_registered, write_down
from kesoku_actors.values import frozen

_LEFT_OPEN: Final = (
    "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_open WHERE session_no = ?1"
    " AND status IN ('pending_agent', 'processing') AND root_seq = ?2),"
    " EXISTS (SELECT 1 FROM calls WHERE session_no = ?1 AND root_seq = ?2 AND published = 0)"
)


def commit(tx: Transaction, command: Commit) -> CommitReply:
    """Carry out a worker's plan, or refuse it. Raises `PlanInvalid` and `InvalidMessage` for `invalid`."""
    session = tx.known_session(command.key.session_id)
    if session is None:
        return _stale(f"the session {command.key.session_id!r} is gone")
    known = "SELECT turn_id, message_ids, moved FROM commits WHERE session_no = ? AND id = ?"
    row = tx.first(known, (session.no, command.id))
    if row is not None:
        turn_id, message_ids, moved = row
        changed, said = json.loads(message_ids)
        return _answer(tx, session, command, turn_id, Traces(rows=tuple(changed), said=tuple(said)), moved)
    if not is_registered(session, command.key):
        return _stale(f"worker {command.key.worker} of epoch {command.key.epoch} is not the registered one")
    root = tx.get(command.root_id) if command.root_id is not None else None
    if command.root_id is not None and (root is None or not _is_claimed(root, session)):
        return _stale(f"the turn {command.root_id} is not claimed")
    _check_plan(command)
    write_down(tx, session)
    why = _moved(tx, session, command)
    if why is not None:
        if root is not None:
            _add_step(tx, session, command, root, ())
        return _remember(tx, session, command, Traces(), why)
    said = _carry_out(tx, session, command, root)
    return _remember(tx, session, command, Traces(rows=tuple(tx.changes.messages), said=said), None)


def invalid(detail: str) -> Refused:
    """Return the refusal of a plan that breaks a rule."""
    return Refused(reason=RefusalReason.INVALID, detail=detail)


@frozen(kw_only=True)
class Traces:
    """The messages that a commit inserted or changed, and those of them that the model said, by id."""

    rows: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def _carry_out(tx: Transaction, session: Session, command: Commit, root: Message | None) -> tuple[str, ...]:
    """Do what the plan says; return the ids of what the model said."""
    said: tuple[str, ...] = ()
    for message_id in command.late:
        settle_as_late(tx, stored(tx, message_id))
    if root is not None:
        said = _insert(tx, session, command, root)
        _add_step(tx, session, command, root, said)
        if command.results is not ResultMode.NONE:
            publish_results(tx, session, root, only_staged=command.results is ResultMode.PUBLISH)
    _check_ended_whole(tx, session, [end(tx, session, ending, root) for ending in command.ends])
    adopted = [take(tx, session, taking, root) for taking in command.adopt if root is not None]
    if any(message.is_person for message in adopted):
        session.self_started = 0
    if command.claim is not None:
        _claim(tx, session, command)
    if command.give_back:
        give_back(tx, session, clean=True, max_attempts=_NEVER)
    settle_stops(tx, session)
    return said


_NEVER: Final = 1 << 31
"""More attempts than there will be: a turn given back in order is not given up."""


def _check_ended_whole(tx: Transaction, session: Session, ended: list[Message]) -> None:
    """A turn ends with all its messages (I5), and every call of it has its result by then (O4)."""
    roots = {message.id: message for message in ended if message.root_id == message.id}
    if not roots:
        return
    for root in roots.values():
        ((is_open, has_calls),) = tx.select(_LEFT_OPEN, (session.no, root.seq))
        if is_open:
            raise PlanInvalid("I5: a turn ends without some of its messages")
        if has_calls:
            raise PlanInvalid("O4: a turn ends with calls that have no result")


def _claim(tx: Transaction, session: Session, command: Commit) -> None:
    assert command.claim is not None
    root = stored(tx, command.claim.message_id)
    taken = [take(tx, session, taking, root) for taking in (command.claim, *command.claim_adopts)]
    if root.root_id is None:
        begin_turn(tx, session, root, by_person=any(message.is_person for message in taken))


def _insert(tx: Transaction, session: Session, command: Commit, root: Message) -> tuple[str, ...]:
    """Insert the drafts; return the ids of those the model said."""
    said = []
    for draft in command.insert:
        message = tx.insert(
            session,
            role=draft.role,
            type=draft.type,
            status=draft.status,
            sender=draft.sender,
            content=draft.content,
            metadata=draft.metadata,
            root=root,
            parent_id=root.id,
        )
        if draft.role is Role.ASSISTANT:
            said.append(message.id)
        if draft.type is Type.TOOL_CALL:
            columns = "(id, session_no, root_seq, seq, state)"
            values = (message.id, session.no, root.seq, message.seq, CallState.COMMITTED)
            tx.execute(f"INSERT INTO calls {columns} VALUES (?, ?, ?, ?, ?)", values)
    return tuple(said)


def _add_step(tx: Transaction, session: Session, command: Commit, root: Message, said: tuple[str, ...]) -> None:
    step = command.step
    if step is None:
        return
    session.turn_steps += 1
    session.turn_spent_s += step.duration_s
    values = (session.no, root.seq, session.turn_steps, root.id, step_to_json(step), to_json(said))
    tx.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", values)


def _is_claimed(root: Message, session: Session) -> bool:
    """A claimed root is `processing`, and then the registered worker claimed it: giving back undoes both (C2)."""
    return root.status is Status.PROCESSING and root.root_id == root.id and root.session_id == session.id


def _check_plan(command: Commit) -> None:
    turn_only = (command.step, command.insert, command.adopt, command.results is not ResultMode.NONE)
    if command.root_id is None and any(turn_only):
        raise PlanInvalid("M4: a step, drafts, results and adoptions need a turn")
    if command.claim is not None and command.claim.message_id == command.root_id:
        raise PlanInvalid("I2: a turn cannot pivot to itself")
    if command.claim is None and command.claim_adopts:
        raise PlanInvalid("messages are adopted by a claim, and there is none")
    for draft in command.insert:
        if draft.type is Type.TOOL_RESULT or draft.status in ASKS:
            raise PlanInvalid(f"O3: a worker cannot insert a {draft.type} that is {draft.status}")


def _moved(tx: Transaction, session: Session, command: Commit) -> str | None:
    """Return why the plan no longer fits what is stored, or none."""
    taken = [*command.adopt, *([command.claim] if command.claim else []), *command.claim_adopts]
    ended, messages = [], []
    for ending in command.ends:
        message = tx.get(ending.message_id)
        if message is None or message.status in ENDED or message.session_id != session.id:
            return f"{ending.message_id} has ended or is gone"
        ended.append(message)
    for taking in taken:
        message = tx.get(taking.message_id)
        if message is None or message.status is not Status.PENDING_AGENT or message.session_id != session.id:
            return f"{taking.message_id} is not waiting"
        if message.root_id is None and is_covered(tx, message, session):
            return f"a stop covers {taking.message_id}"
        messages.append(message)
    return _left_behind(tx, session, messages, ended)


def _left_behind(tx: Transaction, session: Session, taken: list[Message], ended: list[Message]) -> str | None:
    last = max((message.seq for message in taken if message.is_person), default=0)
    dealt_with = {message.id for message in (*taken, *ended)}
    for each in tx.waiting(session):
        if each.is_person and each.seq < last and each.id not in dealt_with and not is_covered(tx, each, session):
            return f"O2: {each.id} was said before"
    return None


def _stale(detail: str) -> Refused:
    return Refused(reason=RefusalReason.STALE, detail=detail)


def _remember(tx: Transaction, session: Session, command: Commit, traces: Traces, moved: str | None) -> CommitReply:
    turn_id = command.claim.message_id if command.claim else command.root_id
    ids = to_json([traces.rows, traces.said])
    tx.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?)", (session.no, command.id, turn_id, ids, moved))
    return _answer(tx, session, command, turn_id, traces, moved)


def _answer(
    tx: Transaction, session: Session, command: Commit, turn_id: str | None, traces: Traces, moved: str | None
) -> CommitReply:
    """Return what is told of a remembered commit: read now, also when it is sent again."""
    stops = open_stops(tx, session)
    if moved is not None:
        waiting = tuple(tx.waiting(session))
        return Refused(reason=RefusalReason.MOVED, detail=moved, waiting=waiting, stops=stops)
    turn = tx.get(turn_id) if turn_id is not None else None
    rows = [row for row in map(tx.get, traces.rows) if row is not None]
    steps, spent_s = _spent(tx, session, turn) if turn else (0, 0.0)
    is_resumed = turn is not None and steps > 0 and command.claim is not None
    tokens, cost = spending.of_turn(tx.connection, session.no, turn.seq) if turn and is_resumed else (0, 0.0)
    return Committed(
        rows=tuple(sorted(rows, key=lambda row: row.rev)),
        said=traces.said,
        open_calls=queries.calls(tx.connection, session.no, turn.seq) if turn and session.has_open(turn.seq) else (),
        steps=steps,
        spent_s=spent_s,
        tokens=tokens,
        cost=cost,
        mode=mode_of(tx.rules, session),
        stops=stops,
        waiting=tuple(tx.waiting(session)),
    )


def _spent(tx: Transaction, session: Session, turn: Message) -> tuple[int, float]:
    """Return the steps of a turn and the seconds they and its results took; of the last turn they are counted."""
    if turn.seq == session.turn_root:
        return session.turn_steps, session.turn_spent_s
    return queries.spent(tx.connection, session.no, turn.seq)
