"""The terminal: shows one posted message's turn and delivers what leaves, until the turn has ended.

The loop of every adapter: subscription -> delivery plan -> write -> recorded as delivered (C5). Events say *that*
something leaves; *what* leaves is read from the gateway, in order (O2), so that nothing hangs on the order of
events, and a session taken up again begins with the answers nobody has seen yet.

A message is recorded as delivered after it was written and flushed. When nobody can read any more, it stays
pending and the chat ends as unfinished.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

import trio
from attrs import field

from kesoku_actors.adapters.courier import DeliveryPort, SurfaceGone, deliver_channel
from kesoku_actors.adapters.terminal.output import ReaderGone
from kesoku_actors.adapters.terminal.summary import STATES, ChatOutcome, ChatState, summarize
from kesoku_actors.adapters.terminal.view import Leaf, View
from kesoku_actors.clock import World
from kesoku_actors.protocol import (
    LEAVES,
    Changed,
    Channel,
    Event,
    Message,
    Removed,
    Status,
    StopEnded,
    StoredStep,
)
from kesoku_actors.store.port import Chunk
from kesoku_actors.values import define


class Told(Protocol):
    """A session as it is read back."""

    @property
    def messages(self) -> Sequence[Message]:
        """Its rows, in order (O1)."""

    @property
    def steps(self) -> Sequence[StoredStep]:
        """Its inferences, in order."""


class Events(Protocol):
    """What happens, one after the other, until it is closed."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    def aclose(self) -> Awaitable[None]:
        """Listen no more."""


class TerminalPort(DeliveryPort, Protocol):
    """What the terminal needs of the gateway."""

    def listen(self, *, session_id: str, after: int, label: str) -> Events:
        """Yield a session's rows changed after rev `after`, then what happens (B1)."""

    async def history(self, session_id: str) -> Told:
        """Return a session's rows and steps."""


async def run_terminal(
    *,
    gateway: TerminalPort,
    channel: Channel,
    session_id: str,
    message_id: str,
    after: int,
    view: View,
    world: World,
    receipt: Callable[[], Awaitable[StopEnded | None]] | None = None,
) -> ChatOutcome:
    """Show the turn of a posted message and return how it ended.

    `after` is a rev before the message's present one. `receipt` is asked when the turn was stopped, and waits for
    the receipt of the stop this chat asked for, if it did. Raises what the gateway raises; run again with the same
    arguments it shows the turn anew and delivers nothing twice that was recorded.
    """
    talk = _Talk(gateway=gateway, channel=channel, message_id=message_id, view=view, world=world)
    began = world.clock.monotonic()
    state = ChatState.UNFINISHED
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.refresh, nursery.cancel_scope)
        try:
            state = await talk.follow(session_id, after)
            if state is ChatState.STOPPED and receipt is not None:
                await talk.show_receipt(await receipt())
        except SurfaceGone as gone:
            state, talk.gone = ChatState.UNFINISHED, gone
        nursery.cancel_scope.cancel()
    told = await gateway.history(session_id)
    seconds = world.clock.monotonic() - began
    summary = summarize(told.messages, told.steps, talk.root_id, state, seconds)
    with suppress(SurfaceGone):  # the last line is lost; what it would have said is the outcome
        await view.finish(summary)
    gone_is = None if talk.gone is None else str(talk.gone)
    return ChatOutcome(state=state, summary=summary, gone=gone_is, reader_left=isinstance(talk.gone, ReaderGone))


@define(eq=False)
class _Talk:
    """One chat. The view is used by one task at a time."""

    gateway: TerminalPort
    channel: Channel
    message_id: str
    view: View
    world: World
    root_id: str = field(init=False)
    """The turn of the posted message, as far as known: its own until another turn adopts it."""
    gone: SurfaceGone | None = None
    """What was lost, if nobody can read any more."""
    _lock: trio.Lock = field(factory=trio.Lock, init=False)
    _receipts: set[int] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.root_id = self.message_id

    async def follow(self, session_id: str, after: int) -> ChatState:
        """Show and deliver until the turn has ended; return how."""
        await self.deliver()
        async with aclosing(self.gateway.listen(session_id=session_id, after=after, label="terminal")) as events:
            async for event in events:
                ended = await self._hear(event)
                if ended is not None:
                    await self.deliver()
                    return ended
        return ChatState.UNFINISHED

    async def _hear(self, event: Event) -> ChatState | None:
        match event:
            case Changed(message=message) if message.id == self.message_id:
                self.root_id = message.root_id or self.root_id
                await self._show(event, message.root_id)
                return STATES.get(message.status)
            case Changed(message=message) if message.status in LEAVES:
                if message.status is Status.PENDING:
                    await self.deliver()
            case Changed(message=message):
                await self._show(event, message.root_id)
            case Removed(message_id=self.message_id):
                await self._show(event, self.root_id)
                return ChatState.STOPPED
            case StopEnded():
                await self.show_receipt(event)
            case _:
                await self._show(event, None)
        return None

    async def deliver(self) -> None:
        """Deliver all that waits in the channel."""
        await deliver_channel(self.channel, self.gateway, self._send, jitter=self.world.rng.random)

    async def _send(self, message: Message, chunk: Chunk) -> None:
        leaf = Leaf(
            message=message,
            text=chunk.content,
            is_ours=self._is_ours(message.root_id),
            is_again=chunk.attempts > 1,
        )
        async with self._lock:
            await self.view.leave(leaf)

    async def show_receipt(self, receipt: StopEnded | None) -> None:
        """Show a stop's receipt once (I7)."""
        if receipt is not None and receipt.stop_seq not in self._receipts:
            self._receipts.add(receipt.stop_seq)
            await self._show(receipt, None)

    async def refresh(self, scope: trio.CancelScope) -> None:
        """Let the view draw what changes with time; end the chat when it cannot any more."""
        if self.view.refresh_s is None:
            return
        try:
            while True:
                await trio.sleep(self.view.refresh_s)
                async with self._lock:
                    await self.view.refresh()
        except SurfaceGone as gone:
            self.gone = gone
            scope.cancel()

    async def _show(self, event: Event, root_id: str | None) -> None:
        async with self._lock:
            await self.view.show(event, is_ours=self._is_ours(root_id))

    def _is_ours(self, root_id: str | None) -> bool:
        return root_id is not None and root_id in (self.message_id, self.root_id)
