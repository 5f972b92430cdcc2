"""The sessions that the engine keeps at hand from one group of commands to the next, which would read them again.

All that are at work, with those of their messages that wait or are worked on, and the latest that are idle.

Invariant: a session that a group reads or changes is taken from here, and put back when that group is committed. So
what is here is what is stored, and a group that fails leaves nothing of it; there may always be less.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import field

from kesoku_actors.protocol import Channel, Message, SessionState, Status, Type
from kesoku_actors.store.session_row import Session
from kesoku_actors.values import define

MOST_AT_WORK: Final = 10_000
MOST_IDLE: Final = 256
MOST_ROWS: Final = 16
"""Messages of one session: more of them wait in a crowd, which is read when its time comes."""
_OPEN: Final = frozenset({Status.PENDING_AGENT, Status.PROCESSING})


@define(eq=False)
class KeptSessions:
    """Of one engine."""

    _at_work: dict[str, Session] = field(factory=dict, init=False)
    _idle: dict[str, Session] = field(factory=dict, init=False)
    """Both in the order they were put back; those put back longest ago go first."""
    _open: dict[tuple[str, str], str] = field(factory=dict, init=False)
    """The open one of each chatbot and channel, among them."""

    def find(self, session_id: str) -> Session | None:
        """Return a session that is kept. Only while no group runs may something of it be changed."""
        return self._at_work.get(session_id) or self._idle.get(session_id)

    def find_open(self, chatbot_id: str, channel_id: str) -> str | None:
        """Return the id of a channel's open session, if it is kept."""
        return self._open.get((chatbot_id, channel_id))

    def take(self, session_id: str) -> Session | None:
        """Return a session that is kept, and keep it no more."""
        session = self._at_work.pop(session_id, None) or self._idle.pop(session_id, None)
        if session is not None and self._open.get(key := _key(session)) == session_id:
            del self._open[key]
        return session

    def forget_channel(self, channel: Channel) -> None:
        """Something changes that stands in no session's row, but belongs to each of this channel."""
        every = (*self._at_work.values(), *self._idle.values())
        for session_id in [session.id for session in every if session.channel == channel]:
            self.take(session_id)

    def put_back(self, sessions: Iterable[Session], rows: Iterable[Message]) -> None:
        """Keep what a group has read or written that is committed now."""
        for session in sessions:
            session.rows = ()
            if session.is_at_work:
                self._at_work[session.id] = session
            elif session.state is SessionState.OPEN:
                self._idle[session.id] = session
            if session.state is SessionState.OPEN:
                self._open[_key(session)] = session.id
        for row in rows:
            of = self._at_work.get(row.session_id)
            if of is not None and len(of.rows) < MOST_ROWS and (row.status in _OPEN or row.type is Type.TOOL_CALL):
                of.rows = (*of.rows, row)
        for kept, most in ((self._at_work, MOST_AT_WORK), (self._idle, MOST_IDLE)):
            while len(kept) > most:
                self.take(next(iter(kept)))


def _key(session: Session) -> tuple[str, str]:
    return session.channel.chatbot_id, session.channel.channel_id
