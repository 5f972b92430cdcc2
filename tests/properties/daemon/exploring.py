"""How much the properties of the daemon are explored: a small slice with every change, and as much as one likes.

`KESOKU_RUNS` is how many schedules each property is given (40); `KESOKU_CERTIFY` adds every schedule with at most so
many holds and ticks, to the properties that are certified.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from kesoku_actors.harness import Hold, Limits, explore
from kesoku_actors.harness.allow import Allow
from tests.properties.daemon.seams import DaemonWorld

RUNS: Final = int(os.environ.get("KESOKU_RUNS", "40"))
CERTIFY: Final = int(os.environ.get("KESOKU_CERTIFY", "0"))
FILES: Final = Allow(files=True)
"""The disk of a world is a folder of its own, and the program makes some of the files in it by itself."""
LIMITS: Final = Limits(steps=100_000)


def explored(
    *, share: float = 1.0, certify: bool = False, may_tick: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Return the decorator of a property; `share` of the runs are for it, an input for every five of them."""
    runs = max(10, int(RUNS * share))
    return explore(
        runs=runs,
        world=DaemonWorld,
        examples=max(5, runs // 5),
        certify=Hold(CERTIFY) if certify and CERTIFY else None,
        may_tick=may_tick,
        limits=LIMITS,
        allow=FILES,
    )
