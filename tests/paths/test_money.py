"""A day's money is a bound for everything that runs: turns, whoever asks, and over restarts (B4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.clock import seeded_world
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.meter import Meter
from kesoku_actors.llm.prices import Price
from kesoku_actors.llm.scripted import Call, Inference, Say, Scenario, ScriptedModel, Spend
from kesoku_actors.protocol import Channel, Reason, Role, Status
from kesoku_actors.session import Brain, DayPurse
from tests.paths.house import ROOM, at_home, trio_clock

PRICE = Price(input=1.0, output=0.0)
"""A million tokens are a dollar."""


def paid(most: float, *inferences: Inference, repeat: bool = True) -> dict[str, Any]:
    """What a plan needs for a model whose inferences are paid from a purse."""
    model = ScriptedModel(Scenario(inferences=inferences, repeat=repeat))
    purse = DayPurse(most=most, world=seeded_world(1, trio_clock()))
    brain = Brain(provider=model, gate=ProviderGate.of(model, Meter(price=PRICE, purse=purse)))
    return {"brains": (brain,), "brain_for": lambda _channel: brain, "purse": purse}


def saying(tokens: int) -> Inference:
    return (Say(text="Six."), Spend(input=tokens, output=0))


def day() -> int:
    return int(trio_clock().wall() // 86_400)


async def test_the_day_ends_a_turn_it_cannot_pay_for_and_people_are_told(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, **paid(1.0, saying(600_000))) as home:
        assert (await home.ended(await home.say("one"))).status is Status.PROCESSED
        refused = await home.ended(await home.say("two"))
        assert refused.status is Status.PROCESSED, "an estimate has room: the prompt is short"
        refused = await home.ended(await home.say("three"))
        assert (refused.status, refused.metadata["reason"]) == (Status.ERROR, Reason.BUDGET)
        told = [row.content for row in await home.rows(refused.session_id) if row.role is Role.SYSTEM]
        assert "$1.20 of the $1.00 for today (max_cost_per_day) are spent" in told[-1]
        assert await home.gateway.reader.spent(day()) == pytest.approx(1.2)


async def test_the_day_is_the_same_after_a_restart_and_another_one_tomorrow(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, **paid(1.0, saying(1_000_000))) as home:
        assert (await home.ended(await home.say("one"))).status is Status.PROCESSED
    async with at_home(tmp_path, seed=2, **paid(1.0, saying(1_000_000))) as home:
        assert (await home.ended(await home.say("two"))).metadata["reason"] == Reason.BUDGET
        autojump_clock.jump(86_400)
        assert (await home.ended(await home.say("three"))).status is Status.PROCESSED


async def test_turns_side_by_side_do_not_spend_the_same_money_twice(tmp_path: Path, autojump_clock: MockClock) -> None:
    slow = (Say(text="one two three", word_delay_s=5.0), Spend(input=1000, output=0))
    plan = paid(0.00015, slow)
    async with at_home(tmp_path, **plan) as home:
        first = await home.say("one")
        await trio.sleep(1)
        home.channel = Channel(chatbot_id="test", channel_id="other")
        second = await home.ended(await home.say("two"))
        assert second.metadata["reason"] == Reason.BUDGET, "the first has reserved what there is"
        home.channel = ROOM
        assert (await home.ended(first)).status is Status.PROCESSED


async def test_a_step_that_the_day_does_not_pay_for_leaves_what_was_said_before_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async def look() -> str:
        """Look."""
        await trio.lowlevel.checkpoint()
        return "a cat"

    looking = (Say(text="I look."), Call(name="look"), Spend(input=1_000_000, output=0))
    async with at_home(tmp_path, tools=[look], **paid(1.0, looking, saying(1))) as home:
        asked = await home.ended(await home.say("what is there?"))
        assert asked.metadata["reason"] == Reason.BUDGET
        rows = await home.rows(asked.session_id)
        assert [row.content for row in rows[:4]] == ["what is there?", "I look.", "look()", "a cat"]
        assert len((await home.gateway.history(asked.session_id)).steps) == 1
