"""Ctrl-C in a one-shot chat (I7): stop, then force what runs, then leave.

The first press stops the turn. Again while tools run forces them; a press within the first second is kept and takes
effect then. Again after that, or when nothing is left to stop, leaves. So does a press that waits for an earlier one
which the store has not answered in time: a disk that is full keeps nobody.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable
from functools import partial
from typing import Final

import trio
from attrs import field

from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import CallState, Stop, StopEnded
from kesoku_actors.store import TooEarly
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define

PATIENCE_S: Final = 2.0
"""How long a press waits for one before it."""


@define(eq=False)
class Interrupts:
    """What the presses so far have done."""

    gateway: Gateway
    session_id: str
    leave: trio.CancelScope
    """Cancelled to end the chat without waiting for the turn."""
    log: Logger
    stop: Stop | None = None
    forced: bool = False
    _in_order: trio.StrictFIFOLock = field(factory=trio.StrictFIFOLock, init=False)
    _began: float = field(default=0.0, init=False)
    """When the press that is acted on began, in trio's time."""

    async def obey(self, presses: AsyncIterable[object]) -> None:
        """Act on each press until the chat ends."""
        async with trio.open_nursery() as nursery:
            async for _ in presses:
                nursery.start_soon(self._pressed)

    async def _pressed(self) -> None:
        """Wait for the presses before, not for long, then do what this one means."""
        with trio.move_on_at(self._began + PATIENCE_S if self._in_order.locked() else math.inf) as limit:
            await self._in_order.acquire()
        if limit.cancelled_caught:
            self.leave.cancel()
            return
        try:
            self._began = trio.current_time()
            await self._act()
        finally:
            self._in_order.release()

    async def _act(self) -> None:
        if self.stop is None:
            stored = await until_answered(partial(self.gateway.stop, self.session_id), self.log, "stop")
            if isinstance(stored, Stop):
                self.stop = stored
            else:
                self.leave.cancel()
        elif not self.forced and await self._tools_run(self.stop):
            self.forced = True
            force = partial(self.gateway.force, self.session_id)
            reply = await until_answered(force, self.log, "force")
            if isinstance(reply, TooEarly):
                await trio.sleep(reply.wait_s)
                await until_answered(force, self.log, "force")
        else:
            self.leave.cancel()

    async def receipt(self) -> StopEnded | None:
        """Wait for the receipt of the stop asked for here, if one was."""
        return None if self.stop is None else await self.gateway.stop_receipt(self.stop)

    async def _tools_run(self, stop: Stop) -> bool:
        if stop.root_id is None:
            return False
        return any(call.state is CallState.STARTED for call in await self.gateway.reader.calls(stop.root_id))
