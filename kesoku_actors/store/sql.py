"""Running statements: every one to its end, so that none stays open behind the next."""

from __future__ import annotations

from typing import Any

import apsw

Row = tuple[Any, ...]


def plan_once(connection: apsw.Connection) -> None:
    """Keep the plan of a prepared statement for all values bound to it.

    SQLite would plan one of a table with partial indexes anew whenever a value changes, which takes longer than most
    of ours run. What such an index needs to be used has to stand in the statement itself.
    """
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def select(connection: apsw.Connection, sql: str, values: Row = ()) -> list[Row]:
    """Run a statement and return its rows."""
    return connection.execute(sql, values).fetchall()


def first(connection: apsw.Connection, sql: str, values: Row = ()) -> Row | None:
    """Run a statement and return its first row, or none."""
    rows = connection.execute(sql, values).fetchall()
    return rows[0] if rows else None


def scalar(connection: apsw.Connection, sql: str, values: Row = ()) -> Any:
    """Run a statement and return the first column of its first row, or none."""
    rows = connection.execute(sql, values).fetchall()
    return rows[0][0] if rows else None
