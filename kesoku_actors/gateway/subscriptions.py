"""Subscriptions with cursors (B1): who listens, and how a listener that lags catches up.

Invariants:

* a subscription's queue is bounded; what does not fit is dropped and the subscription is marked lagging;
* the cursor is a `rev`: every row at or below it was yielded (in its state of then or a later one) or not wanted;
* while it lags no row is queued, so what is queued stands before the gap; the listener yields that, then re-reads
  every changed row since its cursor, once, in its present state, until a reading finds nothing;
* rows are queued again from before that last reading, so none falls between;
* a hint has no place in that order: it comes when it comes, or not at all (B2).

The table of subscriptions and the last broadcast `rev` outlive the broadcaster's task: a restarted broadcaster
continues from them.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import Protocol, final

import trio
from attrs import field

from kesoku_actors.gateway.filters import Filter
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Changed, Channel, Event, Removed
from kesoku_actors.store import Publication
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define, frozen


class Changes(Protocol):
    """The part of the store's reader that a listener catches up with."""

    async def changes(self, after_rev: int, limit: int) -> Publication:
        """Return rows changed after `after_rev`, at most `limit`, in `rev` order."""

    async def head(self) -> int:
        """Return the counter as committed."""


@frozen(kw_only=True)
class SubscriptionStatistics:
    """One listener, for status pages."""

    label: str
    queued: int
    cursor: int
    lagging: bool
    dropped: int


@define(eq=False)
class Subscription:
    """One listener's queue. `offer` is called by the broadcaster, `next_events` by the listener."""

    label: str
    filter: Filter
    cursor: int
    """Rows up to this rev are dealt with."""
    send: trio.MemorySendChannel[Event]
    receive: trio.MemoryReceiveChannel[Event]
    lagging: bool = False
    """Rows were missed; true from the start for one that begins in the past."""
    dropped: int = 0

    def offer(self, event: Event, channel: Channel | None) -> None:
        """Queue the event if it is wanted; never blocks."""
        if not self.filter.wants(event, channel):
            return
        is_row = isinstance(event, Changed | Removed)
        if is_row and self.lagging:
            return
        try:
            self.send.send_nowait(event)
        except trio.WouldBlock:
            self.dropped += 1
            self.lagging = self.lagging or is_row

    async def next_events(self, reader: Changes) -> list[Event]:
        """Wait for what is wanted next: one or more events, without a gap and without a duplicate."""
        while True:
            if found := self._queued():
                return found
            if self.lagging:
                if found := await self._missed(reader):
                    return found
                continue
            event = await self.receive.receive()
            if self._fresh(event):
                return [event, *self._queued()]

    def _queued(self) -> list[Event]:
        found: list[Event] = []
        while True:
            try:
                event = self.receive.receive_nowait()
            except trio.WouldBlock:
                return found
            if self._fresh(event):
                found.append(event)

    def _fresh(self, event: Event) -> bool:
        match event:
            case Changed(message=row):
                rev = row.rev
            case Removed():
                rev = event.rev
            case _:
                return True
        if rev <= self.cursor:
            return False
        self.cursor = rev
        return True

    async def _missed(self, reader: Changes, page: int = 256) -> list[Event]:
        """Read the next page of what was missed; `lagging` ends with an empty one."""
        self.lagging, caught_up = False, False
        try:
            seen = await reader.changes(self.cursor, page)
            events = [event for event in in_order(seen) if self._fresh(event)]
            caught_up = not events
            return [event for event in events if self.filter.wants(event, None)]
        finally:
            if not caught_up:  # also when the reading failed or was cancelled
                self._discard()
                self.lagging = True

    def _discard(self) -> None:
        """Empty the queue: its rows are read again, its hints are droppable."""
        with suppress(trio.WouldBlock):
            while True:
                self.receive.receive_nowait()


def in_order(publication: Publication) -> list[Event]:
    """Return the rows changed and removed by a publication as events, in `rev` order."""
    if not publication.removed:
        return [Changed(message=row) for row in publication.changed]
    found: list[tuple[int, Event]] = [(row.rev, Changed(message=row)) for row in publication.changed]
    found += [
        (rev, Removed(message_id=message_id, session_id=session_id, rev=rev))
        for message_id, session_id, rev in publication.removed
    ]
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]


@define(eq=False)
class Subscriptions:
    """Every listener of one gateway, and how far the broadcast has come."""

    last_rev: int = 0
    """Every row at or below it was offered to all listeners."""
    counter: int = -1
    """The store's counter after the last publication heard; below 0 before the first start."""
    current: list[Subscription] = field(factory=list)

    @property
    def is_new(self) -> bool:
        """Whether nothing was broadcast yet: what the store holds then is the past."""
        return self.counter < 0

    def begin(self, counter: int) -> None:
        """Begin to broadcast after the store's counter as it is now."""
        self.last_rev = self.counter = counter

    def add(self, filter: Filter, *, label: str, after: int | None, capacity: int) -> Subscription:
        """Subscribe from now on; the cursor starts at `after`, or at the last broadcast row."""
        send, receive = trio.open_memory_channel[Event](capacity)
        cursor = self.last_rev if after is None else after
        subscription = Subscription(
            label=label,
            filter=filter,
            cursor=cursor,
            send=send,
            receive=receive,
            lagging=after is not None,
        )
        self.current.append(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """End a subscription; its queue is discarded."""
        if subscription in self.current:
            self.current.remove(subscription)
        subscription.send.close()
        subscription.receive.close()

    def wanted(self, event: Event, channel: Channel | None) -> bool:
        """Tell whether any listener wants the event."""
        return any(subscription.filter.wants(event, channel) for subscription in self.current)

    def offer(self, event: Event, channel: Channel | None) -> None:
        """Offer one event to every listener."""
        for subscription in self.current:
            subscription.offer(event, channel)

    def statistics(self) -> tuple[SubscriptionStatistics, ...]:
        """Return a frozen picture of all listeners."""
        return tuple(
            SubscriptionStatistics(
                label=one.label,
                queued=one.receive.statistics().current_buffer_used,
                cursor=one.cursor,
                lagging=one.lagging,
                dropped=one.dropped,
            )
            for one in self.current
        )


@final
class Listening:
    """One listener's events, `async for` by `async for`; subscribed from the moment it is made until it is closed.

    No generator: that would subscribe only at its first event, and what happened before would be missed.
    """

    def __init__(self, subscriptions: Subscriptions, subscription: Subscription, reader: Changes, log: Logger) -> None:
        self._subscriptions = subscriptions
        self._next = partial(subscription.next_events, reader)
        self._subscription = subscription
        self._log = log
        self._events: deque[Event] = deque()

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            self._events.extend(await until_answered(self._next, self._log, "read what a listener missed"))
        return self._events.popleft()

    async def aclose(self) -> None:
        """End the subscription; closing it again changes nothing."""
        self._subscriptions.drop(self._subscription)
        await trio.lowlevel.checkpoint()
