"""Faults that a program asks for by name: which fire, and which never did. Pure.

Whether a fault fires is a decision of the schedule like any other. So it is in the record of a run, a replay has the
same faults, and a form names each one that fired: its name and which time it was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from attrs import define, field, frozen


@frozen(order=True)
class Fire:
    """A fault that happens."""

    name: str
    time: int
    """Which time it is asked for, from 1."""

    def __str__(self) -> str:
        return f"let the fault `{self.name}` happen the {_ordinal(self.time)} time it may"


@runtime_checkable
class Fires(Protocol):
    """A strategy that decides about faults itself; for any other they are drawn."""

    def fires(self, fault: Fire) -> bool:
        """Tell whether this fault happens."""


@define(eq=False)
class Tally:
    """Over the runs of a campaign: how often each fault was asked for, and how often it fired."""

    asked: Counter[str] = field(factory=Counter)
    fired: Counter[str] = field(factory=Counter)

    def add(self, asked: Counter[str], fired: Iterable[Fire]) -> None:
        """Add a run."""
        self.asked += asked
        self.fired.update(one.name for one in fired)

    @property
    def never_fired(self) -> tuple[str, ...]:
        """The faults that were asked for and never happened: a campaign with one of them has shown nothing about it."""
        return tuple(sorted(name for name in self.asked if not self.fired[name]))


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
