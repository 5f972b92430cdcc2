"""Stops (I7): what one covers is decided in its own commit, and it is done when all of that has ended or is gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kesoku_actors.protocol import Message, Reason, Status, Stop, Waiting
from kesoku_actors.store import queries
from kesoku_actors.store.port import NothingToStop, RequestForce, RequestStop, TooEarly
from kesoku_actors.store.transaction import Session, Transaction

FORCE_AFTER_S: Final = 1.0
"""Force is accepted no sooner than this after its stop."""


def request_stop(tx: Transaction, command: RequestStop) -> Stop | NothingToStop:
    """Store a stop of the named message's turn, of a named waiting message alone, or of all that is open."""
    session = tx.session(command.session_id)
    if command.message_id is None:
        return stop_all(tx, session, command.reason)
    named = tx.get(command.message_id)
    if named is None or named.session_id != session.id:
        return NothingToStop()
    if named.root_id is None and named.status is Status.PENDING_AGENT:
        return _store(tx, session, named.id, [named.id], command.reason)
    turn = queries.turn(tx.connection, session.no)
    if turn and named.root_id == turn[0].id:
        return stop_all(tx, session, command.reason)
    return NothingToStop()


def stop_all(tx: Transaction, session: Session, reason: Reason) -> Stop | NothingToStop:
    """Store a stop of the open turn, else of the first waiting message, and of every message waiting now."""
    turn = [message.id for message in queries.turn(tx.connection, session.no)]
    covers = turn + [message.id for message in tx.waiting(session)]
    return _store(tx, session, covers[0], covers, reason) if covers else NothingToStop()


def request_force(tx: Transaction, command: RequestForce) -> Stop | TooEarly | NothingToStop:
    """Mark the session's last stop that is not done as forced, once it is a second old."""
    session = tx.session(command.session_id)
    pending = queries.stops(tx.connection, session.no, False)
    if not pending:
        return NothingToStop()
    seq, now = pending[-1].seq, tx.clock.wall()
    wait_s = pending[-1].requested + FORCE_AFTER_S - now
    if wait_s > FORCE_AFTER_S:  # the wall clock stepped back; it must not put force off for longer than a second
        tx.execute("UPDATE stops SET requested = ? WHERE seq = ?", (now, seq))
        wait_s = FORCE_AFTER_S
    if wait_s > 0:
        return TooEarly(wait_s=wait_s)
    tx.execute("UPDATE stops SET forced = 1 WHERE seq = ?", (seq,))
    return _changed(tx, seq)


def is_covered(tx: Transaction, message: Message | Waiting, session: Session) -> bool:
    """Return whether a stop that is not done covers this message of the session."""
    if not tx.memory.may_be_stopped(session.id):
        return False
    sql = "SELECT 1 FROM covers WHERE message_id = ? AND ended IS NULL"
    return tx.one(sql, (message.id,)) is not None


def covering(tx: Transaction, messages: Iterable[Message]) -> Reason | None:
    """Return the reason of a stop that is not done and covers one of these, or none."""
    sql = (
        "SELECT t.reason FROM covers c JOIN stops t ON t.seq = c.stop_seq"
        " WHERE c.message_id = ? AND c.ended IS NULL ORDER BY t.seq"
    )
    for message in messages:
        reason = tx.one(sql, (message.id,))
        if reason is not None:
            return Reason(reason)
    return None


def settle_stops(tx: Transaction, session: Session) -> None:
    """Mark those stops done whose messages have all ended or are gone."""
    if not tx.memory.may_be_stopped(session.id):
        return
    sql = (
        "SELECT seq FROM stops WHERE session_no = ? AND done = 0"
        " AND NOT EXISTS (SELECT 1 FROM covers WHERE stop_seq = stops.seq AND ended IS NULL) ORDER BY seq"
    )
    for (seq,) in tx.select(sql, (session.no,)):
        tx.execute("UPDATE stops SET done = 1 WHERE seq = ?", (seq,))
        _changed(tx, seq)
    if tx.first("SELECT 1 FROM stops WHERE session_no = ? AND done = 0 LIMIT 1", (session.no,)) is None:
        tx.memory.calm(session.id)


def open_stops(tx: Transaction, session: Session) -> tuple[Stop, ...]:
    """Return the session's stops that are not done, by seq."""
    return queries.stops(tx.connection, session.no, False) if tx.memory.may_be_stopped(session.id) else ()


def _store(tx: Transaction, session: Session, root_id: str, covers: list[str], reason: Reason) -> Stop:
    seq = tx.tick()
    tx.memory.stop(session.id)
    columns = "(seq, session_no, root_id, reason, requested)"
    tx.execute(
        f"INSERT INTO stops {columns} VALUES (?, ?, ?, ?, ?)", (seq, session.no, root_id, reason, tx.clock.wall())
    )
    for message_id in covers:
        tx.execute("INSERT INTO covers (stop_seq, message_id) VALUES (?, ?)", (seq, message_id))
    return _changed(tx, seq)


def _changed(tx: Transaction, seq: int) -> Stop:
    stop = queries.stop(tx.connection, seq)
    assert stop is not None, "a stop is deleted only after it was told"
    tx.changes.stops[seq] = stop
    return stop
