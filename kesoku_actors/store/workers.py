"""Epochs and workers (C2): who may commit for a session, and what becomes of the rows of one who is gone."""

from __future__ import annotations

from kesoku_actors.protocol import Channel, Message, SessionState, Status
from kesoku_actors.store import queries
from kesoku_actors.store.jobs import dead_jobs
from kesoku_actors.store.memory import Memory
from kesoku_actors.store.port import (
    BeginEpoch,
    DeadCall,
    EpochBegun,
    GiveBack,
    Registered,
    RegisterWorker,
    StoreFault,
    WorkerKey,
)
from kesoku_actors.store.sessions import mode_of
from kesoku_actors.store.stops import open_stops
from kesoku_actors.store.transaction import Rules, Session, Transaction
from kesoku_actors.store.turns import give_back

_DEFAULT_ATTEMPTS = GiveBack(key=WorkerKey(session_id="", epoch=0, worker=0), clean=False).max_attempts


def begin_epoch(tx: Transaction, command: BeginEpoch) -> EpochBegun:
    """Raise the epoch and give back what the workers of earlier ones held."""
    epoch = tx.one("UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value")
    tx.memory.set_epoch(epoch)
    tx.write_sessions()  # of what the group did before
    written = [id for (id,) in tx.select("SELECT id FROM sessions WHERE worker IS NOT NULL ORDER BY no")]
    for session_id in dict.fromkeys([*written, *tx.memory.all_hired()]):
        session = tx.session(session_id)
        if command.channels is None or session.channel in command.channels:
            give_back(tx, session, clean=command.clean, max_attempts=command.max_attempts)
    tx.execute("DELETE FROM refused WHERE epoch < ?", (epoch - 1,))
    return EpochBegun(
        epoch=epoch,
        runnable=queries.runnable(tx.connection, command.channels, tx.rules.max_self_started),
        dead_calls=_dead_calls(tx, command.channels),
        dead_jobs=dead_jobs(tx, command.channels),
    )


def register(tx: Transaction, command: RegisterWorker) -> Registered:
    """Make a worker the one of its session; what an earlier one left goes back first, as after a crash.

    Nothing is written for it unless something goes back: it has no row to lose before its first commit, which writes it
    down (`write_down`). Raises `NotFound` for a session that is not there, `StoreFault` when the epoch is over.
    """
    key, session = command.key, tx.session(command.key.session_id)
    if tx.memory.epoch is None:
        tx.memory.set_epoch(tx.one("SELECT value FROM meta WHERE name = 'epoch'"))
    if key.epoch != tx.memory.epoch:
        raise StoreFault(f"C2: the epoch {key.epoch} is over, it is {tx.memory.epoch} now; the worker ends")
    if not is_registered(session, key):
        if session.turn_is_open and any(row.status is Status.PROCESSING for row in _turn(tx, session)):
            give_back(tx, session, clean=False, max_attempts=_DEFAULT_ATTEMPTS)
        session.hired = (key.epoch, key.worker)
        tx.memory.hire(session.id, session.hired)
    turn = _turn(tx, session) if session.turn_is_open else ()
    return Registered(
        channel=session.channel,
        mode=mode_of(tx.rules, session),
        waiting=tuple(tx.waiting(session)),
        returned=tuple(message.id for message in turn),
        returned_began=session.turn_began if turn else None,
        stops=open_stops(tx, session),
        self_started=session.self_started,
        has_history=not session.is_new and queries.has_history(tx.connection, session.no),
    )


def is_simple(memory: Memory, command: RegisterWorker) -> bool:
    """Return whether a registration needs nothing of the database.

    Nearly none does: a message has just been stored, and no worker before has left anything behind.
    """
    session = memory.sessions.find(command.key.session_id)
    if session is None or session.waiting is None or session.state is not SessionState.OPEN:
        return False
    is_calm = not session.turn_is_open and not memory.may_be_stopped(session.id)
    return is_calm and command.key.epoch == memory.epoch and (session.is_new or session.turns > 0)


def register_simply(memory: Memory, rules: Rules, command: RegisterWorker) -> Registered:
    """Do what `register` does, where that is simple."""
    key, session = command.key, memory.sessions.find(command.key.session_id)
    assert session is not None, "or it is not simple"
    session.hired = (key.epoch, key.worker)
    memory.hire(session.id, session.hired)
    return Registered(
        channel=session.channel,
        mode=mode_of(rules, session),
        waiting=tuple((session.waiting or {}).values()),
        returned=(),
        returned_began=None,
        stops=(),
        self_started=session.self_started,
        has_history=not session.is_new,
    )


def write_down(tx: Transaction, session: Session) -> None:
    """Before its first commit a registration is durable (C2); what was known of an earlier worker's commits is not."""
    if session.hired is not None:
        tx.execute("DELETE FROM commits WHERE session_no = ?", (session.no,))
        (session.epoch, session.worker), session.hired = session.hired, None
        tx.memory.hire(session.id, None)


def end_worker(tx: Transaction, command: GiveBack) -> tuple[Message, ...]:
    """A worker ended: take its rows back, unless it is not the registered one any more."""
    session = tx.known_session(command.key.session_id)
    if session is None or not is_registered(session, command.key):
        return ()
    return give_back(tx, session, clean=command.clean, max_attempts=command.max_attempts)


def is_registered(session: Session, key: WorkerKey) -> bool:
    """Return whether the commits of this worker are taken."""
    return session.registered == (key.epoch, key.worker)


def _turn(tx: Transaction, session: Session) -> tuple[Message, ...]:
    return queries.turn(tx.connection, session.no)


def _dead_calls(tx: Transaction, channels: tuple[Channel, ...] | None) -> tuple[DeadCall, ...]:
    sql = (
        "SELECT c.id, s.id, s.chatbot_id, s.channel_id, c.pid, c.process_start FROM calls c"
        " JOIN sessions s ON s.no = c.session_no WHERE c.published = 0 AND c.state = 'started' AND c.life != ?"
        " ORDER BY c.seq"
    )
    return tuple(
        DeadCall(call_id=call_id, session_id=session_id, pid=pid, process_start=process_start)
        for call_id, session_id, chatbot_id, channel_id, pid, process_start in tx.select(sql, (tx.life,))
        if channels is None or Channel(chatbot_id=chatbot_id, channel_id=channel_id) in channels
    )
