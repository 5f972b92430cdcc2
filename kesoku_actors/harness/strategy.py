"""What decides who runs next: the protocol of strategies. Pure.

A strategy is two methods. `begin` is called before every run, with the run's number and a source of randomness of its
own; `choose` at each decision with more than one way to go on, or, with an attribute `sees_all` that is true, at each
step. A third one, `ran`, is optional: it is told what each step touched, for strategies that learn what is independent.
The faults of a world are drawn from a strategy's `rng`, if it has one; one with a method `fires` decides about them.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from kesoku_actors.harness.lanes import Lane, Ready


@frozen(kw_only=True)
class RunInfo:
    """What a strategy is told before a run."""

    number: int
    """Of the run, from 0."""
    rng: random.Random = field(repr=False)
    """Its own source of randomness: equal seeds give equal runs."""
    length: int
    """About how many steps a run takes, from the runs before; 100 before the first."""


class Strategy(Protocol):
    """Decides who runs next."""

    def begin(self, run: RunInfo) -> None:
        """Prepare for a run."""

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return the index of the lane to run; `len(ready)` for "time passes", if `may_tick`."""


@runtime_checkable
class Learns(Protocol):
    """A strategy that is told what each step touched."""

    def ran(self, lane: Lane, touched: Collection[Any]) -> None:
        """Learn that this step of the lane touched these objects."""
