"""trio with its batches shuffled by a seed, which is what pytest-trio lets Hypothesis do; a clock that jumps."""

from __future__ import annotations

from functools import partial
from time import process_time

import trio
import trio.testing
from trio._core import _run

from kesoku_actors.harness.zoo import BUGS
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

LONG = 1_000_000.0
"""Seconds of the clock that jumps: when nothing else is left to come, the program is stuck."""


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Run it so many times, each with a seed of its own, or until it fails."""
    [bug] = [bug for bug in BUGS if bug.name == asked.program]
    program = bug.program(fixed=fixed)

    async def main() -> None:
        with trio.fail_after(LONG):
            await program()

    began = process_time()
    for number in range(1, schedules + 1):
        _run._r.seed(seed * schedules + number)
        try:
            trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), strict_exception_groups=True)
        except (Exception, BaseExceptionGroup) as error:
            is_stuck = isinstance(error, trio.TooSlowError)
            is_bug = is_stuck if bug.failure == "Deadlock" else bug.is_shown_by(error)
            return Search(schedules=number, failure=repr(error), is_bug=is_bug, seconds=process_time() - began)
    return Search(schedules=schedules)


if __name__ == "__main__":
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # what pytest-trio does, too
    wanted = asked_for(("shuffled",))
    told(tried(wanted, partial(searched, wanted)))
