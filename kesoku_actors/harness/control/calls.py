"""Calls of the clock and of chance that no trap stands at: `datetime.now()`, or `time` of `from time import time`.

A profile function sees every call of a function in C, whatever name it goes by. It makes a run slow, so it watches a
few runs only: the first one of a search, and each one that is watched for a report. A program that reads the clock on a
way that only other runs take is found out when one of them fails.

Invariant: a profile function that was there before is left alone, and nothing is watched then.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from kesoku_actors.harness.allow import Reach
from kesoku_actors.harness.control.traps import guard

_TIME: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
_NOW: Final = ("now", "utcnow", "today")
_ENTROPY: Final = ("urandom", "getrandom")
_SYSTEM: Final = sys.modules[os.urandom.__module__]
_SHARED_RANDOM: Final[Any] = getattr(random, "_inst", None)
"""The instance whose methods are the functions of the module."""


@contextmanager
def watching_calls() -> Iterator[None]:
    """Refuse, in the runs of this block, what reads the clock or chance by another name."""
    if sys.getprofile() is not None:
        yield
        return
    sys.setprofile(_called)
    try:
        yield
    finally:
        sys.setprofile(None)


def _called(frame: FrameType, event: str, function: Any) -> None:
    if event != "c_call":
        return
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    reach = _reach(owner, name)
    if reach is not None:
        where = owner.__name__ if owner is time or owner is _SYSTEM or isinstance(owner, type) else "random"
        guard().refuse(reach, f"`{where}.{name}`", frame)


def _reach(owner: Any, name: str) -> Reach | None:
    """Return what a function in C reaches for; none for all others."""
    if owner is time:
        return Reach.CLOCK if name in _TIME else None
    if owner is _SYSTEM:
        return Reach.RANDOMNESS if name in _ENTROPY else None
    if owner is _SHARED_RANDOM:
        return Reach.RANDOMNESS
    is_date = name in _NOW and isinstance(owner, type) and issubclass(owner, datetime.date)
    return Reach.CLOCK if is_date else None
