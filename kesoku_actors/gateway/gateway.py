"""The gateway's face: the one door for messages, sessions and commands.

Everything that changes the truth goes through here to the store and comes back as a typed reply; what was
committed reaches every listener through the broadcaster. An adapter needs nothing else.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

from kesoku_actors.clock import World
from kesoku_actors.gateway.announcements import Announcements, Hint
from kesoku_actors.gateway.broadcast import receipt_of
from kesoku_actors.gateway.filters import Filter
from kesoku_actors.gateway.latches import Latches
from kesoku_actors.gateway.subscriptions import Listening, Subscriptions, SubscriptionStatistics
from kesoku_actors.gateway.summons import Summons
from kesoku_actors.log import Logger
from kesoku_actors.protocol import (
    BusyMode,
    Channel,
    Event,
    Inbound,
    Message,
    Reason,
    Role,
    SessionInfo,
    Status,
    Stop,
    StopEnded,
    Type,
)
from kesoku_actors.store import (
    AnswerApproval,
    ApprovalAnswer,
    Chunk,
    ChunkAttempt,
    ChunkSent,
    CloseSession,
    EditMessage,
    MarkDelivered,
    NothingToStop,
    PlanDelivery,
    Post,
    Posted,
    PostReply,
    Reader,
    RequestForce,
    RequestStop,
    SessionHistory,
    SetMode,
    SettleAttachment,
    Store,
    TooEarly,
    WithdrawMessage,
)
from kesoku_actors.store.again import until_known
from kesoku_actors.values import define, frozen


@frozen(kw_only=True)
class GatewayStatistics:
    """A frozen picture of the gateway."""

    last_rev: int
    announcements: int
    """Waiting for the broadcaster."""
    subscriptions: tuple[SubscriptionStatistics, ...]
    workers: int


@define(eq=False)
class Gateway:
    """Client functions of the gateway. None is ever half done.

    A command that raises a `StoreFault` did nothing. One that raises `ActorStopped`, because the store ended with it in
    hand, is done or not: what is stored tells (C10). `post` alone sends again until it knows.
    """

    store: Store
    subscriptions: Subscriptions
    latches: Latches
    announcements: Announcements
    unattended: Summons
    """Sessions that the dispatcher should look at."""
    world: World
    log: Logger

    @property
    def reader(self) -> Reader:
        """Reads of the store; owns nothing and changes nothing."""
        return self.store.reader

    # messages

    async def post(self, inbound: Inbound) -> PostReply:
        """Store what an adapter decoded; accepted when this returns `Posted` (C1). Safe to repeat by external id.

        Goes on through restarts of the store; raises `ActorStopped` when it is gone for good.
        """
        command = Post(id=self.world.ids(), inbound=inbound)
        reply = await until_known(partial(self.store.post, command), self.log, "post")
        if isinstance(reply, Posted) and not reply.is_new and reply.message.waits:
            self.unattended.call(reply.message.session_id)  # announced again (M5)
        return reply

    async def edit(self, message_id: str, content: str) -> Message | None:
        """Replace the text of a message nobody has taken yet (M8)."""
        return await self.store.edit(EditMessage(message_id=message_id, content=content))

    async def withdraw(self, message_id: str) -> bool:
        """Delete a message nobody has taken yet (M8)."""
        return await self.store.withdraw(WithdrawMessage(message_id=message_id))

    async def settle_attachment(
        self,
        message_id: str,
        index: int,
        *,
        path: str | None = None,
        mime_type: str | None = None,
        reason: str | None = None,
    ) -> Message | None:
        """Say that an attachment was saved at `path` in its session's workspace, or why it was not (M8).

        Returns the message as it is stored now, or none when it is gone. The first settlement stands, so the file
        belongs to the message only when its attachment names this path. Raises `NotFound` for an unknown index.
        """
        settle = SettleAttachment(message_id=message_id, index=index, path=path, mime_type=mime_type, reason=reason)
        return await self.store.settle_attachment(settle)

    def listen(
        self,
        *,
        session_id: str | None = None,
        channel: Channel | None = None,
        chatbot_id: str | None = None,
        statuses: frozenset[Status] | None = None,
        roles: frozenset[Role] | None = None,
        types: frozenset[Type] | None = None,
        hints: bool = True,
        after: int | None = None,
        label: str = "listener",
        capacity: int = 1024,
    ) -> Listening:
        """Yield what matches every filter given: rows changed after rev `after` first, then live (B1).

        Without `after` it begins with what is broadcast next. Close it (`contextlib.aclosing`) when done.
        """
        filter = Filter(
            session_id=session_id,
            channel=channel,
            chatbot_id=chatbot_id,
            statuses=statuses,
            roles=roles,
            types=types,
            hints=hints,
        )
        subscription = self.subscriptions.add(filter, label=label, after=after, capacity=capacity)
        return Listening(self.subscriptions, subscription, self.reader, self.log)

    # commands

    async def stop(
        self, session_id: str, message_id: str | None = None, *, reason: Reason = Reason.STOPPED
    ) -> Stop | NothingToStop:
        """Store a stop (I7) of the named message's turn, else of the turn running, else of the first waiting."""
        return await self.store.stop(RequestStop(session_id=session_id, message_id=message_id, reason=reason))

    async def force(self, session_id: str) -> Stop | TooEarly | NothingToStop:
        """End the running tools of a stopped turn; accepted no sooner than 1 s after the stop (I7)."""
        return await self.store.force(RequestForce(session_id=session_id))

    async def stop_receipt(self, stop: Stop) -> StopEnded:
        """Wait until a stop has ended all it covers, and return what ended (I7)."""
        async with aclosing(self.listen(session_id=stop.session_id, label="stop receipt")) as events:
            # The commit that ends a stop changes a row it covers, and rows are never missed; the event may be.
            while True:
                known = await self.reader.stop(stop.seq)
                if known is None or known.done:
                    break
                await anext(events)
        return receipt_of(stop, await self.reader.stop_outcome(stop.seq))

    async def clear(self, session_id: str) -> Stop | NothingToStop:
        """Begin to clear a session (M7): it is closed, and what it holds is stopped."""
        return await self.store.close_session(CloseSession(session_id=session_id))

    async def set_mode(self, channel: Channel, mode: BusyMode) -> BusyMode:
        """Change a channel's busy mode; what waits already is judged by the new one (I5)."""
        return await self.store.set_mode(SetMode(channel=channel, mode=mode))

    async def answer_approval(
        self,
        call_id: str,
        approved: bool,
        by: str,
        *,
        by_id: str | None = None,
        is_admin: bool = False,
        for_session: bool = False,
    ) -> ApprovalAnswer:
        """Approve or deny a waiting call; a later answer is told who decided, one of somebody else is refused (T7)."""
        answer = AnswerApproval(
            call_id=call_id, approved=approved, by=by, by_id=by_id, is_admin=is_admin, for_session=for_session
        )
        return await self.store.answer_approval(answer)

    # deliveries (C5)

    async def leaving(self, channel: Channel) -> tuple[Message, ...]:
        """Return the messages not yet delivered to a channel, in order (O2)."""
        return await self.reader.leaving(channel)

    async def plan_delivery(self, message_id: str, chunks: tuple[str, ...]) -> tuple[Chunk, ...]:
        """Store the plan of a delivery before its first send; the first plan stands."""
        return await self.store.plan_delivery(PlanDelivery(message_id=message_id, chunks=chunks))

    async def chunk_attempt(self, message_id: str, index: int) -> Chunk:
        """Record that a chunk is about to be sent."""
        return await self.store.chunk_attempt(ChunkAttempt(message_id=message_id, index=index))

    async def chunk_sent(self, message_id: str, index: int, remote_id: str | None = None) -> Chunk:
        """Record that a chunk was sent."""
        return await self.store.chunk_sent(ChunkSent(message_id=message_id, index=index, remote_id=remote_id))

    async def delivered(self, message_id: str) -> bool:
        """Record that every chunk was sent."""
        return await self.store.mark_delivered(MarkDelivered(message_id=message_id, delivered=True))

    async def undeliverable(self, message_id: str, detail: str) -> bool:
        """Record that the platform refused it for good."""
        return await self.store.mark_delivered(MarkDelivered(message_id=message_id, delivered=False, detail=detail))

    # sessions

    async def sessions(self, limit: int = 50, chatbot_id: str | None = None) -> tuple[SessionInfo, ...]:
        """Return sessions, the most recently active first."""
        return await self.reader.sessions(limit, chatbot_id)

    async def session(self, session_id: str) -> SessionInfo | None:
        """Return one session, or none."""
        return await self.reader.session(session_id)

    async def history(self, session_id: str) -> SessionHistory:
        """Return a session's messages and steps in order (O1)."""
        return await self.reader.history(session_id)

    # hints

    def hint(self, event: Event, channel: Channel | None) -> None:
        """Tell listeners something droppable (B2): a delta, an activity. Never blocks; dropped when full.

        What nobody wants goes nowhere: a model's stream has a hint for every word.
        """
        if not self.subscriptions.wanted(event, channel):
            return
        self.announcements.hint(Hint(event=event, channel=channel))

    def statistics(self) -> GatewayStatistics:
        """Return a frozen picture of listeners and live workers."""
        return GatewayStatistics(
            last_rev=self.subscriptions.last_rev,
            announcements=self.announcements.waiting,
            subscriptions=self.subscriptions.statistics(),
            workers=len(self.latches.by_session),
        )
