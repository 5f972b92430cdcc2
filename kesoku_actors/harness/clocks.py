"""The clock and the ids of a world. Pure."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import define, field

BEGAN: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""What the clocks on the wall show when a run begins."""


@define(eq=False)
class WorldClock:
    """A clock that runs in virtual time. The one on the wall may be wrong."""

    _elapsed: Callable[[], float]
    skew_s: float = 0.0
    """How far the clock on the wall is ahead; may be changed at any time."""

    def now(self) -> float:
        """Return the seconds since the run began: what `trio.current_time()` returns."""
        return self._elapsed()

    def wall(self) -> datetime:
        """Return what the clock on the wall shows, in UTC."""
        return BEGAN + timedelta(seconds=self._elapsed() + self.skew_s)

    def time(self) -> float:
        """Return what the clock on the wall shows, in seconds since 1970."""
        return self.wall().timestamp()

    def another(self) -> WorldClock:
        """Return another clock of the same world, right at first."""
        return WorldClock(self._elapsed)


@define(eq=False)
class Ids:
    """Ids that are the same in every run of a schedule."""

    rng: random.Random
    _counts: Counter[str] = field(factory=Counter)

    def next(self, kind: str = "id") -> str:
        """Return `kind-1`, then `kind-2`."""
        self._counts[kind] += 1
        return f"{kind}-{self._counts[kind]}"

    def uuid(self) -> uuid.UUID:
        """Return a UUID of version 4, drawn from the world's randomness."""
        return uuid.UUID(int=self.rng.getrandbits(128), version=4)
