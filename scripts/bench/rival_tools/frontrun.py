"""frontrun: partial-order reduction, or random schedules, over the tasks of asyncio.

Its face takes the shared state, the tasks and what must hold, which is how the twins are written. Time is its virtual
clock, under which it finds a deadlock at once; for programs whose bug is one of time, the clock that it explores. It
keeps no counterexample smaller than the schedule it found: the size is the number of changes from one task to another.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import pairwise

import frontrun

from scripts.bench.rival_programs.table import twin_of
from scripts.bench.rival_programs.twin import BYSTANDERS
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried

SECONDS = 15.0
"""Of a search, of wall time, which is the limit it has."""


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Search."""
    twin = twin_of(asked.program)
    names = [name for name in twin.WORKERS if asked.mode == "dpor" or name not in BYSTANDERS]
    how = (
        {"strategy": "random", "seed": seed, "max_attempts": schedules}
        if asked.mode == "random"
        else {"strategy": "dpor", "max_executions": schedules, "reproduce_on_failure": 0}
    )
    result = asyncio.run(
        frontrun.explore(
            setup=lambda: twin(fixed=fixed, now=time.monotonic),
            workers=[getattr(twin, name) for name in names],
            invariant=twin.holds,
            clock="explored" if twin.TAKES_TIME else "virtual",
            total_timeout=SECONDS,
            **how,
        )
    )
    if result.property_holds is None:
        return Search(schedules=result.num_explored, note=f"inconclusive: {result.inconclusive_reason}")
    if result.property_holds:
        return Search(schedules=result.num_explored)
    order = list(result.counterexample or ())
    text = " ".join((result.explanation or "").split())
    return Search(
        schedules=result.num_explored,
        failure=text,
        is_bug=("deadlock" in text.lower()) == twin.IS_STUCK,
        size=sum(one != other for one, other in pairwise(order)) if order else None,
    )


if __name__ == "__main__":
    wanted = asked_for(("dpor", "alone", "random"))
    told(tried(wanted, partial(searched, wanted)))
