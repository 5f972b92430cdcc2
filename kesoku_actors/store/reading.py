"""Read-only connections: they own nothing and change nothing (C6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.store import faults
from kesoku_actors.store.port import StoreDamaged, StoreUnusable
from kesoku_actors.store.schema import SCHEMA

_BUSY_MS: Final = 2000
"""A reader waits only while another process recovers the write-ahead log."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn SQLite's errors inside into a `StoreFault`."""
    try:
        yield
    except faults.DAMAGE as error:
        raise StoreDamaged(f"the database is damaged ({error}); restore a backup of it") from error
    except faults.PASSING as error:
        raise faults.busy(error) from error


def open_for_reading(path: Path, connect: Callable[[Path, int], apsw.Connection]) -> apsw.Connection:
    """Open a database that is there, read-only. Raises `StoreUnusable`, `StoreDamaged` or `StoreBusy`."""
    try:
        connection = connect(path, apsw.SQLITE_OPEN_READONLY)
    except (apsw.IOError, apsw.BusyError) as error:
        raise faults.busy(error) from error
    except apsw.Error as error:
        raise StoreUnusable(f"there is no database to read at {path} ({error})") from error
    try:
        connection.set_busy_timeout(_BUSY_MS)
        version = connection.pragma("user_version")
    except faults.DAMAGE as error:
        connection.close()
        raise faults.damaged(path, error) from error
    except faults.PASSING as error:
        connection.close()
        raise faults.busy(error) from error
    if version != SCHEMA:
        connection.close()
        raise StoreDamaged(f"{path} has schema {version}, this program reads {SCHEMA}; use the program that wrote it")
    return connection
