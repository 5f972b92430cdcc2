"""What the engine remembers from one group of commands to the next: what nearly every commit would read in vain.

* who is registered and holds no row yet (C2): such a registration is lost with the process, and nothing with it; the
  worker's first commit writes it down;
* which sessions may have a stop that is not done: never too few, sometimes one too many;
* the epoch;
* the rows of sessions that are at work, with those of their messages that wait or are worked on: sometimes too few.

Invariants: what a group says is remembered when it is committed and not before; of a command that fails nothing is.
A session that a group reads or changes is taken out, and comes back when that group is committed: so no group that
failed leaves a row here that is not the stored one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import apsw
from attrs import define, field

from kesoku_actors.protocol import Channel, Message, SessionState, Status, Type
from kesoku_actors.store.session_row import Session
from kesoku_actors.store.sql import select

Hired = tuple[int, int]
"""Epoch and worker."""

MOST_SESSIONS: Final = 10_000
"""Whose rows are remembered at once."""
MOST_ROWS: Final = 16
"""Messages of one session that are remembered: more of them wait in a crowd, which is read when its time comes."""
_OPEN: Final = frozenset({Status.PENDING_AGENT, Status.PROCESSING})

_STOPPED = "SELECT DISTINCT s.id FROM stops t JOIN sessions s ON s.no = t.session_no WHERE t.done = 0"


@define(eq=False)
class Memory:
    """Of one engine. A new one, after a restart, knows no registration: such a worker is refused `stale` and ends."""

    _hired: dict[str, Hired] = field(factory=dict, init=False)
    _stopped: set[str] = field(init=False)
    _hires: dict[str, Hired | None] = field(factory=dict, init=False)
    """What the present group changes of `_hired`."""
    _calmed: set[str] = field(factory=set, init=False)
    """Sessions whose last stop the present group ends."""
    _epoch: int | None = field(default=None, init=False)
    _read_epoch: int | None = field(default=None, init=False)
    """As the present group reads or raises it."""
    _sessions: dict[str, Session] = field(factory=dict, init=False)
    _open: dict[tuple[str, str], str] = field(factory=dict, init=False)
    """The open one of each chatbot and channel, among them."""

    @classmethod
    def of(cls, connection: apsw.Connection) -> Memory:
        """Return the memory of an engine that has just been opened."""
        memory = cls()
        memory._stopped = {id for (id,) in select(connection, _STOPPED)}
        return memory

    def hired(self, session_id: str) -> Hired | None:
        """Return who is registered for a session without a word of it in the session's row."""
        return self._hires[session_id] if session_id in self._hires else self._hired.get(session_id)

    def all_hired(self) -> Iterable[str]:
        """Return the sessions of all such workers."""
        return [id for id in {**self._hired, **self._hires} if self.hired(id) is not None]

    def hire(self, session_id: str, who: Hired | None) -> None:
        """Remember a registration; none: it is written down now, or over."""
        if who is not None or session_id in self._hired or session_id in self._hires:
            self._hires[session_id] = who

    @property
    def epoch(self) -> int | None:
        """The epoch (C2), once it was read."""
        return self._read_epoch or self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Remember the epoch as it is now."""
        self._read_epoch = epoch

    def may_be_stopped(self, session_id: str) -> bool:
        """Return whether the session may have a stop that is not done; without one there is nothing to look for."""
        return session_id in self._stopped

    def stop(self, session_id: str) -> None:
        """Remember that a session has a stop. Taken back by nothing but `calm`: too many do no harm."""
        self._stopped.add(session_id)
        self._calmed.discard(session_id)

    def calm(self, session_id: str) -> None:
        """Every stop of the session is done."""
        self._calmed.add(session_id)

    def at_work(self, session_id: str) -> Session | None:
        """Return a session that is remembered; what is changed of it no group may be in the midst of."""
        return self._sessions.get(session_id)

    def take(self, session_id: str) -> Session | None:
        """Return a session that is remembered, and remember it no more."""
        session = self._sessions.pop(session_id, None)
        if session is not None and self._open.get(key := _key(session)) == session_id:
            del self._open[key]
        return session

    def open_session(self, chatbot_id: str, channel_id: str) -> str | None:
        """Return the id of the open session of a channel, if it is remembered."""
        return self._open.get((chatbot_id, channel_id))

    def forget_channel(self, channel: Channel) -> None:
        """Something changes that stands in no session's row, but belongs to each of this channel."""
        for session_id in [id for id, session in self._sessions.items() if session.channel == channel]:
            self.take(session_id)

    def mark(self) -> tuple[dict[str, Hired | None], set[str], int | None]:
        """Return what the group has said so far, for `back_to`."""
        return dict(self._hires), set(self._calmed), self._read_epoch

    def back_to(self, mark: tuple[dict[str, Hired | None], set[str], int | None]) -> None:
        """Forget what a command said that failed."""
        self._hires, self._calmed, self._read_epoch = mark

    def keep(self, sessions: Iterable[Session], rows: Iterable[Message]) -> None:
        """The group is committed; these sessions and messages it has read or written."""
        for session_id, who in self._hires.items():
            if who is None:
                self._hired.pop(session_id, None)
            else:
                self._hired[session_id] = who
        self._stopped -= self._calmed
        self._epoch = self.epoch
        self.drop()
        for session in sessions:
            if session.is_at_work:
                session.rows = ()
                self._sessions[session.id] = session
                if session.state is SessionState.OPEN:
                    self._open[_key(session)] = session.id
        for row in rows:
            of = self._sessions.get(row.session_id)
            if of is not None and len(of.rows) < MOST_ROWS and (row.status in _OPEN or row.type is Type.TOOL_CALL):
                of.rows = (*of.rows, row)
        while len(self._sessions) > MOST_SESSIONS:
            self.take(next(iter(self._sessions)))

    def drop(self) -> None:
        """Begin a group; what one before it said that was not committed is forgotten."""
        if self._hires or self._calmed or self._read_epoch:
            self._hires, self._calmed, self._read_epoch = {}, set(), None


def _key(session: Session) -> tuple[str, str]:
    return session.channel.chatbot_id, session.channel.channel_id
