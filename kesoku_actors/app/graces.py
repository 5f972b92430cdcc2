"""How the time to stop is divided among those who need it (C7). Pure.

Everything counts from the one request to stop: started tools go on; then what still runs is ended and its outcome
staged; then the workers publish it and give their turns back; what is left is for the rest, the store last.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.values import frozen

STOP_S: Final = 205.0
"""Less than the 210 s after which a service manager kills (`TimeoutStopSec`)."""
_RESERVE_S: Final = 25.0


@frozen(kw_only=True)
class Graces:
    """Seconds, each for itself."""

    tools_s: float
    """For started tools to finish."""
    ending_s: float
    """After that: to end what still runs, and to stage its outcome."""
    workers_s: float
    """For workers, all of the above included."""


def divide(stop_s: float) -> Graces:
    """Divide the seconds that stopping may take; tools never get less than half."""
    reserve_s = min(_RESERVE_S, stop_s / 2)
    ending_s = reserve_s * 2 / 5
    publishing_s = reserve_s / 5
    tools_s = stop_s - reserve_s
    return Graces(tools_s=tools_s, ending_s=ending_s, workers_s=tools_s + ending_s + publishing_s)
