"""What stays together in a history: a step with its results, and a text that somebody said. Pure.

A unit is either one row that a person or the system said, or the rows that the model said between two of those with
the results of their calls. Whoever leaves out, moves or summarises rows does it by units, so a call and its result are
never parted (P1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kesoku_actors.protocol import Message, Role
from kesoku_actors.protocol.summaries import Spot
from kesoku_actors.values import frozen


@frozen
class Placed:
    """A row and where it stands."""

    spot: Spot
    row: Message


Unit = tuple[Placed, ...]


def units(rows: Sequence[Placed]) -> Iterator[Unit]:
    """Part rows in the order of the history into units: a result closes a step for what the model says after it."""
    unit: list[Placed] = []
    for placed in rows:
        role = placed.row.role
        goes_on = unit and (
            (role is Role.TOOL and unit[-1].row.role in (Role.ASSISTANT, Role.TOOL))
            or (role is Role.ASSISTANT and unit[-1].row.role is Role.ASSISTANT)
        )
        if unit and not (goes_on and unit[-1].row.root_id == placed.row.root_id):
            yield tuple(unit)
            unit = []
        unit.append(placed)
    if unit:
        yield tuple(unit)


def turns(rows: Sequence[Placed]) -> Iterator[Unit]:
    """Part rows into turns: rows of one root, which stand together (O1)."""
    turn: list[Placed] = []
    for placed in rows:
        if turn and turn[-1].row.root_id != placed.row.root_id:
            yield tuple(turn)
            turn = []
        turn.append(placed)
    if turn:
        yield tuple(turn)
