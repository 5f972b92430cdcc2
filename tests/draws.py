"""Draws of tests that play a few of very many cases: others each time or always the same, by a seed that is printed."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def fresh_seed() -> int:
    """Return a seed that nobody knows beforehand."""
    return random.SystemRandom().getrandbits(32)


def seed_of_today(otherwise: int | None = None) -> int:
    """Return `KESOKU_SEED`, else `otherwise` or a fresh one, and print it: pytest shows it when the test fails."""
    seed = int(os.environ.get("KESOKU_SEED") or (fresh_seed() if otherwise is None else otherwise))
    sys.stdout.write(f"repeat with KESOKU_SEED={seed}, play every case with KESOKU_CASES=all\n")
    return seed


def drawn(cases: Sequence[T], count: int, *, otherwise: int | None = None) -> list[T]:
    """Return `count` of the cases, or every one with `KESOKU_CASES=all`.

    They are drawn with `KESOKU_SEED`, else with `otherwise`, the same ones for everybody; else with a fresh seed.
    """
    if os.environ.get("KESOKU_CASES") == "all":
        return list(cases)
    return random.Random(seed_of_today(otherwise)).sample(cases, min(count, len(cases)))


def examples(few: int, many: int = 10_000) -> int:
    """Return how many examples a property is tried on: `few`, or `many` with `KESOKU_CASES=all`."""
    return many if os.environ.get("KESOKU_CASES") == "all" else few
