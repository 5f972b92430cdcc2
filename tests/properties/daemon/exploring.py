"""How much the properties of the daemon are explored: a small slice with every change, and as much as one likes.

`KESOKU_RUNS` is how many schedules each property is given (72). What people do matters as much as the order of steps,
so each input is run under two schedules, each time of other strategies. `scripts/campaign` explores for longer, and
`scripts/certify` plays every schedule with at most so many holds, ticks and faults.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from kesoku_actors.harness import PCT, POS, SURW, Limits, Portfolio, Random, Shuffle, Strict, explore
from kesoku_actors.harness.allow import Allow
from tests.properties.daemon.kinds import Tally
from tests.properties.daemon.seams import DaemonWorld

RUNS: Final = int(os.environ.get("KESOKU_RUNS", "72"))
FILES: Final = Allow(files=True)
"""The disk of a world is a folder of its own, and the program makes some of the files in it by itself."""
LIMITS: Final = Limits(steps=100_000)
SCHEDULES: Final = 2
"""Of one input."""


def sampling() -> Portfolio:
    """Return all strategies that sample; each input goes on with those whose turn it is."""
    return Portfolio([Random(), PCT(2), POS(), PCT(3), SURW(), PCT(5), Strict(), Shuffle()])


def explored(*, share: float = 1.0, may_tick: bool = True) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return the decorator of a property with drawn inputs; `share` of the runs are for it."""
    runs = max(10, int(RUNS * share))
    return explore(
        runs=runs,
        strategy=sampling,
        world=Tally().world,
        examples=runs // SCHEDULES,
        may_tick=may_tick,
        limits=LIMITS,
        allow=FILES,
    )


def of_one_script() -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return the decorator of a property of one script."""
    return explore(runs=RUNS, world=DaemonWorld, limits=LIMITS, allow=FILES)
