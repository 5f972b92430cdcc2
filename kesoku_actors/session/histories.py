"""Histories kept between a session's turns, so that a turn of a long talk costs no more than one of a short one.

A worker takes its session's history and, when it ends in order, leaves it here; after any other end it is forgotten and
the next worker reads it anew. While it is kept or worked with, the broadcaster tells it of every row that changed, so a
delivery or a file that came late is in it too.

Invariants: a history is with one worker or here, never both; what is kept is bounded in sessions, in rows and in bytes
of talks as models were sent them, and those used longest ago go first. Of a session that was cleared nothing is kept
(M7). A session whose history is kept still holds no task (B3).
"""

from __future__ import annotations

from collections import OrderedDict

from attrs import field

from kesoku_actors.gateway import Gateway, Latches
from kesoku_actors.protocol import Message
from kesoku_actors.session.history import History
from kesoku_actors.values import define, frozen

MAX_SESSIONS = 256
MAX_ROWS = 20_000
MAX_TALKS = 8 * 1024 * 1024
"""Bytes of JSON; the messages that it was written from take twice as much again."""


@define(eq=False)
class Histories:
    """The histories of idle sessions. Outlives the tasks that use it."""

    latches: Latches
    max_sessions: int = MAX_SESSIONS
    max_rows: int = MAX_ROWS
    max_talks: int = MAX_TALKS
    _kept: OrderedDict[str, tuple[History, int, int]] = field(factory=OrderedDict, init=False)
    """With the number of rows it was kept with, and how large its talks are."""
    _rows: int = field(default=0, init=False)
    _talks: int = field(default=0, init=False)
    _lent: dict[str, History] = field(factory=dict, init=False)
    """Those that a worker has."""

    async def take(self, gateway: Gateway, session_id: str, *, is_new: bool = False) -> History:
        """Return a session's history for its worker, who alone adds to it from now on: kept here, or read.

        Of a session that is new, as its registration told, there is nothing to read.
        """
        if (kept := self._take(session_id)) is not None:
            self._lent[session_id] = kept
            return kept
        history = History() if is_new else await read_history(gateway, session_id)
        self.latches.keepers[session_id] = _Keeper(self, session_id, history)
        self._lent[session_id] = history
        if not is_new:  # last, so that none is missed that is stored meanwhile: from here on it can be found
            history.summarise(await gateway.reader.summaries(session_id))
        return history

    def find(self, session_id: str) -> History | None:
        """Return a session's history, with its worker or kept here, without taking it."""
        kept = self._kept.get(session_id)
        return self._lent.get(session_id) or (kept[0] if kept else None)

    def leave(self, session_id: str, history: History) -> None:
        """Keep what a worker that ended in order has read and written."""
        self._lent.pop(session_id, None)
        if session_id not in self.latches.keepers:  # rows of it were deleted meanwhile
            return
        rows, talks = len(history.rows), history.talks.size
        self._kept[session_id] = (history, rows, talks)
        self._rows += rows
        self._talks += talks
        while len(self._kept) > self.max_sessions or self._rows > self.max_rows:
            oldest = next(iter(self._kept))
            self._take(oldest)
            self.latches.keepers.pop(oldest, None)
        if self._talks > self.max_talks:
            self._forget_talks()

    def _forget_talks(self) -> None:
        for session_id, (history, rows, talks) in self._kept.items():
            if self._talks <= self.max_talks:
                return
            history.talks.forget()
            self._kept[session_id] = (history, rows, 0)
            self._talks -= talks

    def forget(self, session_id: str) -> None:
        """Drop what a worker that did not end in order had: part of it may be missing."""
        self._lent.pop(session_id, None)
        self._take(session_id)
        self.latches.keepers.pop(session_id, None)

    def _take(self, session_id: str) -> History | None:
        """Return what is kept of a session, and keep it no longer."""
        history, rows, talks = self._kept.pop(session_id, (None, 0, 0))
        self._rows -= rows
        self._talks -= talks
        return history


@frozen(eq=False)
class _Keeper:
    """Hears of one session for as long as its history is here, or with its worker."""

    histories: Histories
    session_id: str
    history: History

    def row_changed(self, row: Message) -> None:
        self.history.changed(row)

    def rows_removed(self) -> None:
        self.histories._take(self.session_id)


async def read_history(gateway: Gateway, session_id: str) -> History:
    """Return a session's history as it is stored now, without its summaries."""
    history = History()
    stored = await gateway.history(session_id)
    history.add(stored.messages)
    history.add_steps(stored.steps)
    return history
