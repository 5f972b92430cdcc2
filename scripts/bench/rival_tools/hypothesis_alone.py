"""Hypothesis alone: it draws the order as a list of choices, and shrinks the list; our control only carries it out."""

from __future__ import annotations

from functools import partial
from time import process_time

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.search import Plan, runner_of
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.zoo import BUGS
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

LENGTH = 100
"""Of the list; after its end, whoever could run first runs first."""


class Drawn:
    """A strategy that follows a list of choices."""

    def __init__(self, choices: list[int]) -> None:
        self._choices = iter(choices)

    def begin(self, run: RunInfo) -> None:
        """Need nothing of it."""

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        return next(self._choices, 0) % (len(ready) + may_tick)


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Let Hypothesis draw so many examples."""
    [bug] = [bug for bug in BUGS if bug.name == asked.program]
    run = runner_of(bug.program(fixed=fixed), Plan(), None)
    began = process_time()
    made, first, taken, last, failure = 0, 0, 0.0, list[int](), ""

    @seeded(seed)
    @settings(
        max_examples=schedules,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )
    @given(st.lists(st.integers(0, 7), min_size=LENGTH, max_size=LENGTH))
    def holds(choices: list[int]) -> None:
        nonlocal made, first, taken, last, failure
        made += 1
        error = run(Drawn(choices)).error
        if error is None:
            return
        if not first:
            first, taken = made, process_time() - began
        last, failure = choices, repr(error)
        raise AssertionError(failure)

    try:
        holds()
    except AssertionError:
        size = sum(choice != 0 for choice in last)
        return Search(schedules=first, failure=failure, is_bug=not fixed, seconds=taken, size=size)
    return Search(schedules=made)


if __name__ == "__main__":
    wanted = asked_for(("drawn",))
    told(tried(wanted, partial(searched, wanted)))
