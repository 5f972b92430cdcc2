"""One transaction: the counter, the rows it reads and writes, and what it will tell the world.

Invariants: a number is never given again, also not after a rollback that reached the disk. The numbers of messages
stand in their rows, where the counter is read from (`queries.head`); it is written down, by the same commit, only for
numbers that stand in no message, as when one is deleted (`tick`). A new row has its own `seq` as `rev`; every later
change of it takes a new one. What a command changed is kept apart until the command stands, so that one that fails
leaves no trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import apsw
from attrs import field

from kesoku_actors.clock import Clock
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import (
    ENDED,
    BusyMode,
    CallState,
    Channel,
    Message,
    Role,
    SessionState,
    Status,
    Stop,
    Type,
    Waiting,
)
from kesoku_actors.protocol.messages import check_shape
from kesoku_actors.store import queries
from kesoku_actors.store.memory import Memory
from kesoku_actors.store.port import Publication
from kesoku_actors.store.rows import MESSAGE_COLUMNS, changed, filled, message_of, to_json
from kesoku_actors.store.session_row import Session, read_session
from kesoku_actors.store.sql import Row, first, scalar, select
from kesoku_actors.values import define, frozen

__all__ = ["Changes", "Rules", "Session", "Transaction"]

_MESSAGE = f"SELECT {MESSAGE_COLUMNS} FROM messages m JOIN sessions s ON s.no = m.session_no WHERE m.id = ?"
_INSERT = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SAVE = "UPDATE messages SET rev = ?, status = ?, content = ?, metadata = ? WHERE seq = ?"
_ROOT = (
    "UPDATE messages SET rev = ?, status = ?, content = ?, metadata = ?, root_id = ?, root_seq = ?, place = ?"
    " WHERE seq = ?"
)
_ENDED = "UPDATE covers SET ended = ? WHERE message_id = ? AND ended IS NULL"


@frozen(kw_only=True)
class Rules:
    """The numbers of the contract that settings may change."""

    max_waiting: int = 100
    """People's messages that may wait in one session (B4)."""
    max_self_started: int = 8
    """Turns in a row that no person began (I6)."""
    default_mode: BusyMode = BusyMode.INTERRUPT
    """Of a channel whose mode nobody changed (I5)."""


@define(eq=False)
class Changes:
    """What commands changed, to be published once it is durable."""

    messages: dict[str, Message] = field(factory=dict)
    removed: list[tuple[str, str, int]] = field(factory=list)
    stops: dict[int, Stop] = field(factory=dict)
    modes: dict[Channel, BusyMode] = field(factory=dict)
    approvals: list[tuple[str, str, CallState]] = field(factory=list)
    closed: list[str] = field(factory=list)

    def absorb(self, later: Changes) -> None:
        """Take what a later command changed; of each row only its present state counts."""
        self.messages |= later.messages
        for message_id, _session, _rev in later.removed:
            self.messages.pop(message_id, None)
        self.removed += later.removed
        self.stops |= later.stops
        self.modes |= later.modes
        self.approvals += later.approvals
        self.closed += later.closed

    @property
    def are_any(self) -> bool:
        """Whether there is something to tell."""
        return any((self.messages, self.removed, self.stops, self.modes, self.approvals, self.closed))

    def publication(self, base: int, rev: int) -> Publication:
        """Return it in the order of `rev`; `base` and `rev` are the counter before and after it."""
        return Publication(
            base=base,
            rev=rev,
            changed=tuple(sorted(self.messages.values(), key=lambda message: message.rev)),
            removed=tuple(self.removed),
            stops=tuple(self.stops[seq] for seq in sorted(self.stops)),
            modes=tuple(self.modes.items()),
            approvals=tuple(self.approvals),
            closed=tuple(self.closed),
        )


@define(eq=False, kw_only=True)
class Transaction:
    """What a handler works with. Made for one group of commands, on the thread that runs it."""

    connection: apsw.Connection
    clock: Clock
    ids: Callable[[], str]
    rules: Rules
    life: str
    """Names this life of the process (C3)."""
    counter: int
    memory: Memory
    keeps_counter: bool = False
    """Whether a number was given that stands in no message: then the counter is written down."""
    changes: Changes = field(factory=Changes)
    _known: dict[str, Message] = field(factory=dict, init=False)
    """Rows as the group read or wrote them last."""
    _sessions: dict[str, Session] = field(factory=dict, init=False)
    """As the group has them; written at its end."""
    _open: dict[tuple[str, str], Session] = field(factory=dict, init=False)
    """The open ones that were looked for, by chatbot and channel."""

    def begin_command(self) -> None:
        """Keep apart what the next command changes."""
        self.changes = Changes()

    def write_sessions(self) -> None:
        """Write the sessions' rows that were changed."""
        for session in self._sessions.values():
            session.write(self.connection)

    def sessions_read(self) -> Iterable[Session]:
        """Return the sessions that the group has read."""
        return self._sessions.values()

    def forget(self) -> None:
        """Have everything read anew: what a command left that was rolled back, or would fill the memory."""
        self._sessions, self._open, self._known = {}, {}, {}

    def keep(self) -> None:
        """Remember what the next group may need; the transaction is committed."""
        self.memory.keep(self._sessions.values(), self._known.values())

    def execute(self, sql: str, values: Row = ()) -> None:
        """Run a statement that has no rows."""
        self.connection.execute(sql, values)

    def select(self, sql: str, values: Row = ()) -> list[Row]:
        """Run a statement and return its rows."""
        return select(self.connection, sql, values)

    def first(self, sql: str, values: Row = ()) -> Row | None:
        """Run a statement and return its first row, or none."""
        return first(self.connection, sql, values)

    def one(self, sql: str, values: Row = ()) -> Any:
        """Run a statement and return the first column of its first row, or none."""
        return scalar(self.connection, sql, values)

    def tick(self) -> int:
        """Return the next number (M1), for something else than a message that is stored."""
        self.keeps_counter = True
        return self._number()

    def _number(self) -> int:
        self.counter += 1
        return self.counter

    def get(self, message_id: str) -> Message | None:
        """Return a message as it is now, or none."""
        known = self._known.get(message_id)
        if known is not None:
            return known
        row = first(self.connection, _MESSAGE, (message_id,))
        if row is None:
            return None
        message = self._known[message_id] = message_of(row)
        return message

    def find_session(self, where: str, values: Row) -> Session | None:
        """Return the session that a condition on `s` picks, in any state, or none."""
        session = read_session(self.connection, where, values)
        if session is None:
            return None
        known = self._sessions.setdefault(session.id, session)
        if known is session:
            session.hired = self.memory.hired(session.id)
        return known

    def open_session(self, chatbot_id: str, channel_id: str) -> Session | None:
        """Return the open session of a channel, or none (M6)."""
        key = (chatbot_id, channel_id)
        session = self._open.get(key)
        if session is None and (remembered := self.memory.sessions.find_open(*key)) is not None:
            session = self._remembered(remembered)
        if session is None or session.state is not SessionState.OPEN:
            session = self.find_session("s.chatbot_id = ? AND s.channel_id = ? AND s.state = 'open'", key)
        if session is not None:
            self._open[key] = session
        return session

    def known_session(self, session_id: str) -> Session | None:
        """Return a session in any state, or none."""
        return self._remembered(session_id) or self.find_session("s.id = ?", (session_id,))

    def _remembered(self, session_id: str) -> Session | None:
        """Return a session that the group has read, or that an earlier one has left in memory."""
        session = self._sessions.get(session_id)
        if session is None and (session := self.memory.sessions.take(session_id)) is not None:
            self._sessions[session_id] = session
            self._known |= {row.id: row for row in session.rows}
        return session

    def delete_session(self, session: Session) -> None:
        """Delete the row of a tombstone."""
        self.execute("DELETE FROM sessions WHERE no = ?", (session.no,))
        del self._sessions[session.id]

    def session(self, session_id: str) -> Session:
        """Return a session that is not wiped. Raises `NotFound`."""
        session = self.known_session(session_id)
        if session is None or session.state is SessionState.TOMBSTONE:
            raise NotFound(f"there is no session {session_id!r}; list those there are with `chat -l`")
        return session

    def waiting(self, session: Session) -> Collection[Waiting]:
        """Return the messages of a session that wait to be taken and belong to no turn, by seq."""
        if session.waiting is None:
            session.waiting = {each.id: each for each in queries.waiting(self.connection, session.no)}
        return session.waiting.values()

    def insert(
        self,
        session: Session,
        *,
        role: Role,
        type: Type,
        status: Status,
        sender: str,
        content: str,
        metadata: Mapping[str, Any],
        root: Message | None = None,
        parent_id: str | None = None,
        external_id: str | None = None,
        id: str | None = None,
    ) -> Message:
        """Add a row, to the turn of `root` if there is one; its id is a new one unless one is given.

        Raises `InvalidMessage` (M2 to M4).
        """
        seq = self._number()
        timestamp = session.last_activity = max(self.clock.wall(), session.last_activity)
        check_shape(role, type, status, sender, parent_id, metadata)
        stored = to_json(metadata)
        metadata = json.loads(stored) if metadata else metadata  # ours from now on, whoever gave it
        where = (session.id, session.channel.chatbot_id, session.channel.channel_id)
        root_id, place = (root.id, seq) if root else (None, None)
        said = (external_id, sender, role, type, status, content, parent_id, root_id, place, timestamp, metadata)
        message = filled((id or self.ids(), seq, seq, *where, *said))
        root_seq = root.seq if root else None
        numbers = (seq, seq, session.no, root_seq, place)
        names = (message.id, external_id, sender, role, type, status)
        self.execute(_INSERT, (*numbers, *names, content, parent_id, root_id, timestamp, stored))
        self.changes.messages[message.id] = self._known[message.id] = message
        if session.waiting is not None and message.waits:
            session.waiting[message.id] = Waiting(
                id=message.id, seq=seq, is_person=message.is_person, wakes=message.wakes
            )
        return message

    def save(self, message: Message) -> Message:
        """Write the status, content and metadata of a row, under a new `rev`."""
        rev = self._number()
        self.execute(_SAVE, (rev, message.status, message.content, to_json(message.metadata), message.seq))
        return self._saved(changed(message, rev=rev))

    def save_in_turn(self, message: Message, root: Message) -> Message:
        """Write a row that becomes part of the turn of `root`: first of it, or last so far (O1)."""
        rev = self._number()
        place = message.seq if message.id == root.id else rev
        message = changed(message, rev=rev, root_id=root.id, place=place)
        values = (rev, message.status, message.content, to_json(message.metadata), root.id, root.seq, place)
        self.execute(_ROOT, (*values, message.seq))
        saved, session = self._saved(message), self._sessions.get(message.session_id)
        if session is not None:
            session.is_new = False
            if session.waiting is not None:
                session.waiting.pop(message.id, None)
        return saved

    def remove(self, session: Session, message_ids: Sequence[str]) -> None:
        """Delete rows with the parts of their deliveries; their tombstones stay for cursors (B1)."""
        for message_id in message_ids:
            rev = self.tick()
            self.execute("DELETE FROM messages WHERE id = ?", (message_id,))
            self.execute("DELETE FROM chunks WHERE message_id = ?", (message_id,))
            self.execute("INSERT INTO removed VALUES (?, ?, ?)", (rev, message_id, session.id))
            if self.memory.may_be_stopped(session.id):
                self.execute(_ENDED, ("gone", message_id))
            self._known.pop(message_id, None)
            if session.waiting is not None:
                session.waiting.pop(message_id, None)
            self.changes.removed.append((message_id, session.id, rev))

    def _saved(self, message: Message) -> Message:
        self._remembered(message.session_id)  # of which no other state of the row may be left
        if message.status in ENDED and self.memory.may_be_stopped(message.session_id):
            self.execute(_ENDED, (message.status, message.id))
        self.changes.messages[message.id] = self._known[message.id] = message
        return message
