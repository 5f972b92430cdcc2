"""What the engine remembers from one group of commands to the next: what nearly every commit would read in vain.

* who is registered and holds no row yet (C2): such a registration is lost with the process, and nothing with it; the
  worker's first commit writes it down;
* which sessions may have a stop that is not done: never too few, sometimes one too many;
* the epoch;
* sessions (`kept_sessions`).

Invariants: what a group says is remembered when it is committed and not before; of a command that fails nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
from attrs import field

from kesoku_actors.protocol import Message
from kesoku_actors.store.kept_sessions import KeptSessions
from kesoku_actors.store.session_row import Session
from kesoku_actors.store.sql import select
from kesoku_actors.values import define

Hired = tuple[int, int]
"""Epoch and worker."""

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
    sessions: KeptSessions = field(factory=KeptSessions, init=False)

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
        self.sessions.put_back(sessions, rows)

    def drop(self) -> None:
        """Begin a group; what one before it said that was not committed is forgotten."""
        if self._hires or self._calmed or self._read_epoch:
            self._hires, self._calmed, self._read_epoch = {}, set(), None
