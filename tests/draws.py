"""Draws of tests that play a few of very many cases: another few each time, repeatable by the seed that is printed."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def seed_of_today() -> int:
    """Return `KESOKU_SEED`, else a fresh one, and print it: pytest shows it when the test fails."""
    seed = int(os.environ.get("KESOKU_SEED") or random.SystemRandom().getrandbits(32))
    sys.stdout.write(f"repeat with KESOKU_SEED={seed}, play every case with KESOKU_CASES=all\n")
    return seed


def drawn(cases: Sequence[T], count: int) -> list[T]:
    """Return `count` of the cases, or every one with `KESOKU_CASES=all`."""
    if os.environ.get("KESOKU_CASES") == "all":
        return list(cases)
    return random.Random(seed_of_today()).sample(cases, min(count, len(cases)))


def examples(few: int, many: int = 10_000) -> int:
    """Return how many examples a property is tried on: `few`, or `many` with `KESOKU_CASES=all`."""
    return many if os.environ.get("KESOKU_CASES") == "all" else few
