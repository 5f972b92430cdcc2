"""Opening and closing the database: lock, header, pragmas, migrations, the `open` mark (C6, C8).

What cannot be used is refused before anything is written: the header is read as bytes, the first connection may not
even fold the write-ahead log into the file. `open` is set in the database while a process has it, so that the next
one knows whether the last ended in order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import apsw

from kesoku_actors.store import faults
from kesoku_actors.store.access import Connect
from kesoku_actors.store.header import check_header
from kesoku_actors.store.ownership import owned
from kesoku_actors.store.port import StoreDamaged, StoreUnusable
from kesoku_actors.store.queries import head
from kesoku_actors.store.schema import SCHEMA, migrate
from kesoku_actors.store.soundness import check_soundness
from kesoku_actors.store.sql import plan_once, scalar, select
from kesoku_actors.values import frozen

MIN_SQLITE: Final = (3, 51, 3)
"""Earlier ones may lose pages of the write-ahead log."""
CHECK_AT_ONCE_BYTES: Final = 64 << 20
_BUSY_MS: Final = 20
"""Short: a waiting SQLite can neither be cancelled nor, inline, let other tasks run. The actor retries."""
_JOURNAL_BYTES: Final = 64 << 20


class Durability(StrEnum):
    """What an accepted message survives (C1)."""

    FULL = "full"
    """Also a loss of power."""
    NORMAL = "normal"
    """The death of the process."""


@frozen(kw_only=True)
class OpenedStore:
    """A database this process owns, ready for the engine."""

    connection: apsw.Connection
    was_unclean: bool
    """Whether the last owner did not end in order."""
    is_unchecked: bool
    """Whether it is still to be checked for that, because it is large."""

    def end_in_order(self) -> None:
        """Clear the `open` mark and fold the write-ahead log into the file."""
        select(self.connection, "UPDATE meta SET value = ? WHERE name = 'counter'", (head(self.connection),))
        self.connection.execute("UPDATE meta SET value = 0 WHERE name = 'open'")
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        with suppress(apsw.BusyError):  # a reader of another process holds it; whoever closes last folds it
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def check_sqlite(version: str) -> None:
    """Raise `StoreUnusable` for a version of SQLite that may lose data."""
    if tuple(int(part) for part in version.split(".")) < MIN_SQLITE:
        wanted = ".".join(map(str, MIN_SQLITE))
        raise StoreUnusable(f"SQLite {version} is too old, {wanted} is needed: install apsw anew")


@contextmanager
def open_store(
    path: Path,
    *,
    durability: Durability,
    connect: Connect,
    now: float,
    warn: Callable[[str], None],
    check_at_once_bytes: int = CHECK_AT_ONCE_BYTES,
) -> Iterator[OpenedStore]:
    """Own and open the database at `path`, made if it is not there; closed at the end.

    `now` is UTC seconds; a larger database than `check_at_once_bytes` is not checked here after an unclean end.
    Raises `StoreInUse`, `StoreUnusable`, `StoreDamaged`, or `StoreBusy` when another program keeps it locked. Left
    without `end_in_order`, the `open` mark and the write-ahead log stay as they are.
    """
    check_sqlite(apsw.sqlite_lib_version())
    path = path.resolve()
    _check_path(path)
    with owned(path):
        _make_or_look(path)
        had_log = path.with_name(path.name + "-wal").exists()
        connection = _connect(path, connect)
        # A log may not be folded into a file that is refused; without one, closing must not leave an empty one.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(had_log))
        try:
            with _refusing(path):
                was_unclean = _check(path, connection, had_log, warn)
                is_unchecked = was_unclean and path.stat().st_size >= check_at_once_bytes
                if was_unclean and not is_unchecked:
                    check_soundness(path, connection)
                _prepare(connection, durability, now)
            yield OpenedStore(connection=connection, was_unclean=was_unclean, is_unchecked=is_unchecked)
        finally:
            connection.close()


def _check_path(path: Path) -> None:
    try:
        _make_folders(path.parent)
        kind = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise faults.cannot_open(path, error) from error
    if not stat.S_ISREG(kind):
        what = "a directory" if stat.S_ISDIR(kind) else "not a file"
        raise StoreUnusable(f"the database {path} cannot be opened: it is {what}; name a file in `db_path`")


def _make_folders(folder: Path) -> None:
    """Make what is missing, each for us alone (T6): `mkdir(parents=True)` leaves those between open to all."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _make_or_look(path: Path) -> None:
    """Look at the header before SQLite does; a missing database is made, for nobody else to read."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise faults.cannot_open(path, error) from error
    with os.fdopen(descriptor, "rb") as file:
        check_header(path, file)


def _connect(path: Path, connect: Connect) -> apsw.Connection:
    try:
        connection = connect(path, apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as error:
        raise StoreUnusable(f"the database {path} cannot be opened: {error}") from error
    connection.set_busy_timeout(_BUSY_MS)
    return connection


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn SQLite's errors inside into the fault that tells why the database is refused."""
    try:
        yield
    except (*faults.DAMAGE, apsw.SQLError) as error:
        raise faults.damaged(path, error) from error
    except faults.PASSING as error:
        raise faults.busy(error) from error


def _check(path: Path, connection: apsw.Connection, had_log: bool, warn: Callable[[str], None]) -> bool:
    """Refuse what is not sound; return whether the last owner did not end in order."""
    version = connection.pragma("user_version")
    if version > SCHEMA:
        raise StoreDamaged(f"{path} has schema {version}, newer than this program ({SCHEMA}); use the newer program")
    tables = scalar(connection, "SELECT count(*) FROM sqlite_schema")
    if version == 0 and tables:
        raise StoreDamaged(f"{path} is a database of another program; name another file in `db_path`")
    if version == 0:
        return False
    marks: dict[str, int] = dict(select(connection, "SELECT name, value FROM meta"))
    if not marks["open"]:
        # Written down at an orderly end; before that it stands in the rows as well.
        if marks["counter"] < (last := head(connection)):
            raise faults.damaged(path, f"its counter {marks['counter']} is behind its rows, {last}")
        return False
    if not had_log:
        warn(f"{path} was not closed in order and its write-ahead log is gone: the newest messages may be missing")
    return True


def _prepare(connection: apsw.Connection, durability: Durability, now: float) -> None:
    for set_up in (_refuse_quoted_strings, _log_ahead, _bound_the_log, plan_once):
        set_up(connection)
    connection.pragma("synchronous", durability.name)
    migrate(connection, now)
    connection.execute("UPDATE meta SET value = 1 WHERE name = 'open'")
    # The mark has to be in the file itself: a log that goes missing must not take it along.
    # Truncated, so that what is written next needs room at once: a disk that is full says so at the first message.
    with suppress(apsw.BusyError):  # then it is folded as far as another process' reader lets it
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def _refuse_quoted_strings(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)


def _log_ahead(connection: apsw.Connection) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise StoreUnusable(f"the file system of the database takes no write-ahead log ({mode}); use a local disk")


def _bound_the_log(connection: apsw.Connection) -> None:
    connection.pragma("journal_size_limit", _JOURNAL_BYTES)
