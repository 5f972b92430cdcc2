"""asyncer: task groups that give values."""

from __future__ import annotations

import asyncer

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_values_are_there_after_the_group() -> None:
    """soonify: after the task group, `value` is what the function returned."""

    async def give(number: int) -> int:
        await steps(number)
        return number

    async with asyncer.create_task_group() as tasks:
        soon = [tasks.soonify(give)(number) for number in (2, 0, 1)]
    assert [one.value for one in soon] == [2, 0, 1]
