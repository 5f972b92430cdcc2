"""Another model in a talk: what a person is told, and that the choice is kept for the session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from attrs import define
from trio.testing import MockClock

from kesoku_actors.actors import Dynamic, DynamicSpec
from kesoku_actors.app.brains import Brains
from kesoku_actors.app.talk import TalkDesk
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.registry import ProviderFactory, ProviderRegistry
from kesoku_actors.llm.scripted import Scenario, ScriptedModel
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Brain, Remit
from tests.paths.house import ROOM, at_home

WARNING = "shell: the allowlist is empty, so every command is refused"
OTHER = Channel(chatbot_id="test", channel_id="other")


@define
class Talk:
    """A desk, and what it told the person."""

    desk: TalkDesk
    shown: list[str]


async def nothing_to_trace(_session_id: str) -> Path:
    raise AssertionError("nobody asks for a trace here")


@asynccontextmanager
async def talking(folder: Path, *, first_has_tools: bool = False, gone: str = "") -> AsyncIterator[Talk]:
    """Run a talk whose first model is `first`; the model `gone` cannot answer any more."""
    registry = ProviderRegistry()
    for name, has_tools in (("first", first_has_tools), ("plain", False), ("able", True), ("abler", True)):
        make = partial(ScriptedModel, Scenario(), name=name, supports_tools=has_tools)
        lack = "no key is set" if name == gone else None
        registry.add(ProviderFactory(name=name, missing=lambda lack=lack: lack, make=make, how="KEY"))
    first = ScriptedModel(Scenario(), name="first", supports_tools=first_has_tools)
    default = Brain(provider=first, gate=ProviderGate.of(first))
    brains = Brains(registry=registry, default=default, models=Dynamic("models"))
    shown: list[str] = []
    children = (DynamicSpec(id="models", dynamic=brains.models),)
    async with at_home(folder, brains=(default,), brain_for=brains.of, provider_children=children) as home:
        desk = TalkDesk(
            brains=brains,
            store=home.house.store,
            configured="first",
            compactions=home.house.compactions,
            remit=Remit((ROOM,)),
            tool_warnings=(WARNING,),
            shell="off",
            warn=shown.extend,
            end_job=home.house.tools.stop_job,
            write_trace=nothing_to_trace,
        )
        yield Talk(desk, shown)


@pytest.mark.parametrize("first_has_tools", [False, True])
async def test_the_warnings_about_tools_come_once_with_the_first_model_that_has_tools(
    tmp_path: Path, autojump_clock: MockClock, first_has_tools: bool
) -> None:
    async with talking(tmp_path, first_has_tools=first_has_tools) as talk:
        await talk.desk.choose_model(ROOM, "plain")
        assert talk.shown == []
        for name in ("able", "abler", "plain", "able"):
            assert (await talk.desk.choose_model(ROOM, name)).provider == name
            assert talk.shown == ([] if first_has_tools else [f"warning: {WARNING}"])


async def test_a_session_that_is_gone_on_with_has_the_model_that_was_chosen_in_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with talking(tmp_path) as talk:
        await talk.desk.choose_model(OTHER, "plain")
        await talk.desk.choose_model(ROOM, "able")
        await talk.desk.choose_model(ROOM, "auto")
    async with talking(tmp_path) as talk:
        for channel, name in ((OTHER, "plain"), (ROOM, "first")):
            await talk.desk.work_for(channel)
            assert talk.desk.model_of(channel).provider == name


async def test_a_chosen_model_that_cannot_answer_any_more_is_told_of_and_the_configured_one_answers(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with talking(tmp_path) as talk:
        await talk.desk.choose_model(OTHER, "plain")
    async with talking(tmp_path, gone="plain") as talk:
        await talk.desk.work_for(OTHER)
        assert talk.desk.model_of(OTHER).provider == "first"
        (told,) = talk.shown
        assert "the model chosen in this session cannot answer" in told
        assert "no key is set; set KEY" in told
