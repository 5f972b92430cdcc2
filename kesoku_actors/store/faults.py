"""SQLite's errors as ours: what may pass by itself, what is damage, what is a path that cannot be used (C8, C9)."""

from __future__ import annotations

from typing import Final

import apsw

from kesoku_actors.store.port import StoreBusy, StoreDamaged

PASSING: Final = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.ProtocolError,
    apsw.NoMemError,
)
"""Worth another try: nothing of the transaction was kept."""

DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)

_REMEDIES: Final = {
    apsw.BusyError: "another program holds its lock; end it",
    apsw.LockedError: "another program holds its lock; end it",
    apsw.FullError: "the disk is full; make room",
    apsw.ReadOnlyError: "it cannot be written to; check the disk and the permissions",
}


def busy(error: apsw.Error) -> StoreBusy:
    """Return a passing error as the fault an asker gets."""
    remedy = _REMEDIES.get(type(error), "the disk fails; check it")
    return StoreBusy(f"the store did not take it ({error}): {remedy}, then try again")


def damaged(path: object, detail: object) -> StoreDamaged:
    """Return the fault of a database that is not sound, in one line."""
    detail = " ".join(str(detail).split())
    return StoreDamaged(f"the database {path} is damaged ({detail}); it was left untouched: restore a backup of it")
