"""Stopping from a keyboard (I7): what was asked to stop, and what the next Ctrl-C does about it.

The first press stops. Again while tools run forces them; one within the first second is kept and takes effect then.
Again after that leaves. When nothing is left to stop, the press is the conversation's.
"""

from __future__ import annotations

from enum import Enum

import trio
from attrs import field

from kesoku_actors.gateway import Gateway
from kesoku_actors.protocol import CallState, Stop
from kesoku_actors.store import NothingToStop, TooEarly
from kesoku_actors.values import define


class Press(Enum):
    """What a press did."""

    DONE = "done"
    NOTHING = "nothing"
    """There was nothing to stop."""
    LEAVE = "leave"


@define(eq=False)
class Stopping:
    """The last stop asked for at this keyboard."""

    gateway: Gateway
    _stop: Stop | None = field(default=None, init=False)
    _is_forced: bool = field(default=False, init=False)

    def asked(self, reply: Stop | NothingToStop) -> Stop | NothingToStop:
        """Keep a stop that was stored, however it was asked for; return it."""
        if isinstance(reply, Stop):
            self._stop, self._is_forced = reply, False
        return reply

    async def stop(self, session_id: str | None) -> Stop | NothingToStop:
        """Stop what runs and what waits in the session."""
        return NothingToStop() if session_id is None else self.asked(await self.gateway.stop(session_id))

    async def force(self) -> Stop | NothingToStop:
        """End the running tools of what was stopped, as soon as that is accepted."""
        if self._stop is None:
            return NothingToStop()
        reply = await self.gateway.force(self._stop.session_id)
        while isinstance(reply, TooEarly):
            await trio.sleep(reply.wait_s)
            reply = await self.gateway.force(self._stop.session_id)
        return reply

    async def press(self, session_id: str | None) -> Press:
        """Do what the next press means now."""
        if self._stop is not None and await self._goes_on(self._stop):
            if not await self._tools_run(self._stop):
                return Press.NOTHING
            if self._is_forced:
                return Press.LEAVE
            self._is_forced = True
            await self.force()
            return Press.DONE
        self._stop = None
        return Press.DONE if isinstance(await self.stop(session_id), Stop) else Press.NOTHING

    async def _goes_on(self, stop: Stop) -> bool:
        known = await self.gateway.reader.stop(stop.seq)
        return known is not None and not known.done

    async def _tools_run(self, stop: Stop) -> bool:
        if stop.root_id is None:
            return False
        return any(call.state is CallState.STARTED for call in await self.gateway.reader.calls(stop.root_id))
