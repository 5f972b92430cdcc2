"""Sessions and channels: one open session per channel (M6), the clear (M7), the busy mode (I5)."""

from __future__ import annotations

from kesoku_actors.protocol import BusyMode, Channel, Reason, SessionState, Stop
from kesoku_actors.store import queries
from kesoku_actors.store.port import ChooseModel, CloseSession, NothingToStop, SetMode, WipeSession
from kesoku_actors.store.stops import settle_stops, stop_all
from kesoku_actors.store.transaction import Rules, Session, Transaction

_TABLES_OF_SESSION = ("messages", "ended_turns", "steps", "calls", "jobs", "grants", "stops", "commits", "summaries")


def open_session(tx: Transaction, channel: Channel) -> Session:
    """Return the channel's open session, made now if there is none (M6)."""
    key = (channel.chatbot_id, channel.channel_id)
    session = tx.open_session(*key)
    if session is not None:
        return session
    now, session_id = tx.clock.wall(), tx.ids()
    columns = "(id, chatbot_id, channel_id, state, created, last_activity)"
    tx.execute(f"INSERT INTO sessions {columns} VALUES (?, ?, ?, 'open', ?, ?)", (session_id, *key, now, now))
    session = tx.session(session_id)
    session.waiting, session.is_new = {}, True
    return session


def mode_of(rules: Rules, session: Session) -> BusyMode:
    """Return the busy mode of the session's channel (I5)."""
    return session.mode or rules.default_mode


def set_mode(tx: Transaction, command: SetMode) -> BusyMode:
    """Change a channel's mode; it survives a restart."""
    channel = command.channel
    tx.execute(
        "INSERT INTO channels (chatbot_id, channel_id, mode) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET mode = excluded.mode",
        (channel.chatbot_id, channel.channel_id, command.mode),
    )
    tx.memory.sessions.forget_channel(channel)
    for session in tx.sessions_read():
        if session.channel == channel:
            session.mode = command.mode
    tx.changes.modes[channel] = command.mode
    return command.mode


def choose_model(tx: Transaction, command: ChooseModel) -> None:
    """Remember the model of a channel; it survives a restart and a clear."""
    channel = command.channel
    tx.execute(
        "INSERT INTO channels (chatbot_id, channel_id, llm) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET llm = excluded.llm",
        (channel.chatbot_id, channel.channel_id, command.name),
    )


def close_session(tx: Transaction, command: CloseSession) -> Stop | NothingToStop:
    """Close a session and stop what it holds (M7); closed before, the stop of then is the answer."""
    session = tx.session(command.session_id)
    if session.state is SessionState.CLOSED:
        stored = [stop for stop in queries.stops(tx.connection, session.no, False) if stop.reason is Reason.CLEARED]
        return stored[-1] if stored else NothingToStop()
    tx.execute("UPDATE sessions SET state = 'closed' WHERE no = ?", (session.no,))
    session.state = SessionState.CLOSED
    tx.changes.closed.append(session.id)
    return stop_all(tx, session, Reason.CLEARED)


def wipe_session(tx: Transaction, command: WipeSession) -> int:
    """Delete every row of a closed session; return how many messages went. None of another state."""
    session = tx.known_session(command.session_id)
    if session is None or session.state is not SessionState.CLOSED:
        return 0
    ids = [id for (id,) in tx.select("SELECT id FROM messages WHERE session_no = ? ORDER BY seq", (session.no,))]
    tx.remove(session, ids)
    settle_stops(tx, session)
    tx.execute("DELETE FROM covers WHERE stop_seq IN (SELECT seq FROM stops WHERE session_no = ?)", (session.no,))
    for table in _TABLES_OF_SESSION:
        tx.execute(f"DELETE FROM {table} WHERE session_no = ?", (session.no,))
    tx.memory.calm(session.id)
    tx.memory.hire(session.id, None)
    session.epoch = session.worker = session.hired = None
    session.turn_is_open = 0
    tx.execute("UPDATE sessions SET state = 'tombstone' WHERE no = ?", (session.no,))
    session.state, session.title = SessionState.TOMBSTONE, ""
    return len(ids)
