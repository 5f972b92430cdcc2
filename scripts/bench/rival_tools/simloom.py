"""simloom: a simulated loop for asyncio; random, PCT with a depth of its own choosing, and exhaustive by delays."""

from __future__ import annotations

from functools import partial
from time import process_time

import simloom

from scripts.bench.rival_programs.table import twin_of
from scripts.bench.rival_programs.twin import once
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

SEEDS_APART = 100_000


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Search, and reduce what was found, as its decorator for tests does."""
    twin = twin_of(asked.program)
    main = partial(once, twin, fixed=fixed)
    began = process_time()
    if asked.mode == "systematic":
        found = simloom.explore_systematic(main, max_delays=2, max_schedules=schedules, virtual_time=True)
        made, result = found.schedules, found.first
    else:
        sampled = simloom.explore(
            main, runs=schedules, start_seed=seed * SEEDS_APART, scheduler=asked.mode, virtual_time=True
        )
        made, result = sampled.runs, sampled.first_failure
    taken = process_time() - began
    if result is None:
        return Search(schedules=made)
    failure = f"{type(result.error).__name__}: {result.error}"
    is_bug = isinstance(result.error, simloom.SimDeadlockError if twin.IS_STUCK else AssertionError)
    small = simloom.shrink(main, result, virtual_time=True)
    return Search(schedules=made, failure=failure, is_bug=is_bug, seconds=taken, size=small.deviations)


if __name__ == "__main__":
    wanted = asked_for(("random", "pct:auto", "systematic"))
    told(tried(wanted, partial(searched, wanted)))
