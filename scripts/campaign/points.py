"""Kill points: names passed to the probe seam, how often each is passed, and where a life is to end.

A *kill* says where a life ends: at the `count`th passage of a point, or, for `INSTANT`, after so many seconds. It is
written `name:count` (`tool.spawned:2`) or `instant:seconds` (`instant:0.25`).
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Final

from attrs import define, frozen

INSTANT: Final = "instant"


@frozen
class Kill:
    """Where a life ends."""

    point: str
    at: float
    """A count from 1; of an instant the seconds since the start."""

    def __str__(self) -> str:
        return f"{self.point}:{self.at:.3f}" if self.point == INSTANT else f"{self.point}:{self.at:.0f}"


def kill_of(text: str) -> Kill:
    """Return the kill written so. Raises `ValueError`."""
    point, _, at = text.rpartition(":")
    if not point:
        raise ValueError(f"a kill is written POINT:COUNT or instant:SECONDS, not {text!r}")
    return Kill(point, float(at))


@define(eq=False)
class Probe:
    """Counts passages, and ends the process at the one it is told. To be given to the program as its probe."""

    kill: Kill | None
    passed: Counter[str]

    def __call__(self, point: str) -> None:
        self.passed[point] += 1
        if self.kill is not None and point == self.kill.point and self.passed[point] == self.kill.at:
            os.kill(os.getpid(), signal.SIGKILL)


@frozen(kw_only=True)
class Plan:
    """What a campaign draws from."""

    passages: Mapping[str, int]
    """How often each point was passed in the recording run."""
    seconds: float
    """How long that run took."""

    def draw(self, rng: random.Random, hits: Mapping[str, int], *, instants: float = 0.15) -> Kill:
        """Return the next kill: a random instant now and then, else a passage of one of the points hit least often."""
        if rng.random() < instants:
            return Kill(INSTANT, rng.uniform(0.0, self.seconds))
        fewest = min(hits.get(point, 0) for point in self.passages)
        point = rng.choice([point for point in sorted(self.passages) if hits.get(point, 0) == fewest])
        return Kill(point, rng.randint(1, self.passages[point]))
