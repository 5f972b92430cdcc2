"""The platform that people and the simulated daemon meet on, and the adapter in between.

The platform outlives the program: it keeps what people sent, in order, how far of it was taken, and what was shown. The
adapter is two actors for each room, at the place in the tree where adapters are: one takes in, one delivers, with the
product's own planner and courier. Its transport is the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, assert_never

import trio
from attrs import define, field

from kesoku_actors.actors import Cell, ChildSpec
from kesoku_actors.adapters import SendFailed, deliver_channel
from kesoku_actors.gateway import Gateway
from kesoku_actors.harness.world import World
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Channel, Inbound, Message, Status
from kesoku_actors.store import Posted
from kesoku_actors.store.again import until_answered, until_known
from kesoku_actors.store.port import Chunk
from tests.properties.daemon.script import Action, Clear, Force, Mode, Say, Stop


@define(eq=False)
class Room:
    """One channel, as the platform has it."""

    name: str
    sent: list[Action] = field(factory=list)
    """What people did, in order."""
    taken: int = 0
    """How much of that the program has taken."""
    session_id: str | None = None
    """The session of the last message taken."""
    bell: trio.Event = field(factory=trio.Event)

    @property
    def channel(self) -> Channel:
        """Its name within the program."""
        return Channel(chatbot_id="bot", channel_id=self.name)

    @property
    def is_taken(self) -> bool:
        """Whether nothing waits."""
        return self.taken == len(self.sent)

    def add(self, action: Action) -> None:
        """Take note of what somebody did."""
        self.sent.append(action)
        self.bell.set()


@define(eq=False, kw_only=True)
class Platform:
    """All rooms."""

    world: World
    rooms: Sequence[Room]
    fails: float = 0.0
    """How often a send fails."""

    async def people(self, room: Room, actions: Sequence[Action]) -> None:
        """Do what people do in a room."""
        for action in actions:
            await trio.sleep(action.pause_s)
            self.world.note("did", room=room.name, number=len(room.sent), action=action)
            room.add(action)


@define(eq=False, kw_only=True)
class Adapter:
    """One life's way to the platform."""

    platform: Platform
    gateway: Gateway
    log: Logger
    jitter: Callable[[], float]
    is_alive: Callable[[], bool]
    """Whether this life goes on: a dead one reaches nobody."""

    def children(self) -> tuple[ChildSpec, ...]:
        """Return its actors, to stand under `edges`. They are cut off at the end."""
        return tuple(
            ChildSpec(id=f"{name} {room.name}", start=partial(start, room=room), shutdown_s=0.0)
            for room in self.platform.rooms
            for name, start in (("intake", self.take_in), ("courier", self.deliver))
        )

    async def take_in(self, cell: Cell[None], *, room: Room) -> None:
        """Take what people did, one after the other, from where the platform says (M8)."""
        cell.started()
        while True:
            room.bell = trio.Event()
            while not room.is_taken:
                await self._take(room, room.sent[room.taken])
                if not self.is_alive():
                    return
                room.taken += 1
            await room.bell.wait()

    async def deliver(self, cell: Cell[None], *, room: Room) -> None:
        """Deliver what leaves."""
        pending = frozenset({Status.PENDING})
        listening = self.gateway.listen(channel=room.channel, statuses=pending, hints=False, after=0, label="courier")
        async with aclosing(listening) as leaving:
            cell.started()
            async for _event in leaving:
                await deliver_channel(room.channel, self.gateway, partial(self._send, room), jitter=self.jitter)

    async def _take(self, room: Room, action: Action) -> None:
        gateway, session_id, note = self.gateway, room.session_id, self._note
        match action:
            case Say(words):
                inbound = Inbound(
                    chatbot_id=room.channel.chatbot_id,
                    channel_id=room.channel.channel_id,
                    content=words,
                    sender="Ada",
                    external_id=f"{room.name} {room.taken}",
                )
                reply = await until_answered(partial(gateway.post, inbound), self.log, "post")
                if isinstance(reply, Posted):
                    room.session_id = reply.message.session_id
                    note("accepted", id=reply.message.id, external=inbound.external_id, seq=reply.message.seq)
                else:
                    note("refused", external=inbound.external_id)
            case Mode(mode):
                await until_known(partial(gateway.set_mode, room.channel, mode), self.log, "set the mode")
                note("mode", room=room.name, mode=mode)
            case Stop() if session_id is not None:
                stop = await until_known(partial(gateway.stop, session_id), self.log, "stop")
                note("stopped", session=session_id, reply=type(stop).__name__)
            case Force() if session_id is not None:
                forced = await until_known(partial(gateway.force, session_id), self.log, "force")
                note("forced", session=session_id, reply=type(forced).__name__)
            case Clear() if session_id is not None:
                await until_known(partial(gateway.clear, session_id), self.log, "clear")
                note("cleared", session=session_id)
            case Stop() | Force() | Clear():
                await trio.lowlevel.checkpoint()
            case _:
                assert_never(action)

    async def _send(self, room: Room, message: Message, chunk: Chunk) -> str | None:
        """Show a part of a message; the power may go before and after."""
        await trio.lowlevel.checkpoint()
        if not self.is_alive():
            raise SendFailed("the program is dead")
        if self.platform.fails and self.platform.world.fault("send failed", self.platform.fails):
            raise SendFailed("the platform is away")
        self._note("shown", room=room.name, message=message.id, seq=message.seq, index=chunk.index, nonce=chunk.nonce)
        await trio.lowlevel.checkpoint()
        return None

    def _note(self, kind: str, **fields: Any) -> None:
        if self.is_alive():
            self.platform.world.note(kind, **fields)
