"""The actor's end of a mailbox for one of its lives: it drains.

A checkpoint costs ten times a channel hop, so the inbox hands out up to 64 letters between two of them. Within such a
run neither other tasks nor a cancellation get a turn; then the channel's own `receive` yields once.

Invariants: a letter leaves the queue only when it is handed out, so those not handed out meet the next life of the
actor. Every ask handed out stands in `unanswered` until it is answered, taken by one or in a batch alike, so `close`
strands nobody. After `stop` nothing more leaves the queue; what trio had handed to a waiting reader before is read.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Generic, final

import trio
from trio.lowlevel import enable_ki_protection

from .errors import ActorStopped
from .letter import TOLD, Letter, M

DRAIN: Final = 64


@final
class Inbox(Generic[M]):
    """Iterate it to get letters; the iteration ends when the actor is asked to stop."""

    __slots__ = ("_drained", "_name", "_receive", "_waiting_since", "unanswered")

    def __init__(
        self, name: str, receive: trio.MemoryReceiveChannel[Letter[M] | M], waiting_since: deque[float]
    ) -> None:
        self._name = name
        self._receive = receive
        self._waiting_since = waiting_since
        self._drained = 0
        self.unanswered: dict[Letter[Any], None] = {}

    def __aiter__(self) -> Inbox[M]:
        return self

    @enable_ki_protection
    async def __anext__(self) -> Letter[M]:
        while True:
            try:
                # Asking the queue of times first spares the exception of an empty channel, as dear as a letter.
                if self._waiting_since and self._drained < DRAIN:
                    item = self._receive.receive_nowait()
                    self._drained += 1
                else:
                    item = await self._receive.receive()
                    self._drained = 1
            except trio.ClosedResourceError:
                raise StopAsyncIteration from None
            except trio.WouldBlock:  # what waits was handed to another task that reads this inbox
                self._drained = DRAIN
                continue
            if (letter := self._hand_out(item)) is not None:
                return letter

    def batches(self, limit: int = DRAIN) -> Batches[M]:
        """Iterate in lists of one to `limit` letters, everything that waits at once, with one checkpoint a list."""
        return Batches(self, limit)

    @enable_ki_protection
    async def next_batch(self, limit: int) -> list[Letter[M]]:
        """Wait for the first letter and take what else waits. Raises `StopAsyncIteration` after `stop`."""
        batch: list[Letter[M]] = []
        while not batch:
            try:
                item = await self._receive.receive()
            except trio.ClosedResourceError:
                raise StopAsyncIteration from None
            if (letter := self._hand_out(item)) is not None:
                batch.append(letter)
            self._drain(batch, limit)
        return batch

    def _drain(self, batch: list[Letter[M]], limit: int) -> None:
        try:
            while self._waiting_since and len(batch) < limit:
                if (letter := self._hand_out(self._receive.receive_nowait())) is not None:
                    batch.append(letter)
        except (trio.ClosedResourceError, trio.WouldBlock):
            # Stopped meanwhile, or what waits was handed to another reader: the batch is what there is.
            return

    def _hand_out(self, item: Letter[M] | M) -> Letter[M] | None:
        """Account for an item taken from the queue; None when its asker has left."""
        self._waiting_since.popleft()
        letter: Letter[M] = item if isinstance(item, Letter) else Letter(item, TOLD)
        return letter if letter.take(self.unanswered) else None

    # What follows is the kernel's side.

    def stop(self) -> None:
        """Hand out nothing more; a reader that waits wakes up to the end of its iteration."""
        self._receive.close()

    @enable_ki_protection
    def close(self) -> None:
        """Stop, and answer every ask taken and not answered with `ActorStopped`."""
        self._receive.close()
        for letter in list(self.unanswered):
            letter.settle(None, ActorStopped(self._name))


@final
class Batches(Generic[M]):
    """`async for batch in inbox.batches()`. No generator: there is nothing to finalise when a loop is left early."""

    __slots__ = ("_inbox", "_limit")

    def __init__(self, inbox: Inbox[M], limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a batch holds at least one letter, not {limit}")
        self._inbox = inbox
        self._limit = limit

    def __aiter__(self) -> Batches[M]:
        return self

    async def __anext__(self) -> list[Letter[M]]:
        return await self._inbox.next_batch(self._limit)
