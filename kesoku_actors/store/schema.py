"""The numbered migrations of the database, and the ledger that says which were carried out.

A migration is a file `migrations/NNNN_name.sql`; numbers have no gaps and a file never changes once released. The
number of the last one is the database's `user_version`, so that it can be read from the file's header before anything
opens it for writing (C8).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.store.sql import select

APPLICATION_ID: Final = 0x4B736B75
"""Marks a SQLite file as ours: "Ksku"."""

MIGRATIONS: Final = ("0001_rows", "0002_summaries", "0003_jobs", "0004_fewer_trees", "0005_spending")
SCHEMA: Final = len(MIGRATIONS)
"""The number of the last migration this program knows."""

_FOLDER: Final = Path(__file__).with_name("migrations")
_LEDGER: Final = "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT, applied REAL) STRICT"


def migrate(connection: apsw.Connection, now: float, upto: int = SCHEMA) -> None:
    """Bring an older or empty database to a schema, in one transaction. `now` is UTC seconds, for the ledger."""
    version = connection.pragma("user_version")
    if version == upto:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_LEDGER)
        for number, name in list(enumerate(MIGRATIONS, start=1))[version:upto]:
            sql = (_FOLDER / f"{name}.sql").read_text("utf-8")
            select(connection, sql)
            connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", upto)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # of some faults SQLite has rolled back by itself
            connection.execute("ROLLBACK")
        raise
