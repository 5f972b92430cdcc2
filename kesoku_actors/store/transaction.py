"""One transaction: the counter, the rows it reads and writes, and what it will tell the world.

Invariants: a number given by `tick` is never given again, also not after a rollback that reached the disk (the
counter is written by the same commit as the rows that carry its numbers). A new row has its own `seq` as `rev`;
every later change of it takes a new one. What a command changed is kept apart until the command stands, so that one
that fails leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw
from attrs import define, evolve, field, frozen

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
)
from kesoku_actors.store.port import Publication
from kesoku_actors.store.rows import MESSAGE_COLUMNS, message_of, to_json
from kesoku_actors.store.sql import Row, first, scalar, select

_SESSION = "SELECT no, id, chatbot_id, channel_id, state, title, self_started, epoch, worker FROM sessions"
_MESSAGE = f"SELECT {MESSAGE_COLUMNS} FROM messages m JOIN sessions s ON s.no = m.session_no WHERE m.id = ?"
_INSERT = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ACTIVITY = "UPDATE sessions SET last_activity = max(last_activity, ?) WHERE no = ? RETURNING last_activity"
_SAVE = "UPDATE messages SET rev = ?, status = ?, content = ?, metadata = ? WHERE seq = ?"
_ROOT = (
    "UPDATE messages SET rev = ?, status = ?, content = ?, metadata = ?, root_id = ?, root_seq = ?, place = ?"
    " WHERE seq = ?"
)


@frozen(kw_only=True)
class Rules:
    """The numbers of the contract that settings may change."""

    max_waiting: int = 100
    """People's messages that may wait in one session (B4)."""
    max_self_started: int = 8
    """Turns in a row that no person began (I6)."""
    default_mode: BusyMode = BusyMode.INTERRUPT
    """Of a channel whose mode nobody changed (I5)."""


@frozen(kw_only=True)
class Session:
    """A session as commands need it."""

    no: int
    id: str
    channel: Channel
    state: SessionState
    title: str
    self_started: int
    epoch: int | None
    worker: int | None


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
    changes: Changes = field(factory=Changes)
    _known: dict[str, Message] = field(factory=dict, init=False)
    """Rows as this command read or wrote them last."""

    def begin_command(self) -> None:
        """Forget what an earlier command read, changed, or left behind by a rollback."""
        self.changes, self._known = Changes(), {}

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
        """Return the next number (M1)."""
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
        """Return the session that a condition picks, in any state, or none."""
        row = first(self.connection, f"{_SESSION} WHERE {where}", values)
        if row is None:
            return None
        no, id, chatbot_id, channel_id, state, title, self_started, epoch, worker = row
        return Session(
            no=no,
            id=id,
            channel=Channel(chatbot_id=chatbot_id, channel_id=channel_id),
            state=SessionState(state),
            title=title,
            self_started=self_started,
            epoch=epoch,
            worker=worker,
        )

    def session(self, session_id: str) -> Session:
        """Return a session that is not wiped. Raises `NotFound`."""
        session = self.find_session("id = ?", (session_id,))
        if session is None or session.state is SessionState.TOMBSTONE:
            raise NotFound(f"there is no session {session_id!r}; list those there are with `chat -l`")
        return session

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
    ) -> Message:
        """Add a row, to the turn of `root` if there is one. Raises `InvalidMessage` (M2 to M4)."""
        seq = self.tick()
        timestamp = self.one(_ACTIVITY, (self.clock.wall(), session.no))
        message = Message(
            id=self.ids(),
            seq=seq,
            rev=seq,
            session_id=session.id,
            chatbot_id=session.channel.chatbot_id,
            channel_id=session.channel.channel_id,
            external_id=external_id,
            sender=sender,
            role=role,
            type=type,
            status=status,
            content=content,
            parent_id=parent_id,
            root_id=root.id if root else None,
            place=seq if root else None,
            timestamp=timestamp,
            metadata=metadata,
        )
        root_seq = root.seq if root else None
        numbers = (seq, seq, session.no, root_seq, message.place)
        names = (message.id, external_id, sender, role, type, status)
        self.execute(_INSERT, (*numbers, *names, content, parent_id, message.root_id, timestamp, to_json(metadata)))
        self.changes.messages[message.id] = self._known[message.id] = message
        return message

    def save(self, message: Message) -> Message:
        """Write the status, content and metadata of a row, under a new `rev`."""
        rev = self.tick()
        self.execute(_SAVE, (rev, message.status, message.content, to_json(message.metadata), message.seq))
        return self._saved(evolve(message, rev=rev))

    def save_in_turn(self, message: Message, root: Message) -> Message:
        """Write a row that becomes part of the turn of `root`: first of it, or last so far (O1)."""
        rev = self.tick()
        place = message.seq if message.id == root.id else rev
        message = evolve(message, rev=rev, root_id=root.id, place=place)
        values = (rev, message.status, message.content, to_json(message.metadata), root.id, root.seq, place)
        self.execute(_ROOT, (*values, message.seq))
        return self._saved(message)

    def remove(self, session: Session, message_ids: Sequence[str]) -> None:
        """Delete rows with the parts of their deliveries; their tombstones stay for cursors (B1)."""
        for message_id in message_ids:
            rev = self.tick()
            self.execute("DELETE FROM messages WHERE id = ?", (message_id,))
            self.execute("DELETE FROM chunks WHERE message_id = ?", (message_id,))
            self.execute("INSERT INTO removed VALUES (?, ?, ?)", (rev, message_id, session.id))
            self.execute("UPDATE covers SET ended = 'gone' WHERE message_id = ? AND ended IS NULL", (message_id,))
            self.changes.messages.pop(message_id, None)
            self._known.pop(message_id, None)
            self.changes.removed.append((message_id, session.id, rev))

    def _saved(self, message: Message) -> Message:
        if message.status in ENDED:
            self.execute(
                "UPDATE covers SET ended = ? WHERE message_id = ? AND ended IS NULL", (message.status, message.id)
            )
        self.changes.messages[message.id] = self._known[message.id] = message
        return message
