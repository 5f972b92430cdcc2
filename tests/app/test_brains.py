"""Another model may answer in a channel from the next turn on, beside the one the program began with."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.actors import Cell, ChildSpec, Dynamic, DynamicSpec
from kesoku_actors.app.brains import Brains
from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.registry import ProviderFactory, ProviderRegistry
from kesoku_actors.llm.scripted import Rule, Say, Scenario, ScriptedModel
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Brain
from tests.paths.house import ROOM, at_home, texts

OTHER = Channel(chatbot_id="test", channel_id="other")


def model(name: str) -> ScriptedModel:
    scenario = Scenario(rules=(Rule(when_said="", moves=(Say(text=f"I am {name}."),)),))
    return ScriptedModel(scenario, name=name)


async def test_a_model_chosen_by_several_at_once_or_given_up_midway_can_be_chosen(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def client(cell: Cell[None]) -> None:
        begun.append("client")
        await trio.sleep(2)
        cell.started()
        await cell.stopping.wait()

    monkeypatch.setattr("kesoku_actors.app.brains.provider_children", lambda _: (ChildSpec(id="c", start=client),))
    registry = ProviderRegistry()
    registry.add(ProviderFactory(name="two", missing=lambda: None, make=lambda: model("two"), how=""))
    first = model("one")
    default = Brain(provider=first, gate=ProviderGate.of(first))
    brains = Brains(registry=registry, default=default, models=Dynamic("models"))
    children = (DynamicSpec(id="models", dynamic=brains.models),)
    async with at_home(tmp_path, brains=(default,), brain_for=brains.of, provider_children=children) as home:
        for given_up_after_s in (1, 2.0):
            with trio.move_on_after(given_up_after_s):
                await brains.choose(ROOM, "two")
        async with trio.open_nursery() as nursery:
            for channel in (ROOM, OTHER):
                nursery.start_soon(brains.choose, channel, "two")
        assert brains.of(ROOM) is brains.of(OTHER)
        assert begun == ["client"] * 3, "one for each that was given up, and one that stays"
        await home.ended(asked := await home.say("who?"))
        assert texts(await home.rows(asked.session_id))[-1] == "I am two."


async def test_the_chosen_model_answers_from_the_next_turn_on_and_only_there(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    made: list[str] = []

    def make(name: str) -> ScriptedModel:
        made.append(name)
        return model(name)

    registry = ProviderRegistry()
    for name in ("one", "two"):
        registry.add(ProviderFactory(name=name, missing=lambda: None, make=lambda name=name: make(name), how=""))
    registry.add(ProviderFactory(name="three", missing=lambda: "no key is set", make=lambda: model("three"), how="KEY"))
    first = model("one")
    default = Brain(provider=first, gate=ProviderGate.of(first))
    brains = Brains(registry=registry, default=default, models=Dynamic("models"))
    children = (DynamicSpec(id="models", dynamic=brains.models),)
    async with at_home(tmp_path, brains=(default,), brain_for=brains.of, provider_children=children) as home:
        before = await home.say("who?")
        await home.ended(before)
        assert (await brains.choose(ROOM, "two")).name == "two"
        await home.ended(await home.say("and now?"))
        assert (await brains.choose(ROOM, "one")) is first
        await home.ended(await home.say("and again?"))
        await brains.choose(ROOM, "two")
        assert made == ["two"], "a model is made once"
        assert brains.of(OTHER) is default
        said = texts(await home.rows(before.session_id))
        assert said == ["who?", "I am one.", "and now?", "I am two.", "and again?", "I am one."]
        for name, words in (("four", "there is no such model"), ("three", "no key is set")):
            with pytest.raises(ConfigError, match=words):
                await brains.choose(ROOM, name)
        assert brains.of(ROOM).provider.name == "two"
