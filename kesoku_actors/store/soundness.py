"""The quick check of a database that was not closed in order (C8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.store import faults
from kesoku_actors.store.access import Connect
from kesoku_actors.store.reading import open_for_reading
from kesoku_actors.store.sql import scalar

_STEPS_BETWEEN_LOOKS: Final = 50_000
"""Instructions of SQLite, about a millisecond: how long a check that is to be given up goes on."""


def check_soundness(path: Path, connection: apsw.Connection) -> None:
    """Raise `StoreDamaged` unless the structure of the database holds."""
    try:
        verdict = scalar(connection, "PRAGMA quick_check(1)")
    except faults.DAMAGE as error:
        raise faults.damaged(path, error) from error
    if verdict != "ok":
        raise faults.damaged(path, verdict)


def check_beside(path: Path, connect: Connect, is_given_up: Callable[[], bool]) -> None:
    """The same on a connection of its own, while others write; ends early and without a verdict when given up.

    Reads everything: run it in a thread. Raises `StoreDamaged`.
    """
    connection = open_for_reading(path, connect)
    try:
        connection.set_progress_handler(is_given_up, _STEPS_BETWEEN_LOOKS)
        check_soundness(path, connection)
    except apsw.InterruptError:
        return
    finally:
        connection.close()
