"""Ctrl-C in a one-shot chat (I7): stop, then force what runs, then leave.

The first press stops the turn. Again while tools run forces them; a press within the first second is kept and takes
effect then. Again after that, or when nothing is left to stop, leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterable

import trio
from attrs import define

from kesoku_actors.gateway import Gateway
from kesoku_actors.protocol import CallState, Stop, StopEnded
from kesoku_actors.store import TooEarly


@define(eq=False)
class Interrupts:
    """What the presses so far have done."""

    gateway: Gateway
    session_id: str
    leave: trio.CancelScope
    """Cancelled to end the chat without waiting for the turn."""
    stop: Stop | None = None
    forced: bool = False

    async def obey(self, presses: AsyncIterable[object]) -> None:
        """Act on each press until the chat ends."""
        async for _ in presses:
            await self.pressed()

    async def pressed(self) -> None:
        """Do what the next press means now."""
        if self.stop is None:
            stored = await self.gateway.stop(self.session_id)
            if isinstance(stored, Stop):
                self.stop = stored
            else:
                self.leave.cancel()
        elif not self.forced and await self._tools_run(self.stop):
            self.forced = True
            reply = await self.gateway.force(self.session_id)
            if isinstance(reply, TooEarly):
                await trio.sleep(reply.wait_s)
                await self.gateway.force(self.session_id)
        else:
            self.leave.cancel()

    async def receipt(self) -> StopEnded | None:
        """Wait for the receipt of the stop asked for here, if one was."""
        return None if self.stop is None else await self.gateway.stop_receipt(self.stop)

    async def _tools_run(self, stop: Stop) -> bool:
        if stop.root_id is None:
            return False
        return any(call.state is CallState.STARTED for call in await self.gateway.reader.calls(stop.root_id))
