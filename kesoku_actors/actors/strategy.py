"""What a supervisor does when a child ends. Pure.

The rules are Erlang's. A child that ended by itself is judged by the table of restart kinds. If it starts again, the
strategy says which siblings share the restart: they stop in reverse order, then all start in order. Temporary siblings
stop with the group and stay down; a transient one that had finished starts again, for it belongs to the new group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, assert_never

from kesoku_actors.values import frozen

from .spec import Restart, Strategy


class Ending(StrEnum):
    """How a child ended."""

    NORMAL = "normal"
    """It returned."""
    STOPPED = "stopped"
    """It was asked to, or cancelled."""
    CRASHED = "crashed"
    """It raised."""


STARTS_AGAIN: Final[dict[tuple[Restart, Ending], bool]] = {
    (Restart.PERMANENT, Ending.NORMAL): True,
    (Restart.PERMANENT, Ending.CRASHED): True,
    (Restart.TRANSIENT, Ending.NORMAL): False,
    (Restart.TRANSIENT, Ending.CRASHED): True,
    (Restart.TEMPORARY, Ending.NORMAL): False,
    (Restart.TEMPORARY, Ending.CRASHED): False,
}
"""Whether a child that ended by itself starts again; one that was stopped is no question of its kind."""


@frozen
class Member:
    """What the strategy knows of a child."""

    id: str
    restart: Restart
    alive: bool


@frozen
class Plan:
    """Whom to stop, in this order, and then whom to start, in this order."""

    stop: tuple[str, ...]
    start: tuple[str, ...]


def plan(strategy: Strategy, children: Sequence[Member], failed: str) -> Plan:
    """Return how the child `failed`, which is to start again, takes its siblings along.

    `children` stand in the order of start, `failed` among them and no longer alive.
    """
    place = [child.id for child in children].index(failed)
    match strategy:
        case Strategy.ONE_FOR_ONE:
            group = children[place : place + 1]
        case Strategy.ONE_FOR_ALL:
            group = children
        case Strategy.REST_FOR_ONE:
            group = children[place:]
        case _ as never:
            assert_never(never)
    return Plan(
        stop=tuple(child.id for child in reversed(group) if child.alive),
        start=tuple(child.id for child in group if child.restart is not Restart.TEMPORARY),
    )


def restarts_in_period(past: tuple[float, ...], now: float, period_s: float) -> tuple[float, ...]:
    """Return the times of restarts that count at `now`, this one included; more than the intensity is too many.

    `past` is what this returned for the restart before; a restart `period_s` ago counts no longer.
    """
    return (*past[bisect_right(past, now - period_s) :], now)
