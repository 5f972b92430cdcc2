"""A mailbox: the bounded queue that outlives the actor reading it.

It is a genuine trio memory channel, which orders letters and parks those who wait for room. The mailbox keeps both ends
open, so that letters wait while an actor is down; each life of the actor reads through a clone of its own
(`open_inbox`), which a stop request closes without touching the queue.

A tell lies in it as the bare message and becomes a letter when it is handed out: with thousands of letters waiting, the
garbage collector's walks over them cost as much as their delivery. An ask, a tell that waits for room, and a message
that is itself a letter lie in it as letters.

Invariants: one inbox is open at a time. `_waiting_since` holds one time per letter sent and not taken, in the order of
the queue; senders waiting for room stand in it too, behind the queued. A closed mailbox is empty; opening an inbox
opens it again, because a supervisor that was given up may be started anew.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, final

import trio
from trio.lowlevel import enable_ki_protection

from .errors import ActorStopped
from .inbox import Inbox
from .letter import Letter, M
from .ref import Ref
from .statistics import MailboxStatistics


@final
class Mailbox(Generic[M]):
    """Where messages for one actor wait, at most `capacity` of them. Made before anything runs; give out its `ref`."""

    def __init__(self, name: str, capacity: int = 256) -> None:
        if capacity < 1:
            raise ValueError(f"the mailbox of {name!r} needs room for at least one letter, not {capacity}")
        self.name = name
        self.capacity = capacity
        self._send, self._receive = trio.open_memory_channel[Letter[M] | M](capacity)
        self._waiting_since: deque[float] = deque()
        self._inbox: Inbox[M] | None = None
        self._closed = False
        self.ref: Ref[M] = Ref(self)

    def __repr__(self) -> str:
        return f"<Mailbox {self.name!r}, {len(self._waiting_since)} of {self.capacity} waiting>"

    def statistics(self) -> MailboxStatistics:
        """Return a reading; needs a running trio loop, because ages are in its time."""
        return MailboxStatistics(
            name=self.name,
            capacity=self.capacity,
            waiting=len(self._waiting_since),
            oldest_waiting_s=trio.current_time() - self._waiting_since[0] if self._waiting_since else 0.0,
            unanswered=len(self._inbox.unanswered) if self._inbox is not None else 0,
            closed=self._closed,
        )

    # What follows is the kernel's side.

    @enable_ki_protection
    def post_nowait(self, item: Letter[M] | M) -> None:
        """Queue a letter, or the bare message of a tell.

        Raises `trio.WouldBlock` when there is no room, `ActorStopped` when nobody will read it.
        """
        if self._closed:
            raise ActorStopped(self.name, for_good=True)
        self._send.send_nowait(item)
        self._waiting_since.append(trio.current_time())

    @enable_ki_protection
    async def post(self, letter: Letter[M]) -> None:
        """Wait for room and queue a letter; call it at once after `post_nowait` found none."""
        since = trio.current_time()
        self._waiting_since.append(since)
        try:
            await self._send.send(letter)
        except BaseException:
            # Equal times are interchangeable, so the order of the others holds.
            self._waiting_since.remove(since)
            raise

    @enable_ki_protection
    def open_inbox(self) -> Inbox[M]:
        """Begin a life of the actor. Raises `RuntimeError` when another one still reads here."""
        if self._inbox is not None:
            raise RuntimeError(f"mailbox {self.name!r} is read by an actor already; give each child its own")
        self._closed = False
        self._inbox = Inbox(self.name, self._receive.clone(), self._waiting_since)
        return self._inbox

    @enable_ki_protection
    def close_inbox(self) -> None:
        """End a life of the actor: what it took and did not answer is answered with `ActorStopped`."""
        if self._inbox is not None:
            self._inbox.close()
            self._inbox = None

    @enable_ki_protection
    def close(self) -> None:
        """Nobody will read here: answer every queued ask, wake everyone who waits for room, drop the tells."""
        self._closed = True
        while True:
            try:
                item = self._receive.receive_nowait()
            except trio.WouldBlock:
                return
            self._waiting_since.popleft()
            if isinstance(item, Letter):
                item.settle(None, ActorStopped(self.name, for_good=True))
