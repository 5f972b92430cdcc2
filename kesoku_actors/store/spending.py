"""What inferences cost: an estimate is reserved before one begins, and settled when it has ended (B4).

Invariants: what is spent and reserved in a day never goes beyond the bound of the last reservation, as far as the
estimates hold; a reservation is settled once, and one that never is counts for its day in full.
"""

from __future__ import annotations

import json
from typing import Final

import apsw

from kesoku_actors.protocol import Usage
from kesoku_actors.store.port import ReserveSpending, Settlement, SettleSpending, Spending
from kesoku_actors.store.sql import first, scalar, select
from kesoku_actors.store.transaction import Transaction

_NOTHING: Final = 1e-9
"""US dollars: what sums of amounts may be off by."""


def reserve(tx: Transaction, command: ReserveSpending) -> Spending:
    """Settle what has ended, then reserve, unless the day has no room for it."""
    for settlement in command.settled:
        _settle(tx, settlement)
    known = first(tx.connection, "SELECT 1 FROM reservations WHERE id = ?", (command.id,))
    so_far = of_day(tx.connection, command.day)
    if known is not None:  # its reply was lost
        return Spending(is_reserved=True, dollars=so_far - command.dollars)
    if so_far + command.dollars > command.most + _NOTHING:
        return Spending(is_reserved=False, dollars=so_far)
    tx.execute("DELETE FROM reservations WHERE day < ?", (command.day - 1,))
    tx.execute("INSERT INTO reservations VALUES (?, ?, ?)", (command.id, command.day, command.dollars))
    return Spending(is_reserved=True, dollars=so_far)


def settle(tx: Transaction, command: SettleSpending) -> None:
    """Put what inferences really cost in the place of what was reserved for them; safe to send again."""
    for settlement in command.settled:
        _settle(tx, settlement)


def of_day(connection: apsw.Connection, day: int) -> float:
    """Return what is spent and reserved in a day."""
    sql = (
        "SELECT coalesce((SELECT dollars FROM spending WHERE day = ?1), 0.0)"
        " + coalesce((SELECT sum(dollars) FROM reservations WHERE day = ?1), 0.0)"
    )
    return float(scalar(connection, sql, (day,)))


def of_turn(connection: apsw.Connection, no: int, root_seq: int) -> tuple[int, float]:
    """Return the tokens that went into and came out of the models in a turn, and what they cost (B4)."""
    sql = (
        "SELECT coalesce(sum(coalesce(step ->> '$.usage.input', 0) + coalesce(step ->> '$.usage.output', 0)), 0),"
        " coalesce(sum(step ->> '$.usage.cost'), 0.0) FROM steps WHERE session_no = ? AND root_seq = ?"
    )
    ((tokens, cost),) = select(connection, sql, (no, root_seq))
    return int(tokens), float(cost)


def of_sessions(connection: apsw.Connection, session_ids: tuple[str, ...]) -> dict[str, Usage]:
    """Return what each session used that had a step, all its inferences together."""
    names = ("input", "cached", "written", "output", "thinking", "cost")
    kinds = ", ".join(f"sum(t.step ->> '$.usage.{name}')" for name in names)
    sql = (
        f"SELECT s.id, {kinds} FROM sessions s JOIN steps t ON t.session_no = s.no"
        " WHERE s.id IN (SELECT value FROM json_each(?)) GROUP BY s.no"
    )
    return {
        id: Usage(**dict(zip(names, counts, strict=True)))
        for id, *counts in select(connection, sql, (json.dumps(session_ids),))
    }


def _settle(tx: Transaction, settlement: Settlement) -> None:
    row = first(tx.connection, "SELECT day FROM reservations WHERE id = ?", (settlement.id,))
    if row is None:
        return
    tx.execute("DELETE FROM reservations WHERE id = ?", (settlement.id,))
    tx.execute(
        "INSERT INTO spending VALUES (?, ?) ON CONFLICT DO UPDATE SET dollars = dollars + excluded.dollars",
        (row[0], settlement.dollars),
    )
