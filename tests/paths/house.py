"""A whole daemon for tests: the real tree over a real SQLite file, with a scripted model and an autojump clock.

The store is inline (no threads), tools are functions on trio, so that every path can be played in no time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, evolve, field

from kesoku_actors.actors import run_system
from kesoku_actors.app.house import House, Plan, build_house
from kesoku_actors.app.workspaces import SessionFolders
from kesoku_actors.clock import Clock, seeded_world
from kesoku_actors.gateway import Gateway
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.scripted import Inference, Scenario, ScriptedModel
from kesoku_actors.log import Logger
from kesoku_actors.prompt import PromptLayers, built_in_layers
from kesoku_actors.protocol import Changed, Channel, Event, Inbound, Message
from kesoku_actors.session import Brain, Recorded, TurnLimits, first_difference
from kesoku_actors.session.vocabulary import SetTimer
from kesoku_actors.store import DeadCall, Durability, Posted, StoreOptions
from kesoku_actors.tools import ToolRegistry

ROOM = Channel(chatbot_id="test", channel_id="room")


async def here_and_now(call: Callable[[], None]) -> None:
    await trio.lowlevel.checkpoint()
    call()


async def no_survivors(_calls: Sequence[DeadCall]) -> None:
    await trio.lowlevel.checkpoint()


def trio_clock() -> Clock:
    """Wall and monotonic readings of the (mock) clock of the run."""
    return Clock(wall=lambda: 1_700_000_000 + trio.current_time() % 1_000_000, monotonic=trio.current_time)


@define
class Home:
    """A running daemon and what tests ask of it."""

    house: House
    model: ScriptedModel
    record: list[Recorded] = field(factory=list)
    """Every event that workers took, and its effects."""
    channel: Channel = ROOM
    at_event: Callable[[object], None] = lambda _event: None
    """Called in a worker's own task with each event it takes: raising there is a crash of the worker."""
    recorded: trio.Event = field(factory=trio.Event)
    """Set by the next event that a worker takes."""

    @property
    def gateway(self) -> Gateway:
        return self.house.gateway

    def heard(self, recorded: Recorded) -> None:
        self.record.append(recorded)
        self.at_event(recorded.event)
        self.recorded.set()

    async def say(self, content: str, **changes: Any) -> Message:
        """Post as a person; return the stored message."""
        inbound = Inbound(
            chatbot_id=self.channel.chatbot_id, channel_id=self.channel.channel_id, content=content, sender="Ada"
        )
        reply = await self.gateway.post(evolve(inbound, **changes))
        assert isinstance(reply, Posted)
        return reply.message

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        """Wait for a row, in the past or the future, that is as wanted."""
        async with aclosing(self.gateway.listen(after=0, hints=False)) as events:
            async for event in events:
                if isinstance(event, Changed) and wanted(event.message):
                    return event.message
        raise AssertionError("listening does not end")

    async def ended(self, message: Message) -> Message:
        """Wait until a message's work is over."""
        return await self.until(lambda row: row.id == message.id and row.has_ended)

    async def hint(self, wanted: Callable[[Event], bool]) -> Event:
        """Wait for a hint from now on."""
        async with aclosing(self.gateway.listen()) as events:
            async for event in events:
                if wanted(event):
                    return event
        raise AssertionError("listening does not end")

    async def rows(self, session_id: str) -> tuple[Message, ...]:
        return (await self.gateway.history(session_id)).messages

    async def until_recorded(self, condition: Callable[[], bool]) -> None:
        """Wait until what was recorded of the machine is as wanted."""
        while not condition():
            self.recorded = trio.Event()
            await self.recorded.wait()

    def timers(self) -> list[float]:
        """The backoffs so far, seconds."""
        effects = [effect for recorded in self.record for effect in recorded.effects]
        return [effect.delay_s for effect in effects if isinstance(effect, SetTimer)]

    def prompts(self) -> list[list[str]]:
        """What each inference so far was asked, as texts."""
        return [[row.content for row in request.history] for request in self.model.requests]


@asynccontextmanager
async def at_home(
    folder: Path,
    inferences: Sequence[Inference] = (),
    *,
    tools: Sequence[Callable[..., Any]] = (),
    scenario: Scenario | None = None,
    seed: int = 1,
    log: Logger | None = None,
    at_event: Callable[[object], None] = lambda _event: None,
    **changes: Any,
) -> AsyncIterator[Home]:
    """Run a daemon on the store in `folder`; a second run on the same folder is a restart."""
    model = ScriptedModel(scenario or Scenario(inferences=tuple(inferences)))
    brain = Brain(provider=model, gate=ProviderGate.of(model))
    registry = ToolRegistry()
    for tool in tools:
        registry.add(tool, owner="test")
    plan = Plan(
        store=StoreOptions(path=folder / "kesoku.db", durability=Durability.NORMAL),
        sessions_dir=folder / "sessions",
        folders=SessionFolders(sessions_dir=folder / "sessions", run=here_and_now),
        world=seeded_world(seed, trio_clock()),
        log=log or Logger(sink=lambda _entry: None, wall=trio.current_time),
        brains=(brain,),
        brain_for=lambda _channel: brain,
        registry=registry,
        layers=PromptLayers(built_in_layers()),
        limits=TurnLimits(),
        end_survivors=no_survivors,
        record=lambda recorded: home.heard(recorded),
    )
    plan = evolve(plan, **changes)
    home = Home(house=build_house(plan), model=model, at_event=at_event)
    async with run_system(home.house.spec):
        yield home
    difference = first_difference(home.record, plan.limits)
    assert difference is None, f"live check: {difference}"


def texts(rows: Sequence[Message]) -> list[str]:
    return [row.content for row in rows]


def statuses(rows: Sequence[Message]) -> list[tuple[str, str]]:
    return [(row.role.value, row.status.value) for row in rows]
