"""Our side of the measurements: the whole supervision tree over real files, with a scripted model.

Nothing is left out that a daemon has but its edges and the network; files are made in the repository's own folder, so
on its file system, and taken away again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define

from kesoku_actors.actors import run_system
from kesoku_actors.app.house import House, Plan, build_house
from kesoku_actors.app.workspaces import SessionFolders
from kesoku_actors.cli.collector import collect_rarely
from kesoku_actors.clock import real_world
from kesoku_actors.gateway import Gateway, Listening
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.port import Limits, Provider
from kesoku_actors.llm.scripted import Call, Rule, Say, Scenario, ScriptedModel
from kesoku_actors.log import Logger
from kesoku_actors.prompt import PromptLayers, built_in_layers
from kesoku_actors.protocol import ENDED, Changed, Channel, Event, Inbound, Message, Status
from kesoku_actors.session import Brain, TurnLimits
from kesoku_actors.store import DeadCall, Durability, Posted, StoreOptions
from kesoku_actors.store.access import Threaded
from kesoku_actors.tools import ToolRegistry

TEXT = "What is the weather like in the town where the river meets the sea? " * 6
"""About 400 characters, like what people and models write."""
ANSWER = Say(text=("It is mild and clear, with a light wind from the west. " * 7).replace(" ", "_"))
"""As long, in one piece: the model is instant, and what its stream costs is not the floor's to say."""


def _answers(calls: int) -> tuple[Rule, ...]:
    """The model asks for `calls` calls when a person says their number, and answers when it has the results."""
    asks = tuple(Call(name="look", arguments={"number": number}) for number in range(calls))
    return (Rule(when_said=f"{calls} calls", moves=asks),)


SCENARIO = Scenario(inferences=((ANSWER,),), rules=(*_answers(1), *_answers(3)), repeat=True)


class Forgetful(list[Any]):
    """Keeps nothing: a scripted model remembers what it was asked, which a long run would measure as ours."""

    def append(self, _item: Any) -> None:
        return


async def look(number: int) -> str:
    """Look at something; takes no time."""
    return f"nothing special about {number}"


async def no_survivors(_calls: Sequence[DeadCall]) -> None:
    await trio.lowlevel.checkpoint()


def channel(name: object) -> Channel:
    """A channel for one session."""
    return Channel(chatbot_id="bench", channel_id=str(name))


@define(eq=False)
class Daemon:
    """A running tree and how it is driven."""

    house: House

    @property
    def gateway(self) -> Gateway:
        """The door."""
        return self.house.gateway

    async def post(self, where: Channel, text: str = TEXT) -> Message:
        """Post as a person; return the stored message."""
        inbound = Inbound(chatbot_id=where.chatbot_id, channel_id=where.channel_id, content=text, sender="Ada")
        reply = await self.gateway.post(inbound)
        assert isinstance(reply, Posted)
        return reply.message

    async def turns(self, where: Sequence[Channel], text: str = TEXT) -> None:
        """One turn after the other: post, wait until the message is processed, in each of these channels."""
        async with aclosing(self._listen(ENDED)) as ended:
            for one in where:
                await self.post(one, text)
                _check(await anext(ended))

    async def turns_at_once(self, where: Sequence[Channel], text: str = TEXT) -> None:
        """Post to each of these channels at once and wait until all are processed."""
        async with aclosing(self._listen(ENDED)) as ended, trio.open_nursery() as nursery:
            for one in where:
                nursery.start_soon(self.post, one, text)
            for _ in where:
                _check(await anext(ended))

    def waiting(self) -> Listening:
        """Listen to messages that wait, from now on."""
        return self._listen(frozenset({Status.PENDING_AGENT}))

    def _listen(self, statuses: frozenset[Status]) -> Listening:
        return self.gateway.listen(statuses=statuses, hints=False, capacity=20_000)


def _check(event: Event) -> None:
    """Raise when a turn did not end well."""
    assert isinstance(event, Changed)
    if event.message.status is not Status.PROCESSED:
        raise RuntimeError(f"a turn ended as {event.message.status}: {event.message.metadata}")


def plan(path: Path, durability: Durability, model: Provider, **changes: Any) -> Plan:
    """Return the plan of a daemon whose files are in `path`."""
    brain = Brain(provider=model, gate=ProviderGate.of(model))
    registry = ToolRegistry()
    registry.add(look, owner="bench")
    fields: dict[str, Any] = {
        "store": StoreOptions(path=path / "kesoku.db", durability=durability),
        "sessions_dir": path / "sessions",
        "folders": SessionFolders(sessions_dir=path / "sessions"),
        "world": real_world(),
        "log": Logger(sink=_nowhere, wall=trio.current_time),
        "brains": (brain,),
        "brain_for": lambda _channel: brain,
        "registry": registry,
        "layers": PromptLayers(built_in_layers()),
        "limits": TurnLimits(),
        "end_survivors": no_survivors,
    }
    return Plan(**{**fields, **changes})


def _nowhere(_entry: object) -> None:
    return None


def threaded(path: Path, durability: Durability) -> StoreOptions:
    """Return the options of a store that works in threads, whatever its durability."""
    file = path / "kesoku.db"
    return StoreOptions(path=file, durability=durability, access=Threaded(path=file))


@asynccontextmanager
async def running(
    path: Path, durability: Durability, *, model: Provider | None = None, **changes: Any
) -> AsyncIterator[Daemon]:
    """Run the daemon whose files are in `path`; a second time on the same files is a restart."""
    collect_rarely()
    house = build_house(plan(path, durability, model or instant(), **changes))
    async with run_system(house.spec):
        yield Daemon(house=house)


def instant() -> Provider:
    """Return a model that answers at once."""
    model = ScriptedModel(SCENARIO, limits=Limits(concurrency=100_000))
    model.requests, model.cancelled = Forgetful(), Forgetful()
    return model


def in_both(measure: Callable[[Durability], list[Any]]) -> list[Any]:
    """Measure in both durabilities, NORMAL first."""
    return [row for durability in (Durability.NORMAL, Durability.FULL) for row in measure(durability)]
