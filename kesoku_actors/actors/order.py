"""In which order an ordered supervisor brings its children to where they shall be. Pure.

One step at a time, computed anew from how things stand, so a crash in the middle of a start or a stop needs no rule of
its own:

- Stops go before starts, last child first, the next one when the one behind it is down.
- A child starts when every wanted child before it is ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from kesoku_actors.values import frozen

from .statistics import Phase


class Wanted(Enum):
    """Where a child shall be."""

    UP = "up"
    AFRESH = "afresh"
    """Up, but not in its present life: that one ends first."""
    DOWN = "down"


@frozen
class Standing:
    """Where a child is and shall be."""

    id: str
    phase: Phase
    wanted: Wanted


@frozen
class Start:
    """Start this child now."""

    id: str


@frozen
class Stop:
    """Ask this child to stop now."""

    id: str


class Rest(Enum):
    """Nothing to do now."""

    WAITING = "waiting"
    """A child is on its way."""
    SETTLED = "settled"
    """Every child is where it shall be."""


Step: TypeAlias = Start | Stop | Rest


def next_step(children: Sequence[Standing]) -> Step:
    """Return what to do next; `children` stand in the order of start."""
    for child in reversed(children):
        if child.phase.alive and child.wanted is not Wanted.UP:
            return Rest.WAITING if child.phase is Phase.STOPPING else Stop(child.id)
    for child in children:
        if child.wanted is not Wanted.DOWN and child.phase is not Phase.RUNNING:
            return Rest.WAITING if child.phase.alive else Start(child.id)
    return Rest.SETTLED
