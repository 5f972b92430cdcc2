"""What the broadcaster has to tell: publications of the store and hints of workers, in the order they happened.

Invariants: putting something in never blocks and never raises, whatever has become of the broadcaster; what waits is
bounded. A hint that does not fit is dropped (B2). A publication that does not fit is `lost`: from then on nothing is
queued until the broadcaster has taken what there is and read the rest from the store, so that nothing comes out of
order and nothing is missed (B1).
"""

from __future__ import annotations

from collections import deque
from typing import Final

import trio
from attrs import field

from kesoku_actors.protocol import Channel, Event
from kesoku_actors.store import Publication
from kesoku_actors.values import define, frozen

MOST: Final = 4096
BATCH: Final = 64


@frozen(kw_only=True)
class Hint:
    """A droppable event (B2) of a session in `channel`."""

    event: Event
    channel: Channel | None


Announcement = Publication | Hint


@define(eq=False)
class Announcements:
    """The queue between those who know and the broadcaster; outlives the task of either."""

    most: int = MOST
    lost: bool = False
    """A publication did not fit: what the store holds has to be read."""
    dropped: int = 0
    """Hints that did not fit, so far."""
    _queue: deque[Announcement] = field(factory=deque, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)

    def publish(self, publication: Publication) -> None:
        """Take what a group commit changed; called on the trio thread right after it."""
        if self.lost or len(self._queue) >= self.most:
            self.lost = True
        else:
            self._queue.append(publication)
        self._wake.set()

    def hint(self, hint: Hint) -> None:
        """Take something droppable."""
        if self.lost or len(self._queue) >= self.most:
            self.dropped += 1
        else:
            self._queue.append(hint)
            self._wake.set()

    def ring(self) -> None:
        """Wake who waits, with nothing to tell."""
        self._wake.set()

    async def next(self) -> list[Announcement]:
        """Wait for what comes next, a batch at a time; an empty one for a loss with nothing before it, or a ring."""
        if not self._queue and not self.lost:
            self._wake = trio.Event()
            await self._wake.wait()
        return [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]

    def found(self) -> None:
        """Queue again: the broadcaster is about to read what was lost."""
        self.lost = False

    @property
    def waiting(self) -> int:
        """How much is queued."""
        return len(self._queue)
