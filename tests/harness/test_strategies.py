"""The strategies that sample: what each promises of the schedules it draws."""

from __future__ import annotations

import random

import pytest
import trio

from kesoku_actors.harness.control import execute
from kesoku_actors.harness.strategies import PCT
from kesoku_actors.harness.strategy import RunInfo, Strategy

from .programs import pause


async def long_alone_then_a_race() -> None:
    """Hundreds of steps in which nobody else can run; then a bug that takes one change of priorities to hit."""
    await pause(300)
    state = [0]

    async def reader() -> None:
        await pause()
        seen = state[0]
        await pause()
        assert state[0] == seen, "it changed meanwhile"

    async def writer() -> None:
        await pause()
        state[0] += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader)
        nursery.start_soon(writer)


def failures(strategy: Strategy, runs: int) -> int:
    found, steps = 0, 0
    for number in range(runs):
        length = steps // number if number else 100
        strategy.begin(RunInfo(number=number, rng=random.Random(number), length=length))
        run = execute(long_alone_then_a_race, strategy)
        found += run.error is not None
        steps += run.steps
    return found


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_changes_of_priority_fall_on_decisions_and_not_on_steps_that_one_lane_alone_can_take(depth: int) -> None:
    """With about ten decisions and two tasks that race, a depth of two promises one run in twenty, and finds more."""
    assert failures(PCT(depth), 100) >= 5


def test_without_a_change_the_race_is_never_hit() -> None:
    assert failures(PCT(1), 100) == 0
