"""simloop: a simulated loop for asyncio; random and PCT."""

from __future__ import annotations

from functools import partial
from time import process_time

import simloop

from scripts.bench.rival_programs.table import twin_of
from scripts.bench.rival_programs.twin import once
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

SEEDS_APART = 100_000


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Search, and look at the failing seed once more to reduce it."""
    twin = twin_of(asked.program)
    main = partial(once, twin, fixed=fixed)
    first = seed * SEEDS_APART
    began = process_time()
    report = simloop.explore(main, range(first, first + schedules), policy=asked.mode)
    taken = process_time() - began
    if report is None:
        return Search(schedules=schedules)
    failure = f"{type(report.exception).__name__}: {report.exception}"
    is_bug = isinstance(report.exception, simloop.SimulationDeadlockError if twin.IS_STUCK else AssertionError)
    again = simloop.explore(main, [report.seed], policy=asked.mode, shrink=True)
    size = None if again is None or again.shrunk is None else len(again.shrunk.kept)
    return Search(schedules=report.seeds_passed + 1, failure=failure, is_bug=is_bug, seconds=taken, size=size)


if __name__ == "__main__":
    wanted = asked_for(("random", "pct"))
    told(tried(wanted, partial(searched, wanted)))
