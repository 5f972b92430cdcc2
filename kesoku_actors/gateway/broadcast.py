"""The broadcaster: the gateway's own task, which tells everybody what the store committed.

It takes publications of the store and hints of workers from one queue (`Announcements`), so that a listener gets both
in the order they happened. Rows go out in `rev` order. A publication begins where the one before ended. Where it does
not, because the queue was full, and where the store begins again, which may have died between a commit and its
publication, every row above the last broadcast `rev` is broadcast first (B1), and what no row shows is read. It owns
nothing durable: what it works with outlives its task.

Beside listeners it tells the latch of each session's worker (I9); a session that has no worker, and a stop or a clear
that no row shows, go to those who look after them, as summons.
"""

from __future__ import annotations

from functools import partial

from attrs import field

from kesoku_actors.actors import Cell
from kesoku_actors.gateway.announcements import Announcements, Hint
from kesoku_actors.gateway.latches import Latches
from kesoku_actors.gateway.subscriptions import Subscriptions, in_order
from kesoku_actors.gateway.summons import Summons
from kesoku_actors.log import Logger
from kesoku_actors.protocol import (
    ATTACHMENTS,
    Activity,
    ActivityChanged,
    ApprovalChanged,
    CallState,
    Changed,
    Channel,
    Event,
    Message,
    ModeChanged,
    Removed,
    SessionInfo,
    Status,
    Stop,
    StopEnded,
    Waiting,
)
from kesoku_actors.store import Publication, Reader, StopOutcome
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define


@define(eq=False)
class Broadcaster:
    """What the broadcaster works with; `run` is the actor."""

    announcements: Announcements
    subscriptions: Subscriptions
    latches: Latches
    reader: Reader
    log: Logger
    unattended: Summons = field(factory=Summons)
    """Sessions with a stop to obey and no worker: for the dispatcher."""
    closed: Summons = field(factory=Summons)
    """Sessions whose clear has begun, or may have come to its end: for the janitor."""

    async def run(self, cell: Cell[None]) -> None:
        """Broadcast until stopped. A restart reads what was committed meanwhile."""
        if self.subscriptions.is_new:
            self.subscriptions.begin(await until_answered(self.reader.head, self.log, "read the counter"))
        else:
            await self._catch_up()
        cell.started()
        cell.on_stop = self.announcements.ring
        while not cell.stopping.is_set():
            for announcement in await self.announcements.next():
                match announcement:
                    case Publication():
                        if announcement.begins or announcement.base > self.subscriptions.counter:
                            await self._catch_up()
                        await self._publish(announcement)
                    case Hint(event=event, channel=channel):
                        self.subscriptions.offer(event, channel)
            if self.announcements.lost and not self.announcements.waiting:
                self.announcements.found()
                await self._catch_up()

    async def _catch_up(self, page: int = 256) -> None:
        """Broadcast the rows above the last broadcast one, and let live workers see what stops and mode there are."""
        while True:
            read = partial(self.reader.changes, self.subscriptions.last_rev, page)
            missed = await until_answered(read, self.log, "read what was missed")
            self._rows(missed)
            self.subscriptions.counter = max(self.subscriptions.counter, missed.rev)
            if not missed.changed and not missed.removed:
                break
        for stop in await until_answered(self.reader.open_stops, self.log, "read the stops"):
            self._hear(stop)
        for session_id in await until_answered(self.reader.closed_sessions, self.log, "read the clears"):
            self.closed.call(session_id)
        for session_id, latch in tuple(self.latches.by_session.items()):
            session = await self._session(session_id)
            if session is not None:
                read_mode = partial(self.reader.mode, channel_of(session))
                latch.mode_set(await until_answered(read_mode, self.log, "read the mode"))
                latch.approvals_changed()

    async def _publish(self, publication: Publication) -> None:
        self._rows(publication)
        self.subscriptions.counter = max(self.subscriptions.counter, publication.rev)
        for channel, mode in publication.modes:
            changed = ModeChanged(chatbot_id=channel.chatbot_id, channel_id=channel.channel_id, mode=mode)
            self.subscriptions.offer(changed, channel)
            find = partial(self.reader.open_session, channel)
            session_id = await until_answered(find, self.log, "find the channel's session")
            if session_id is not None and (latch := self.latches.of(session_id)):
                latch.mode_set(mode)
        for call_id, session_id, state in publication.approvals:
            if state is not CallState.WAITING and (latch := self.latches.of(session_id)):
                latch.approvals_changed()
            session = await self._session(session_id)
            changed_call = ApprovalChanged(session_id=session_id, call_id=call_id, state=state)
            self.subscriptions.offer(changed_call, channel_of(session) if session else None)
        for session_id in publication.closed:
            self.closed.call(session_id)
            clearing = ActivityChanged(session_id=session_id, activity=Activity.CLEARING)
            session = await self._session(session_id)
            self.subscriptions.offer(clearing, channel_of(session) if session else None)
        for stop in publication.stops:
            self._hear(stop)
            await self._tell(stop)

    def _rows(self, publication: Publication) -> None:
        for event in in_order(publication):
            match event:
                case Changed(message=row) if row.rev > self.subscriptions.last_rev:
                    self.subscriptions.last_rev = row.rev
                    self._latch(row)
                    self.subscriptions.offer(event, None)
                case Removed() if event.rev > self.subscriptions.last_rev:
                    self.subscriptions.last_rev = event.rev
                    if keeper := self.latches.keepers.pop(event.session_id, None):
                        keeper.rows_removed()
                    if latch := self.latches.of(event.session_id):
                        latch.message_withdrawn(event.message_id)
                    self.subscriptions.offer(event, None)
                case _:
                    continue

    def _latch(self, row: Message) -> None:
        if row.root_id is not None and (keeper := self.latches.keepers.get(row.session_id)):
            keeper.row_changed(row)
        latch = self.latches.of(row.session_id)
        if latch is None:
            return
        if row.status is Status.PENDING_AGENT and row.root_id is None:
            latch.message_waits(Waiting(id=row.id, seq=row.seq, is_person=row.is_person, wakes=row.wakes))
        if ATTACHMENTS in row.metadata:
            latch.attachments_changed(row.id)

    def _hear(self, stop: Stop) -> None:
        """Let those know who have to act on a stop."""
        if latch := self.latches.of(stop.session_id):
            latch.stop_stored(stop)
        elif not stop.done:
            self.unattended.call(stop.session_id)
        if stop.done:
            self.closed.call(stop.session_id)

    async def _tell(self, stop: Stop) -> None:
        """Let listeners know of a stop, or of its end."""
        session = await self._session(stop.session_id)
        channel = channel_of(session) if session else None
        event: Event
        if stop.done:
            read = partial(self.reader.stop_outcome, stop.seq)
            event = receipt_of(stop, await until_answered(read, self.log, "read what a stop ended"))
        else:
            event = ActivityChanged(session_id=stop.session_id, activity=Activity.STOPPING, root_id=stop.root_id)
        self.subscriptions.offer(event, channel)

    async def _session(self, session_id: str) -> SessionInfo | None:
        return await until_answered(partial(self.reader.session, session_id), self.log, "read a session")


def channel_of(session: SessionInfo) -> Channel:
    """Return where a session lives."""
    return Channel(chatbot_id=session.chatbot_id, channel_id=session.channel_id)


def receipt_of(stop: Stop, outcome: StopOutcome) -> StopEnded:
    """Return the receipt of a stop that is done (I7)."""
    return StopEnded(
        session_id=stop.session_id,
        stop_seq=stop.seq,
        ended=outcome.ended,
        answered=outcome.answered,
        jobs=outcome.jobs,
        survivors=outcome.survivors,
    )
