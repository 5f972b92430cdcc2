"""A session's row, as the commands of one transaction read and change it.

Invariants: a group of commands reads a row once and writes it once, at its end, however often it changed meanwhile:
two statements and one page of the database for a session, however much is said in it. State and mode are written at
once, where they change. What outlives the transaction that read it is `Memory`'s to say.
"""

from __future__ import annotations

from typing import Final

import apsw
from attrs import field

from kesoku_actors.protocol import BusyMode, Channel, Message, SessionState, Waiting
from kesoku_actors.store.sql import Row, first
from kesoku_actors.values import define

_READ: Final = (
    "SELECT s.no, s.id, s.chatbot_id, s.channel_id, s.state, s.title, c.mode, s.last_activity, s.turns, s.self_started,"
    " s.epoch, s.worker, s.turn_root, s.turn_is_open, s.turn_began, s.turn_attempts, s.turn_steps, s.turn_spent_s"
    " FROM sessions s LEFT JOIN channels c ON c.chatbot_id = s.chatbot_id AND c.channel_id = s.channel_id"
)
_WRITE: Final = (
    "UPDATE sessions SET title = ?, last_activity = ?, turns = ?, self_started = ?, epoch = ?, worker = ?,"
    " turn_root = ?, turn_is_open = ?, turn_began = ?, turn_attempts = ?, turn_steps = ?, turn_spent_s = ?"
    " WHERE no = ?"
)
_STATES: Final = {str(state): state for state in SessionState}
_MODES: Final[dict[str | None, BusyMode | None]] = {None: None, **{str(mode): mode for mode in BusyMode}}


@define(eq=False)
class Session:
    """A session; a field that a command changes is written at the end of the group."""

    no: int
    id: str
    channel: Channel
    state: SessionState
    title: str
    mode: BusyMode | None
    """None: nobody changed it."""
    last_activity: float
    turns: int
    self_started: int
    epoch: int | None
    """With `worker`: whose commits are taken (C2)."""
    worker: int | None
    turn_root: int | None
    """The seq of the root of the turn that was claimed last."""
    turn_is_open: int
    """Whether that turn is claimed or returned: there is no other open one."""
    turn_began: float | None
    turn_attempts: int
    turn_steps: int
    turn_spent_s: float
    hired: tuple[int, int] | None = field(default=None, init=False)
    """Epoch and worker of a registration that holds no row yet, and so stands in none."""
    waiting: dict[str, Waiting] | None = field(default=None, init=False)
    """What waits to be taken, by id, in order; none: not read yet."""
    is_new: bool = field(default=False, init=False)
    """Whether it is known that no message has belonged to a turn yet."""
    rows: tuple[Message, ...] = field(default=(), init=False)
    """What `Memory` keeps of its messages from one group to the next."""
    _read: Row = field(default=(), init=False)

    @property
    def registered(self) -> tuple[int | None, int | None]:
        """Return epoch and worker of the one whose commits are taken."""
        return self.hired or (self.epoch, self.worker)

    @property
    def is_at_work(self) -> bool:
        """Return whether a worker is about to commit for it, so that its row will be read again soon."""
        return bool(self.hired or self.turn_is_open or self.waiting)

    def begin_turn(self, root_seq: int, began: float) -> None:
        """Count a new turn, which is the open one now."""
        self.turns += 1
        self.turn_root, self.turn_is_open, self.turn_began = root_seq, 1, began
        self.turn_attempts, self.turn_steps, self.turn_spent_s = 0, 0, 0.0

    def has_open(self, root_seq: int) -> bool:
        """Return whether the turn of this root is the open one."""
        return bool(self.turn_is_open) and self.turn_root == root_seq

    def write(self, connection: apsw.Connection) -> None:
        """Write what was changed since it was read, if anything was."""
        now = self._written()
        if now != self._read:
            connection.execute(_WRITE, (*now, self.no))
            self._read = now

    def was_read(self) -> None:
        """Take the row as it is for the stored one."""
        self._read = self._written()

    def _written(self) -> Row:
        return (
            self.title,
            self.last_activity,
            self.turns,
            self.self_started,
            self.epoch,
            self.worker,
            self.turn_root,
            self.turn_is_open,
            self.turn_began,
            self.turn_attempts,
            self.turn_steps,
            self.turn_spent_s,
        )


def read_session(connection: apsw.Connection, where: str, values: Row) -> Session | None:
    """Return the session that a condition on `s` picks, in any state, or none."""
    row = first(connection, f"{_READ} WHERE {where}", values)
    if row is None:
        return None
    no, id, chatbot_id, channel_id, state, title, mode, *counted = row
    channel = Channel(chatbot_id=chatbot_id, channel_id=channel_id)
    session = Session(no, id, channel, _STATES[state], title, _MODES[mode], *counted)
    session.was_read()
    return session
