"""Another model may answer in a channel from the next turn on, beside the one the program began with."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from kesoku_actors.actors import Dynamic, DynamicSpec
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
