"""Read-only connections: they own nothing and change nothing (C6)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.store import faults
from kesoku_actors.store.header import Header, check_header, has_beside
from kesoku_actors.store.port import StoreBusy, StoreDamaged, StoreFault, StoreUnusable
from kesoku_actors.store.schema import SCHEMA
from kesoku_actors.store.sql import plan_once

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
    """Open a database that is there, read-only.

    What is refused is refused before SQLite sees it, so that nothing is made beside it. Raises `StoreUnusable`,
    `StoreDamaged` or `StoreBusy`, also for a database that is not made yet.
    """
    header = _look(path)
    connection = _connect(path, connect)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        plan_once(connection)
        version = connection.pragma("user_version")
    except apsw.Error as error:
        connection.close()
        raise _unreadable(path, error) from error
    if version != SCHEMA:
        connection.close()
        if version == 0 and (header is None or not header.has_tables):
            raise _not_made_yet(path)
        if 0 < version < SCHEMA:
            raise StoreBusy(f"{path} is of an older version of this program; the next chat brings it up to date")
        raise StoreDamaged(f"{path} has schema {version}, this program reads {SCHEMA}; use the program that wrote it")
    return connection


def _look(path: Path) -> Header | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise StoreUnusable(f"there is no database to read at {path}") from error
    except OSError as error:
        raise faults.cannot_open(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):
            raise StoreUnusable(f"the database {path} cannot be opened: it is not a file; name a file in `db_path`")
        header = check_header(path, file)
    if (header is None or header.schema == 0) and not has_beside(path, "-wal"):
        raise _not_made_yet(path)
    return header


def _connect(path: Path, connect: Callable[[Path, int], apsw.Connection]) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY
    if not os.access(path.parent, os.W_OK) and not has_beside(path, "-wal"):
        # SQLite makes files beside what it reads, unless it is told that nobody writes. As a path the address has one
        # slash less, which it may.
        path, flags = Path(f"{path.resolve().as_uri()}?immutable=1"), flags | apsw.SQLITE_OPEN_URI
    try:
        return connect(path, flags)
    except (apsw.IOError, apsw.BusyError, apsw.CantOpenError) as error:
        raise faults.busy(error) from error
    except apsw.Error as error:
        raise StoreUnusable(f"the database {path} cannot be read: {error}") from error


def _unreadable(path: Path, error: apsw.Error) -> StoreFault:
    if isinstance(error, faults.DAMAGE):
        return faults.damaged(path, error)
    if isinstance(error, apsw.ReadOnlyError) or (has_beside(path, "-journal") and isinstance(error, faults.PASSING)):
        return StoreBusy(f"{path} was left half written; a chat without -z puts it in order, then try again")
    if isinstance(error, apsw.CantOpenError) and not os.access(path.parent, os.W_OK):
        return StoreUnusable(f"{path} was left half written on a read-only disk; copy its folder and read the copy")
    if isinstance(error, faults.PASSING):
        return faults.busy(error)
    return StoreUnusable(f"the database {path} cannot be read: {error}")


def _not_made_yet(path: Path) -> StoreBusy:
    return StoreBusy(f"the database {path} is being created, or that was cut short; try again, or begin a chat")
