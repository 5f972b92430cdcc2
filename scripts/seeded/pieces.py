"""The pieces of a campaign: one property with one seed each; and how machines divide such work among them. Pure."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, TypeVar

from scripts.seeded.server import Trial

T = TypeVar("T")

_SECONDS: Final = 3_600
"""Of CPU time; a piece that takes longer hangs."""


def shard_of(said: str) -> tuple[int, int]:
    """Return `(0, 4)` for `1/4`."""
    share, _, shares = said.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise argparse.ArgumentTypeError(f"a shard is i/n, as 1/4 to 4/4, not {said!r}")
    return int(share) - 1, int(shares)


def sharded(pieces: Sequence[T], shard: tuple[int, int]) -> Sequence[T]:
    """Return every so-many-th piece."""
    share, shares = shard
    return pieces[share::shares]


def pieces(names: Sequence[str], seeds: Sequence[int], runs: int) -> list[Trial]:
    """Return the pieces of a campaign, round by round."""
    return [Trial(test=name, mutant=None, runs=runs, seed=seed, seconds=_SECONDS) for seed in seeds for name in names]


def where(test: str) -> str:
    """Return the file of a property and its name, as commands take them."""
    module, _, name = test.partition(".")
    return f"tests/properties/daemon/{module}.py:{name}"


def replay(test: str, token: str) -> str:
    """Return the command that plays a token, reduces it and explains it."""
    return f"scripts/python -m kesoku_actors check {where(test)} --replay {token}"
