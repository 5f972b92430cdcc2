"""The reader: what the rest of the program may ask of what is stored. It changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import apsw
import trio

from kesoku_actors.protocol import Approval, BusyMode, Channel, Job, Message, SessionInfo, Stop, Usage, Waiting
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.store import calls, queries, spending, summaries
from kesoku_actors.store.access import Access
from kesoku_actors.store.port import Chunk, DeadCall, OpenCall, Publication, StopOutcome, StoreBusy
from kesoku_actors.store.queries import SessionHistory
from kesoku_actors.store.records import SessionRecord, count_steps, record
from kesoku_actors.store.transaction import Rules
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from kesoku_actors.store.archive import SessionArchive

T = TypeVar("T")


@frozen(kw_only=True)
class Reader:
    """Each method reads one snapshot. Raises `StoreBusy` after its tries, `StoreDamaged` or `StoreUnusable`."""

    access: Access
    rules: Rules
    retry_s: tuple[float, ...] = ()
    """Pauses between the tries of a query, seconds: what is busy or fails may pass by itself (C9)."""
    sleep: Callable[[float], Awaitable[None]] = trio.sleep

    async def history(self, session_id: str) -> SessionHistory:
        """Return the messages that belong to turns and the steps, in order (O1); empty for an unknown session."""
        return await self._read(queries.history, session_id)

    async def message(self, message_id: str) -> Message | None:
        """Return one message, or none."""
        return await self._read(queries.message, message_id)

    async def in_open_sessions(self, message_ids: tuple[str, ...]) -> tuple[tuple[Message, SessionInfo], ...]:
        """Return those of the named messages that open sessions hold, each with its session, in that order."""
        return await self._read(queries.in_open_sessions, message_ids)

    async def is_removed(self, message_id: str) -> bool:
        """Return whether a message was stored once and deleted since."""
        return await self._read(queries.is_removed, message_id)

    async def birth(self) -> str:
        """Return what tells this store from any other that ever lay or will lie at its path."""
        return await self._read(queries.birth)

    async def session(self, session_id: str) -> SessionInfo | None:
        """Return one session in any state, or none."""
        return await self._read(queries.session, session_id)

    async def sessions(self, limit: int, chatbot_id: str | None = None) -> tuple[SessionInfo, ...]:
        """Return sessions that are not wiped, the one last active first."""
        return await self._read(queries.sessions, limit, chatbot_id)

    async def sessions_named(self, part: str, limit: int) -> tuple[SessionInfo, ...]:
        """Return sessions that are not wiped with `part` in their id, the one last active first."""
        return await self._read(queries.sessions_named, part, limit)

    async def usage(self, session_ids: tuple[str, ...]) -> dict[str, Usage]:
        """Return what each session used that had a step, all its inferences together (B4)."""
        return await self._read(spending.of_sessions, session_ids)

    async def archive(self, session_id: str) -> SessionArchive | None:
        """Return an open session whole, for an export; none for one that is unknown or being cleared."""
        from kesoku_actors.store.archiving import archive  # only an export needs it

        return await self._read(archive, session_id)

    async def closed_sessions(self) -> tuple[str, ...]:
        """Return the sessions whose clear has not come to its end (M7)."""
        return await self._read(queries.closed_sessions)

    async def open_session(self, channel: Channel) -> str | None:
        """Return the id of the channel's open session, or none (M6)."""
        return await self._read(queries.open_session, channel)

    async def changes(self, after_rev: int, limit: int) -> Publication:
        """Return rows changed or removed since `after_rev`, each once as it is now; go on from its `rev` (B1)."""
        return await self._read(queries.changes, after_rev, limit)

    async def leaving(self, channel: Channel) -> tuple[Message, ...]:
        """Return the channel's messages not delivered yet, by seq (O2)."""
        return await self._read(queries.leaving, channel)

    async def waiting(self, session_id: str) -> tuple[Waiting, ...]:
        """Return the messages that wait to be taken and belong to no turn, by seq."""
        return await self._of_session(queries.waiting, session_id)

    async def stops(self, session_id: str, done: bool = False) -> tuple[Stop, ...]:
        """Return the session's stops that are not done (or those that are), by seq."""
        return await self._of_session(queries.stops, session_id, done)

    async def open_stops(self) -> tuple[Stop, ...]:
        """Return every session's stops that are not done, by seq."""
        return await self._read(queries.open_stops)

    async def stop(self, seq: int) -> Stop | None:
        """Return one stop as it is now, or none."""
        return await self._read(queries.stop, seq)

    async def stop_outcome(self, seq: int) -> StopOutcome:
        """Return what a stop ended, what was answered before it could (I10), and what lives on."""
        return await self._read(queries.stop_outcome, seq)

    async def jobs(self, session_id: str) -> tuple[Job, ...]:
        """Return the jobs of the session, oldest first (I8)."""
        return await self._of_session(queries.jobs, session_id)

    async def commands(self) -> tuple[DeadCall, ...]:
        """Return every call that ran a command, of this life of the process or an earlier one (C3)."""
        return await self._read(calls.commands)

    async def approvals(self, session_id: str) -> tuple[Approval, ...]:
        """Return the calls of the session that wait for a person, in call order (T7)."""
        return await self._of_session(queries.approvals, session_id)

    async def mode(self, channel: Channel) -> BusyMode:
        """Return the channel's busy mode (I5)."""
        return await self._read(queries.mode, channel) or self.rules.default_mode

    async def chosen_model(self, channel: Channel) -> str | None:
        """Return the name of the model that a person chose for the channel, or none."""
        return await self._read(queries.chosen_model, channel)

    async def spent(self, day: int) -> float:
        """Return what was spent and is reserved in a UTC day (days since 1970), US dollars (B4)."""
        return await self._read(spending.of_day, day)

    async def last_seen(self, channel: Channel) -> str | None:
        """Return the external id of the channel's last message stored or refused, or none (M8)."""
        return await self._read(queries.last_seen, channel)

    async def runnable(self, channels: tuple[Channel, ...] | None = None) -> tuple[str, ...]:
        """Return the sessions a worker can be started for (I6), the one waiting longest first."""
        return await self._read(queries.runnable, channels, self.rules.max_self_started)

    async def is_runnable(self, session_id: str) -> bool:
        """Return whether a worker can be started for this session (I6)."""
        return await self._of_session(queries.is_runnable, session_id, self.rules.max_self_started)

    async def calls(self, root_id: str) -> tuple[OpenCall, ...]:
        """Return the calls of a turn that have no result yet, in call order."""
        return await self._read(queries.calls_of, root_id)

    async def chunks(self, message_id: str) -> tuple[Chunk, ...]:
        """Return the parts of a delivery as planned, in order."""
        return await self._read(queries.chunks, message_id)

    async def summaries(self, session_id: str) -> tuple[Summary, ...]:
        """Return a session's summaries, each before those it stands for, in the order of the history."""
        return await self._read(summaries.of_session, session_id)

    async def record(self, session_id: str) -> SessionRecord | None:
        """Return all that is stored of a session, or none for an unknown one."""
        return await self._read(record, session_id)

    async def count_steps(self, session_id: str, without: str) -> int:
        """Return how many inferences of a session are stored, apart from the one with the id `without`."""
        return await self._read(count_steps, session_id, without)

    async def head(self) -> int:
        """Return the counter: no row has a higher `rev`."""
        return await self._read(queries.head)

    async def close(self) -> None:
        """Close the connections it has open; it may be used again."""
        await self.access.close()

    async def _read(self, query: Callable[..., T], *values: object) -> T:
        def on(connection: apsw.Connection) -> T:
            return query(connection, *values)

        for pause_s in self.retry_s:
            try:
                return await self.access.read(on)
            except StoreBusy:
                await self.sleep(pause_s)
        return await self.access.read(on)

    async def _of_session(self, query: Callable[..., T], session_id: str, *values: object) -> T:
        def on(connection: apsw.Connection) -> T:
            return query(connection, queries.session_no(connection, session_id), *values)

        for pause_s in self.retry_s:
            try:
                return await self.access.read(on)
            except StoreBusy:
                await self.sleep(pause_s)
        return await self.access.read(on)
