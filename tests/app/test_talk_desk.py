"""What a person is told when another model is chosen in a talk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from trio.testing import MockClock

from kesoku_actors.actors import Dynamic, DynamicSpec
from kesoku_actors.app.brains import Brains
from kesoku_actors.app.talk import TalkDesk
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.registry import ProviderFactory, ProviderRegistry
from kesoku_actors.llm.scripted import Scenario, ScriptedModel
from kesoku_actors.session import Brain, Remit
from tests.paths.house import ROOM, at_home

WARNING = "shell: the allowlist is empty, so every command is refused"


async def nothing_to_trace(_session_id: str) -> Path:
    raise AssertionError("nobody asks for a trace here")


@pytest.mark.parametrize("first_has_tools", [False, True])
async def test_the_warnings_about_tools_come_once_with_the_first_model_that_has_tools(
    tmp_path: Path, autojump_clock: MockClock, first_has_tools: bool
) -> None:
    registry = ProviderRegistry()
    for name, has_tools in (("plain", False), ("able", True), ("abler", True)):
        make = partial(ScriptedModel, Scenario(), name=name, supports_tools=has_tools)
        registry.add(ProviderFactory(name=name, missing=lambda: None, make=make, how=""))
    first = ScriptedModel(Scenario(), name="first", supports_tools=first_has_tools)
    default = Brain(provider=first, gate=ProviderGate.of(first))
    brains = Brains(registry=registry, default=default, models=Dynamic("models"))
    shown: list[str] = []
    children = (DynamicSpec(id="models", dynamic=brains.models),)
    async with at_home(tmp_path, brains=(default,), brain_for=brains.of, provider_children=children) as home:
        desk = TalkDesk(
            brains=brains,
            compactions=home.house.compactions,
            remit=Remit((ROOM,)),
            tool_warnings=(WARNING,),
            warn=shown.extend,
            end_job=home.house.tools.stop_job,
            write_trace=nothing_to_trace,
        )
        await desk.choose_model(ROOM, "plain")
        assert shown == []
        for name in ("able", "abler", "plain", "able"):
            assert (await desk.choose_model(ROOM, name)).provider == name
            assert shown == ([] if first_has_tools else [f"warning: {WARNING}"])
