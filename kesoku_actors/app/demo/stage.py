"""One life of the daemon in a demonstration: everything it does is shown by the narrator and noted for the checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

import trio
from attrs import field

from kesoku_actors.actors import run_system
from kesoku_actors.adapters.courier import deliver_channel
from kesoku_actors.app.demo.narrator import Narrator
from kesoku_actors.app.history.finding import reading
from kesoku_actors.app.house import House, build_house
from kesoku_actors.app.plan import plan_run
from kesoku_actors.app.prelude import Prelude
from kesoku_actors.errors import Fault
from kesoku_actors.gateway import Gateway
from kesoku_actors.protocol import (
    Changed,
    Channel,
    Delta,
    DeltaKind,
    Event,
    Inbound,
    Message,
    Role,
    Status,
    StopEnded,
    ToolProgress,
    Type,
)
from kesoku_actors.store import Chunk, Posted
from kesoku_actors.values import define

_STREAMED: Final = {Type.TEXT: DeltaKind.TEXT, Type.THOUGHT: DeltaKind.THOUGHT}
PATIENCE_S: Final = 60.0
"""How long something that must happen may take."""


class DemoFailed(Fault):
    """Something did not happen as the demonstration promises."""


@define(eq=False)
class Stage:
    """What was seen so far, and what a scene can do."""

    house: House
    channel: Channel
    narrator: Narrator
    jitter: Callable[[], float]
    told: int
    """The rev up to which everything was told in an earlier life."""
    rows: dict[str, Message] = field(factory=dict, init=False)
    started: set[str] = field(factory=set, init=False)
    """Calls that began to run."""
    receipts: list[StopEnded] = field(factory=list, init=False)
    _streamed: dict[DeltaKind, str] = field(factory=lambda: dict.fromkeys(DeltaKind, ""), init=False)
    """What the model thought and said since it was committed last."""
    _seen: trio.Event = field(factory=trio.Event, init=False)

    @property
    def said(self) -> str:
        """What the model has said since a text of it was committed last."""
        return self._streamed[DeltaKind.TEXT]

    @property
    def gateway(self) -> Gateway:
        """The door of the daemon."""
        return self.house.gateway

    async def say(self, text: str) -> Message:
        """Say something as a person."""
        self.narrator.heard("you", text)
        inbound = Inbound(chatbot_id=self.channel.chatbot_id, channel_id=self.channel.channel_id, content=text)
        posted = await self.gateway.post(inbound)
        if not isinstance(posted, Posted):
            raise DemoFailed(f"the message was not taken: {posted}")
        self.rows[posted.message.id] = posted.message
        return posted.message

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until something that was seen makes the condition true. Raises `DemoFailed` when it takes too long."""
        with trio.move_on_after(PATIENCE_S):
            while not condition():
                self._seen = trio.Event()
                await self._seen.wait()
            return
        raise DemoFailed(f"waited {PATIENCE_S:.0f} s in vain: {what}")

    async def ended(self, message_id: str) -> Message:
        """Wait until the work on a message is over."""
        await self.until("the end of a turn", lambda: message_id in self.rows and self.rows[message_id].has_ended)
        await self.until("the delivery of its answer", lambda: not self._leaving(message_id))
        return self.rows[message_id]

    def of_turn(self, root_id: str, kind: Type) -> list[Message]:
        """Return the rows of a turn of this kind that the model or its tools made."""
        rows = [row for row in self.rows.values() if row.root_id == root_id and row.type is kind]
        return [row for row in rows if row.role in (Role.ASSISTANT, Role.TOOL)]

    async def follow(self) -> None:
        """Note what is stored and what happens, show what is new, and deliver what leaves."""
        listening = self.gateway.listen(channel=self.channel, after=0, label="demo")
        async with aclosing(listening) as events:
            async for event in events:
                if isinstance(event, Changed) and event.message.status is Status.PENDING:
                    await deliver_channel(self.channel, self.gateway, self._send, jitter=self.jitter)
                self._take(event)
                self._seen.set()

    def _leaving(self, root_id: str) -> list[Message]:
        return [row for row in self.rows.values() if row.root_id == root_id and row.status is Status.PENDING]

    async def _send(self, message: Message, _chunk: Chunk) -> str | None:
        """An answer was shown while it was streamed; what was not is shown now."""
        await trio.lowlevel.checkpoint()
        self._show(message)
        return None

    def _take(self, event: Event) -> None:
        match event:
            case Delta(kind=kind, text=text):
                self._streamed[kind] += text
                self.narrator.stream(kind, text)
            case ToolProgress(call_id=call_id):
                self.started.add(call_id)
            case StopEnded():
                self.receipts.append(event)
            case Changed(message=row):
                is_new, self.rows[row.id] = row.id not in self.rows and row.rev > self.told, row
                if is_new and row.role in (Role.ASSISTANT, Role.TOOL) and row.status is Status.RESPONDED:
                    self._show(row)
            case _:
                pass

    def _show(self, row: Message) -> None:
        kind = _STREAMED.get(row.type)
        if kind is not None and row.content.strip() == self._streamed[kind].strip():
            self.narrator.end_line()
        else:
            self.narrator.row(row)
        if kind is not None:
            self._streamed[kind] = ""


@asynccontextmanager
async def life(prelude: Prelude, channel: Channel, narrator: Narrator) -> AsyncIterator[Stage]:
    """Run the daemon for this channel; what an earlier life left is taken up."""
    plan = plan_run(
        prelude.settings,
        prelude.provider,
        world=prelude.world,
        log=prelude.log,
        channels=(channel,),
        edges=lambda _gateway: (),
        probe=lambda _point: None,
        shelter=prelude.shelter,
    )
    async with reading(prelude.settings) as reader:
        told = await reader.head() if reader is not None else 0
    house = build_house(plan)
    async with run_system(house.spec, log=prelude.log_actors), trio.open_nursery() as nursery:
        stage = Stage(house=house, channel=channel, narrator=narrator, jitter=prelude.world.rng.random, told=told)
        nursery.start_soon(stage.follow)
        yield stage
        nursery.cancel_scope.cancel()
