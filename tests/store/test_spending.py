"""What inferences cost is reserved before and settled after, for a UTC day, and survives everything (B4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kesoku_actors.protocol import Reason, Step, StepState, Usage
from kesoku_actors.store import (
    ChooseModel,
    CloseSession,
    GiveBack,
    ReserveSpending,
    Settlement,
    SettleSpending,
    WipeSession,
)
from tests.store.home import ROOM, Home, living, take

DAY = 20_000


async def reserve(home: Home, id: str, dollars: float, day: int = DAY, **more: Any) -> bool:
    command = ReserveSpending(id=id, day=day, dollars=dollars, most=1.0, **more)
    return (await home.store.reserve_spending(command)).is_reserved


async def test_a_day_takes_no_more_than_its_bound_whoever_asks(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        assert [await reserve(home, id, 0.4) for id in ("a", "b", "c")] == [True, True, False]
        assert await reserve(home, "c", 0.4, day=DAY + 1), "the next day is another one"
        assert await home.reader.spent(DAY) == pytest.approx(0.8)


@pytest.mark.parametrize("parts", [3, 10, 7, 1000])
async def test_a_day_is_spent_to_its_last_cent_whatever_its_parts_sum_up_to(tmp_path: Path, parts: int) -> None:
    async with living(tmp_path / "k.db") as home:
        assert all([await reserve(home, str(index), 1.0 / parts) for index in range(parts)])
        assert not await reserve(home, "beyond", 0.000_001)
        assert await reserve(home, "free", 0.0), "a model that costs nothing answers all the same"


async def test_what_is_settled_counts_in_the_place_of_its_estimate(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        assert await reserve(home, "a", 0.9)
        assert not await reserve(home, "b", 0.5)
        await home.store.settle_spending(SettleSpending(settled=(Settlement(id="a", dollars=0.3),)))
        assert await reserve(home, "b", 0.5)
        assert await reserve(home, "c", 0.3, settled=(Settlement(id="b", dollars=0.1),))
        assert await home.reader.spent(DAY) == pytest.approx(0.3 + 0.1 + 0.3)


async def test_both_are_safe_to_send_again(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        assert [await reserve(home, "a", 0.9) for _ in range(3)] == [True] * 3
        for _ in range(3):
            await home.store.settle_spending(SettleSpending(settled=(Settlement(id="a", dollars=0.2),)))
        assert await home.reader.spent(DAY) == pytest.approx(0.2)


async def test_an_inference_whose_end_nobody_saw_counts_in_full_after_a_restart(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        await reserve(home, "a", 0.6)
        await reserve(home, "b", 0.1, settled=())
        await home.store.settle_spending(SettleSpending(settled=(Settlement(id="b", dollars=0.05),)))
    async with living(tmp_path / "k.db") as home:
        assert await home.reader.spent(DAY) == pytest.approx(0.65)
        assert not await reserve(home, "c", 0.4)


async def test_a_clear_gives_no_money_back(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin("hello")
        await home.answer(key, root)
        await reserve(home, "a", 0.5)
        await home.store.settle_spending(SettleSpending(settled=(Settlement(id="a", dollars=0.5),)))
        await home.store.give_back(GiveBack(key=key, clean=True))
        await home.store.close_session(CloseSession(session_id=key.session_id))
        await home.store.wipe(WipeSession(session_id=key.session_id))
        assert await home.reader.spent(DAY) == pytest.approx(0.5)


@pytest.mark.parametrize("steps", [1, 2])
async def test_a_resumed_turn_is_told_what_it_used_so_far(tmp_path: Path, steps: int) -> None:
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin("hello")
        used = Usage(input=100, cached=40, output=20, thinking=5, cost=0.25)
        for number in range(steps):
            step = Step(inference_id=f"i{number}", provider="p", model="m", state=StepState.FAILED, usage=used)
            committed = await home.stand(key, root, step=step)
            assert (committed.tokens, committed.cost) == (0, 0.0), "the worker that made it counts itself"
        await home.store.give_back(GiveBack(key=key, clean=True))
        key = await home.hire(key.session_id)
        committed = await home.stand(key, claim=take(root, Reason.RESUMED))
        assert (committed.tokens, committed.cost) == (120 * steps, 0.25 * steps)


async def test_the_model_chosen_for_a_channel_survives_a_restart(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        assert await home.reader.chosen_model(ROOM) is None
        for name in ("claude", "gemini"):
            await home.store.choose_model(ChooseModel(channel=ROOM, name=name))
    async with living(tmp_path / "k.db") as home:
        assert await home.reader.chosen_model(ROOM) == "gemini"
        await home.store.choose_model(ChooseModel(channel=ROOM, name=None))
        assert await home.reader.chosen_model(ROOM) is None
