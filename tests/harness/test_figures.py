"""The measurements of the harness, in small: replays in fresh processes, programs without races, power cuts."""

from __future__ import annotations

import random

import pytest
import trio

from kesoku_actors.harness import NOTHING
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.schedule import Choice, Schedule
from kesoku_actors.harness.zoo import Difficulty
from scripts.bench import agreement, fidelity, sweep, zoo

from ..draws import examples, seed_of_today


def test_schedules_are_the_same_runs_under_other_hash_seeds() -> None:
    count = examples(600, 100_000)
    seed = seed_of_today() % 1_000
    told = list(fidelity.divergences(count, count // 2 if count < 1_000 else 1_000, seed=seed))
    assert len(told) >= 2
    assert [one for each in told for one in each] == []


def test_a_run_that_is_not_as_it_was_recorded_is_told() -> None:
    [record] = fidelity.recorded(1, seed=0)
    assert fidelity.divergence_of(record) is None
    other = fidelity.Recorded(bug=record.bug, fixed=record.fixed, choices=record.choices, digest="")
    assert fidelity.divergence_of(other) == f"{record.bug}: the same choices were another run"
    short = fidelity.Recorded(bug=record.bug, fixed=record.fixed, choices=(0, 99), digest=record.digest)
    assert "choice 1 was one of 99 ways" in str(fidelity.divergence_of(short))


def test_what_is_played_again_is_what_was_recorded() -> None:
    for record in fidelity.recorded(20, seed=1):
        schedule = Schedule(tuple(map(Choice, record.choices[::2], record.choices[1::2])))
        assert record.play(Replay(schedule)).schedule == schedule


def test_programs_that_race_with_nobody_come_out_as_under_plain_trio() -> None:
    first = seed_of_today()
    assert list(agreement.differences(range(first, first + examples(300)))) == []


def test_a_program_that_races_comes_out_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    async def races(rng: random.Random, _depth: int) -> object:
        order: list[int] = []

        async def one(number: int) -> None:
            await trio.lowlevel.checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(one, number)
        return order

    monkeypatch.setattr(agreement, "PARTS", (races,) * 3)
    assert any("plain trio" in told for told in agreement.differences(range(20)))


def test_twins_are_run_as_often_as_is_asked_for_and_do_not_alarm() -> None:
    bugs = [bug.name for bug in zoo.BUGS if bug.difficulty is Difficulty.EASY][:3]
    made = list(zoo.twins(900, bugs=bugs, seed=seed_of_today()))
    assert 900 <= sum(one.runs for one in made) < 1_000
    assert [one.failures for one in made if one.failures] == []
    assert len({(one.work.bug, one.work.strategy, one.work.seed) for one in made}) == len(made)


def test_full_syncs_keep_every_row_at_every_power_cut_and_fewer_do_not() -> None:
    found = {mode.name: sweep.swept(mode, rows=4, seeds=range(1), survival=NOTHING) for mode in sweep.MODES}
    assert all(one.holds for one in found.values())
    assert all(one.losing == one.unsound == 0 for one in found.values() if one.mode.keeps_rows)
    assert found["WAL NORMAL"].losing > 5
    assert found["rollback FULL, syncs that lie"].losing > 5
    assert found["WAL FULL"].cuts > found["WAL OFF"].cuts > 20
