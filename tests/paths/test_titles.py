"""Titles by the model: after the first answer, in nobody's way, and never worth a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.port import Purpose
from kesoku_actors.llm.scripted import Call, Fail, Inference, Say, Scenario, ScriptedModel, Stall
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import Status
from kesoku_actors.session import Brain
from tests.paths.house import Home, at_home

TITLE: Inference = (Say(text='Title: "Herons in May."\nI hope you like it.'),)


def telling(title: Inference, *answers: Inference) -> Scenario:
    return Scenario(inferences=answers or ((Say(text="They nest."),),) * 9, asides={Purpose.TITLE: (title,)})


def titling(folder: Path, scenario: Scenario, **changes: Any) -> Any:
    return at_home(folder, scenario=scenario, may_title=lambda _brain: True, **changes)


async def title_of(home: Home, session_id: str) -> str:
    session = await home.gateway.session(session_id)
    assert session is not None
    return session.title


async def until_asked(home: Home, times: int = 1) -> None:
    """Wait until the model was asked for titles that often."""
    while sum(request.purpose is Purpose.TITLE for request in home.model.requests) < times:  # noqa: ASYNC110
        await trio.sleep(0.01)


async def test_the_first_words_give_way_to_a_title_after_the_first_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with titling(tmp_path, telling(TITLE)) as home:
        asked = await home.say("When do the **herons** nest?")
        assert await title_of(home, asked.session_id) == "When do the herons nest?"
        await home.ended(asked)
        await until_asked(home)
        await trio.sleep(1)
        assert await title_of(home, asked.session_id) == "Herons in May"
        again = await home.say("And where?")
        await home.ended(again)
        await trio.sleep(60)
        assert sum(request.purpose is Purpose.TITLE for request in home.model.requests) == 1
        [request] = [request for request in home.model.requests if request.purpose is Purpose.TITLE]
        assert [row.content for row in request.history] == ["When do the **herons** nest?", "They nest."]
        assert request.tools == ()


async def test_when_a_model_is_lost_the_next_one_finds_the_title(tmp_path: Path, autojump_clock: MockClock) -> None:
    def brain(name: str, title: Inference) -> Brain:
        model = ScriptedModel(telling(title), name=name)
        return Brain(provider=model, gate=ProviderGate.of(model))

    lost, other = brain("lost", (Fail(kind="quota", message="no credit"),)), brain("other", TITLE)
    line = {"brains": (lost, other), "brain_for": lambda _channel: lost, "failover": (lost, other)}
    async with at_home(tmp_path, may_title=lambda _brain: True, **line) as home:
        asked = await home.say("When do herons nest?")
        await home.ended(asked)
        await trio.sleep(60)
        assert await title_of(home, asked.session_id) == "Herons in May"


async def test_a_message_ends_the_search_for_a_title_at_once_and_the_next_answer_brings_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    slow = (Say(text="A slow title.", word_delay_s=5.0),)
    scenario = Scenario(inferences=((Say(text="They nest."),),) * 9, asides={Purpose.TITLE: (slow, TITLE)})
    async with titling(tmp_path, scenario) as home:
        asked = await home.say("When do the herons nest?")
        await home.ended(asked)
        await until_asked(home)
        begun = trio.current_time()
        again = await home.say("And where?")
        await home.ended(again)
        assert trio.current_time() - begun < 1.0
        assert len(home.model.cancelled) == 1
        await until_asked(home, 2)
        await trio.sleep(1)
        assert await title_of(home, asked.session_id) == "Herons in May"


@pytest.mark.parametrize(
    "aside",
    [
        (Fail(kind="overloaded"),),
        (Stall(),),
        (Say(text="  \n"),),
        (Call(name="run_shell_command", arguments={"command": "rm -r ."}),),
    ],
    ids=["fails", "stalls", "says nothing", "calls a tool"],
)
async def test_a_model_that_finds_none_leaves_the_first_words_and_says_so_in_the_log_alone(
    tmp_path: Path, autojump_clock: MockClock, aside: Inference
) -> None:
    told: list[Entry] = []
    log = Logger(sink=told.append, wall=trio.current_time)
    async with titling(tmp_path, telling(aside), log=log) as home:
        asked = await home.say("When do the herons nest?")
        await home.ended(asked)
        await until_asked(home)
        await trio.sleep(100)
        assert await title_of(home, asked.session_id) == "When do the herons nest?"
        rows = await home.rows(asked.session_id)
        assert [row.content for row in rows] == ["When do the herons nest?", "They nest."]
        assert [row.status for row in rows] == [Status.PROCESSED, Status.PENDING]
    assert {entry.event for entry in told} <= {"no title was found", "inference"}


async def test_an_end_does_not_wait_for_a_title(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with titling(tmp_path, telling((Stall(),))) as home:
        asked = await home.say("When do the herons nest?")
        await home.ended(asked)
        await until_asked(home)
        begun = trio.current_time()
    assert trio.current_time() - begun < 1.0


async def test_without_a_model_that_may_the_first_words_stay(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, scenario=telling(TITLE)) as home:
        await home.ended(await home.say("When do the herons nest?"))
        await trio.sleep(60)
        assert all(request.purpose is Purpose.ANSWER for request in home.model.requests)
