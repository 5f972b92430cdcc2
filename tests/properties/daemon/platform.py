"""The platform that people and the simulated daemon meet on, and the adapter in between.

The platform outlives the program: it keeps what people sent, in order, how far of it was taken, and what was shown. The
adapter is two actors for each room, at the place in the tree where adapters are: one takes in, one delivers, with the
product's own planner and courier. Its transport is the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final, assert_never

import trio
from attrs import define, field

from kesoku_actors.actors import Cell, ChildSpec
from kesoku_actors.adapters import SendFailed, deliver_channel
from kesoku_actors.errors import NotFound
from kesoku_actors.gateway import Gateway
from kesoku_actors.harness.world import World
from kesoku_actors.log import Logger
from kesoku_actors.protocol import SYSTEM, Channel, Inbound, Message, Role, Status, expected
from kesoku_actors.store import Posted
from kesoku_actors.store.again import until_answered
from kesoku_actors.store.port import Chunk
from tests.properties.daemon.script import (
    Action,
    Clear,
    File,
    Force,
    Mode,
    Notice,
    Race,
    Repeat,
    Say,
    Skew,
    Stop,
)

FILE: Final = "attachments/a.png"
"""Where a file of a message is saved."""


def _words(text: str) -> tuple[str, ...]:
    """Cut an answer into many parts."""
    return tuple(text.split())


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
            if isinstance(action, Skew):
                self.world.clock.skew_s = action.ahead_s
            else:
                room.add(action)


@define(eq=False, kw_only=True)
class Adapter:
    """One life's way to the platform."""

    platform: Platform
    gateway: Gateway
    log: Logger
    jitter: Callable[[], float]
    nursery: trio.Nursery
    """For what comes later, within this life."""
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
                with suppress(NotFound):  # told to whoever asks for something of a session that was cleared
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
                await deliver_channel(
                    room.channel, self.gateway, partial(self._send, room), jitter=self.jitter, split=_words
                )

    async def _take(self, room: Room, action: Action) -> None:
        gateway, session_id, note = self.gateway, room.session_id, self._note
        match action:
            case Say() | Notice() | Race() | File():
                await self._post(room, room.taken, action)
            case Repeat(back):
                before = [number for number in range(room.taken) if isinstance(room.sent[number], Say | Notice)]
                if before:
                    number = before[-min(back, len(before))]
                    await self._post(room, number, room.sent[number])
            case Mode(mode):
                await until_answered(partial(gateway.set_mode, room.channel, mode), self.log, "set the mode")
                note("mode", room=room.name, mode=mode)
            case Stop() if session_id is not None:
                stop = await until_answered(partial(gateway.stop, session_id), self.log, "stop")
                note("stopped", session=session_id, reply=type(stop).__name__, stop=getattr(stop, "seq", None))
            case Force() if session_id is not None:
                note("forcing", session=session_id)
                forced = await until_answered(partial(gateway.force, session_id), self.log, "force")
                note("forced", session=session_id, reply=type(forced).__name__)
            case Clear() if session_id is not None:
                note("clearing", session=session_id)
                await until_answered(partial(gateway.clear, session_id), self.log, "clear")
                note("cleared", room=room.name, session=session_id)
            case Stop() | Force() | Clear() | Skew():
                await trio.lowlevel.checkpoint()
            case _:
                assert_never(action)

    async def _post(self, room: Room, number: int, action: Action) -> None:
        """Post what has this number in the room; safe to repeat by its external id (M5)."""
        match action:
            case Say(words):
                await self._post_one(room, f"{room.name} {number}", words)
            case Notice(wakes):
                await self._post_one(
                    room, f"{room.name} {number}", "notice", role=Role.SYSTEM, sender=SYSTEM, metadata={"wakes": wakes}
                )
            case File(words, saved_after_s):
                files = [expected("a.png", "image/png").as_data()]
                message = await self._post_one(room, f"{room.name} {number}", words, metadata={"attachments": files})
                if message is not None and saved_after_s is not None:
                    self.nursery.start_soon(self._settle, message, saved_after_s)
            case Race(words):
                async with trio.open_nursery() as nursery:
                    for place, one in enumerate(words):
                        nursery.start_soon(self._post_one, room, f"{room.name} {number}.{place}", one)
            case _:
                raise AssertionError(f"{action} is nothing to post")

    async def _post_one(self, room: Room, external_id: str, words: str, **fields: Any) -> Message | None:
        inbound = Inbound(
            chatbot_id=room.channel.chatbot_id,
            channel_id=room.channel.channel_id,
            content=words,
            external_id=external_id,
            **{"sender": "Ada", **fields},
        )
        reply = await until_answered(partial(self.gateway.post, inbound), self.log, "post")
        if not self.is_alive():
            return None
        if not isinstance(reply, Posted):
            self._note("refused", external=external_id, reply=type(reply).__name__)
            return None
        message = reply.message
        room.session_id = message.session_id
        self._note(
            "accepted",
            id=message.id,
            external=external_id,
            seq=message.seq,
            session=message.session_id,
            room=room.name,
            is_new=reply.is_new,
            is_person=message.is_person,
        )
        return message

    async def _settle(self, message: Message, after_s: float) -> None:
        """A file of a message is saved; what is said of it later changes nothing."""
        await trio.sleep(after_s)
        self._note("settling", id=message.id)
        for path in (FILE, "attachments/b.png"):
            settle = partial(self.gateway.settle_attachment, message.id, 0, path=path)
            now = await until_answered(settle, self.log, "settle")
        self._note("settled", id=message.id, is_there=now is not None)

    async def _send(self, room: Room, message: Message, chunk: Chunk) -> str | None:
        """Show a part of a message; the power may go before and after."""
        await trio.lowlevel.checkpoint()
        if not self.is_alive():
            raise SendFailed("the program is dead")
        self._note("sending", message=message.id, part=chunk.index, attempt=chunk.attempts)
        if self.platform.fails and self.platform.world.fault("send failed", self.platform.fails):
            raise SendFailed("the platform is away")
        order = (message.seq, chunk.index)
        self._note("shown", room=room.name, message=message.id, order=order, nonce=chunk.nonce)
        await trio.lowlevel.checkpoint()
        return None

    def _note(self, kind: str, **fields: Any) -> None:
        if self.is_alive():
            self.platform.world.note(kind, **fields)
