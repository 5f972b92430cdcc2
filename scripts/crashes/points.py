"""Kill points: names passed to the probe seam, how often each is passed, and where a life is to end.

A *kill* says where a life ends: at the `count`th passage of a point, or, for `INSTANT`, after so many seconds. It is
written `name:count` (`tool.spawned:2`) or `instant:seconds` (`instant:0.25`). With `term@` before it, the life is asked
to end by SIGTERM, and has its grace (C7).
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
TERM: Final = "term@"


@frozen
class Kill:
    """Where a life ends."""

    point: str
    at: float
    """A count from 1; of an instant the seconds since the start."""
    signal: int = signal.SIGKILL

    def __str__(self) -> str:
        at = f"{self.point}:{self.at:.3f}" if self.point == INSTANT else f"{self.point}:{self.at:.0f}"
        return f"{TERM}{at}" if self.signal == signal.SIGTERM else at


def kill_of(text: str) -> Kill:
    """Return the kill written so. Raises `ValueError`."""
    asked = text.startswith(TERM)
    point, _, at = text.removeprefix(TERM).rpartition(":")
    if not point:
        raise ValueError(f"a kill is written [term@]POINT:COUNT or [term@]instant:SECONDS, not {text!r}")
    return Kill(point, float(at), signal.SIGTERM if asked else signal.SIGKILL)


@define(eq=False)
class Probe:
    """Counts passages, and ends the process at the one it is told. To be given to the program as its probe."""

    kill: Kill | None
    passed: Counter[str]

    def __call__(self, point: str) -> None:
        self.passed[point] += 1
        if self.kill is not None and point == self.kill.point and self.passed[point] == self.kill.at:
            os.kill(os.getpid(), self.kill.signal)


@frozen(kw_only=True)
class Plan:
    """What a campaign draws from."""

    passages: Mapping[str, int]
    """How often each point was passed in the recording run."""
    seconds: float
    """How long that run took."""

    def draw(self, rng: random.Random, hits: Mapping[str, int], *, instants: float = 0.15, terms: float = 0.15) -> Kill:
        """Return the next kill: a random instant now and then, else a passage of one of the points hit least often.

        Some are no kill but a SIGTERM, at the random passage of any point.
        """
        if rng.random() < terms:
            point = rng.choice(sorted(self.passages))
            return Kill(point, rng.randint(1, self.passages[point]), signal.SIGTERM)
        if rng.random() < instants:
            return Kill(INSTANT, rng.uniform(0.0, self.seconds))
        fewest = min(hits.get(point, 0) for point in self.passages)
        point = rng.choice([point for point in sorted(self.passages) if hits.get(point, 0) == fewest])
        return Kill(point, rng.randint(1, self.passages[point]))
