"""Carries out deliveries: asks the planner, acts, records, until a message has left.

`send` is the adapter's own: it puts one chunk where people see it and returns the platform's id of it, if there is
one. A chunk whose `attempts` are above 1 may have arrived already; the same `nonce` tells the platform so. It
raises `SendFailed` (try again later), `SendRefused` (never) or `SurfaceGone` (nothing can be shown here any more:
the message stays pending for the next adapter of its channel).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, assert_never

import trio

from kesoku_actors.adapters.chunking import split
from kesoku_actors.adapters.delivery import (
    Backoff,
    BackoffPolicy,
    Fact,
    Failed,
    MarkDelivered,
    MarkUndeliverable,
    Plan,
    Refused,
    Send,
    Withdrawn,
    next_action,
    next_leaf,
)
from kesoku_actors.errors import NotFound, PeerError
from kesoku_actors.protocol import Channel, Message
from kesoku_actors.store.port import Chunk


class SendFailed(PeerError):
    """The platform did not take a chunk this time; `retry_after_s` is the pause it asked for, if it did."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SendRefused(PeerError):
    """The platform will never take this message; the text says why."""


class SurfaceGone(PeerError):
    """Where the messages were shown is gone: a closed terminal, a reader of a pipe that went away."""


class DeliveryPort(Protocol):
    """What a delivery needs of the gateway. Every method may raise a `StoreFault`; none is half done then.

    The first three that take a message raise `NotFound` when it is gone.
    """

    async def leaving(self, channel: Channel) -> tuple[Message, ...]:
        """Return the messages not yet delivered to a channel."""

    async def plan_delivery(self, message_id: str, chunks: tuple[str, ...]) -> tuple[Chunk, ...]:
        """Store the plan unless there is one, and return what is stored."""

    async def chunk_attempt(self, message_id: str, index: int) -> Chunk:
        """Count an attempt and return the chunk with it."""

    async def chunk_sent(self, message_id: str, index: int, remote_id: str | None = None) -> Chunk:
        """Record that a chunk was sent."""

    async def delivered(self, message_id: str) -> object:
        """Record that all of it was sent."""

    async def undeliverable(self, message_id: str, detail: str) -> object:
        """Record that it was refused for good."""


SendChunk = Callable[[Chunk], Awaitable[str | None]]
Split = Callable[[str], tuple[str, ...]]
Sleep = Callable[[float], Awaitable[object]]


async def deliver(
    message: Message,
    gateway: DeliveryPort,
    send: SendChunk,
    *,
    jitter: Callable[[], float],
    split: Split = split,
    policy: BackoffPolicy | None = None,
    sleep: Sleep = trio.sleep,
) -> MarkDelivered | MarkUndeliverable | Withdrawn:
    """Deliver one pending message and return how it ended (C5). Takes as long as the platform needs.

    Raises `SurfaceGone` from `send`, and what else the gateway raises; a later call goes on where this one ended.
    """
    try:
        return await _deliver(message, gateway, send, jitter, split, policy or BackoffPolicy(), sleep)
    except NotFound:
        return Withdrawn()


async def _deliver(
    message: Message,
    gateway: DeliveryPort,
    send: SendChunk,
    jitter: Callable[[], float],
    split: Split,
    policy: BackoffPolicy,
    sleep: Sleep,
) -> MarkDelivered | MarkUndeliverable:
    planned = split(message.content)
    chunks: dict[int, Chunk] | None = None
    last: Fact | None = None
    while True:
        stored = None if chunks is None else tuple(chunks.values())
        action = next_action(stored, last, planned=planned, policy=policy, jitter=jitter())
        last = None
        match action:
            case Plan():
                chunks = {chunk.index: chunk for chunk in await gateway.plan_delivery(message.id, action.chunks)}
            case Send():
                assert chunks is not None
                chunks[action.index] = chunk = await gateway.chunk_attempt(message.id, action.index)
                try:
                    remote_id = await send(chunk)
                except SendFailed as failure:
                    last = Failed(retry_after_s=failure.retry_after_s)
                except SendRefused as refusal:
                    last = Refused(reason=str(refusal))
                else:
                    chunks[action.index] = await gateway.chunk_sent(message.id, action.index, remote_id)
            case Backoff():
                await sleep(action.delay_s)
            case MarkDelivered():
                await gateway.delivered(message.id)
                return action
            case MarkUndeliverable():
                await gateway.undeliverable(message.id, action.reason)
                return action
            case _:
                assert_never(action)


async def deliver_channel(
    channel: Channel,
    gateway: DeliveryPort,
    send: Callable[[Message, Chunk], Awaitable[str | None]],
    *,
    jitter: Callable[[], float],
    split: Split = split,
    policy: BackoffPolicy | None = None,
    sleep: Sleep = trio.sleep,
) -> int:
    """Deliver all that waits in a channel, in order (O2), and return how many messages that was."""
    count = 0
    while (message := next_leaf(await gateway.leaving(channel))) is not None:

        async def send_chunk(chunk: Chunk, message: Message = message) -> str | None:
            return await send(message, chunk)

        end = await deliver(message, gateway, send_chunk, jitter=jitter, split=split, policy=policy, sleep=sleep)
        count += not isinstance(end, Withdrawn)
    return count
