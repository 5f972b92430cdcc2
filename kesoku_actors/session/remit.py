"""The channels that a process works for (C2).

Fixed for most; it grows at a terminal where a person goes on with another session. It never shrinks: what was begun in
a channel is finished there.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio
from attrs import field

from kesoku_actors.protocol import Channel
from kesoku_actors.values import define


@define(eq=False)
class Remit:
    """Owned by the composition, watched by the dispatcher; outlives its task."""

    channels: tuple[Channel, ...] | None = None
    """None: all."""
    _wake: trio.Event = field(factory=trio.Event, init=False)

    def add(self, channel: Channel) -> None:
        """Work for this channel too; what waits there is begun."""
        if self.channels is not None and channel not in self.channels:
            self.channels = (*self.channels, channel)
            self._wake.set()

    async def added(self, known: tuple[Channel, ...]) -> tuple[Channel, ...]:
        """Wait until there are channels beyond those known, and return them."""
        while self.channels is None or len(self.channels) == len(known):
            self._wake = trio.Event()
            await self._wake.wait()
        return tuple(channel for channel in self.channels if channel not in known)


def remit_of(channels: Remit | Iterable[Channel] | None) -> Remit:
    """Return a remit of these channels, or of all."""
    if isinstance(channels, Remit):
        return channels
    return Remit(None if channels is None else tuple(channels))
