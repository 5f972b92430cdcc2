"""The broadcaster: the gateway's own task, which tells everybody what the store committed.

It hears publications from the store and hints from workers through one bounded mailbox, so that a listener gets
both in the order they happened. Rows go out in `rev` order. A publication begins where the one before ended; where it
does not (the mailbox was full, or the store died between a commit and its publication), every row above the last
broadcast `rev` is broadcast first (B1). It owns nothing durable: `Subscriptions` and `Latches` outlive its task.
"""

from __future__ import annotations

from attrs import define, frozen

from kesoku_actors.actors import Cell, MailboxFull, Ref
from kesoku_actors.gateway.latches import Latches
from kesoku_actors.gateway.subscriptions import Subscriptions, in_order
from kesoku_actors.protocol import (
    ATTACHMENTS,
    Activity,
    ActivityChanged,
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
from kesoku_actors.store import Publication, Reader


@frozen(kw_only=True)
class Hint:
    """A droppable event (B2) of a session in `channel`."""

    event: Event
    channel: Channel | None


BroadcastMessage = Publication | Hint


@define(eq=False)
class Publisher:
    """The store's way in: called on the trio thread right after each group commit; never blocks or raises."""

    ref: Ref[BroadcastMessage]
    lost: int = 0
    """Publications that did not fit; the next one that does shows the gap."""

    def __call__(self, publication: Publication) -> None:
        try:
            self.ref.tell_nowait(publication)
        except MailboxFull:
            self.lost += 1


@define(eq=False)
class Broadcaster:
    """What the broadcaster works with; `run` is the actor."""

    subscriptions: Subscriptions
    latches: Latches
    publisher: Publisher
    reader: Reader

    async def run(self, cell: Cell[BroadcastMessage]) -> None:
        """Broadcast until stopped. A restart reads what was committed meanwhile."""
        if self.subscriptions.is_new:
            self.subscriptions.begin(await self.reader.head())
        else:
            await self._catch_up()
        cell.started()
        async for batch in cell.inbox.batches():
            for letter in batch:
                match letter.message:
                    case Publication() as publication:
                        if publication.base > self.subscriptions.counter:
                            await self._catch_up()
                        await self._publish(publication)
                    case Hint(event=event, channel=channel):
                        self.subscriptions.offer(event, channel)

    async def _catch_up(self, page: int = 256) -> None:
        """Broadcast the rows above the last broadcast one, and let live workers see what stops and mode there are."""
        while True:
            missed = await self.reader.changes(self.subscriptions.last_rev, page)
            self._rows(missed)
            if not missed.changed and not missed.removed:
                break
        for session_id, latch in tuple(self.latches.by_session.items()):
            for stop in await self.reader.stops(session_id):
                latch.stop_stored(stop)
            session = await self.reader.session(session_id)
            if session is not None:
                latch.mode_set(await self.reader.mode(channel_of(session)))

    async def _publish(self, publication: Publication) -> None:
        self._rows(publication)
        self.subscriptions.counter = max(self.subscriptions.counter, publication.rev)
        for channel, mode in publication.modes:
            changed = ModeChanged(chatbot_id=channel.chatbot_id, channel_id=channel.channel_id, mode=mode)
            self.subscriptions.offer(changed, channel)
            session_id = await self.reader.open_session(channel)
            if session_id is not None and (latch := self.latches.of(session_id)):
                latch.mode_set(mode)
        for call_id, session_id, approved in publication.approvals:
            if latch := self.latches.of(session_id):
                latch.approval_answered(call_id, approved)
        for stop in publication.stops:
            await self._stop(stop)

    def _rows(self, publication: Publication) -> None:
        for event in in_order(publication):
            match event:
                case Changed(message=row) if row.rev > self.subscriptions.last_rev:
                    self.subscriptions.last_rev = row.rev
                    self._latch(row)
                    self.subscriptions.offer(event, None)
                case Removed() if event.rev > self.subscriptions.last_rev:
                    self.subscriptions.last_rev = event.rev
                    if latch := self.latches.of(event.session_id):
                        latch.message_withdrawn(event.message_id)
                    self.subscriptions.offer(event, None)
                case _:
                    continue

    def _latch(self, row: Message) -> None:
        latch = self.latches.of(row.session_id)
        if latch is None:
            return
        if row.status is Status.PENDING_AGENT and row.root_id is None:
            latch.message_waits(Waiting(id=row.id, seq=row.seq, is_person=row.is_person, wakes=row.wakes))
        if ATTACHMENTS in row.metadata:
            latch.attachments_changed(row.id)

    async def _stop(self, stop: Stop) -> None:
        if latch := self.latches.of(stop.session_id):
            latch.stop_stored(stop)
        session = await self.reader.session(stop.session_id)
        channel = channel_of(session) if session else None
        event: Event
        if stop.done:
            ended, answered = await self.reader.stop_outcome(stop.seq)
            event = StopEnded(session_id=stop.session_id, stop_seq=stop.seq, ended=ended, answered=answered)
        else:
            event = ActivityChanged(session_id=stop.session_id, activity=Activity.STOPPING, root_id=stop.root_id)
        self.subscriptions.offer(event, channel)


def channel_of(session: SessionInfo) -> Channel:
    """Return where a session lives."""
    return Channel(chatbot_id=session.chatbot_id, channel_id=session.channel_id)
