"""interleave-test: every opcode of threads is a step; random, PCT, and exhaustive by preemptions.

It keeps no counterexample smaller than the schedule it found: the size is the number of changes between threads.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import interleave_test

from scripts.bench.rival_programs.table import THREADED
from scripts.bench.rival_programs.threads import run
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Search."""
    [twin] = [twin for twin in THREADED if asked.program == twin.ZOO]
    model = partial(run, twin, fixed=fixed)
    result = interleave_test.explore(
        model, iterations=schedules, seed=seed, strategy=asked.mode, raise_on_failure=False
    )
    if result.failure is None:
        return Search(schedules=result.schedules_run)
    found = result.failure
    return Search(
        schedules=result.schedules_run,
        failure=f"{found.kind} {found.exception!r}",
        is_bug=found.kind == ("deadlock" if twin.IS_STUCK else "exception"),
        size=sum(one != other for one, other in pairwise(found.schedule.choices)),
    )


if __name__ == "__main__":
    wanted = asked_for(("random", "pct", "dfs"))
    told(tried(wanted, partial(searched, wanted)))
