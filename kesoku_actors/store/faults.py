"""SQLite's errors as ours: what may pass by itself, what is damage, what is a path that cannot be used (C8, C9)."""

from __future__ import annotations

import errno
import os
from typing import Final

import apsw

from kesoku_actors.store.port import StoreBusy, StoreDamaged, StoreUnusable

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

_SHORT_OF: Final = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "raise the limit (ulimit -f)",
    errno.EMFILE: "raise the limit (ulimit -n)",
    errno.ENFILE: "end other programs",
}
"""What the machine is short of, and what helps; another day it would not fail."""


def cannot_open(path: object, error: OSError, which: str = "") -> StoreBusy | StoreUnusable:
    """Return why the database cannot be opened; `which` names the file beside it that is meant."""
    text = f"the database {path} cannot be opened: {error.strerror}{f' ({which})' if which else ''}"
    remedy = _SHORT_OF.get(error.errno or 0)
    return StoreUnusable(text) if remedy is None else StoreBusy(f"{text}; {remedy}, then try again")


def busy(error: apsw.Error) -> StoreBusy:
    """Return a passing error as the fault an asker gets."""
    remedy = _REMEDIES.get(type(error), "the disk fails; check it")
    if isinstance(error, apsw.CantOpenError) and _are_descriptors_used_up():
        remedy = "too many files are open; raise the limit (ulimit -n)"
    return StoreBusy(f"the store did not take it ({error}): {remedy}, then try again")


def damaged(path: object, detail: object) -> StoreDamaged:
    """Return the fault of a database that is not sound, in one line."""
    detail = " ".join(str(detail).split())
    return StoreDamaged(f"the database {path} is damaged ({detail}); it was left untouched: restore a backup of it")


def waiting(error: apsw.Error) -> str:
    """Return what people are told while everything waits for a passing error to pass."""
    if isinstance(error, apsw.FullError):
        return "the disk is full, waiting for space"
    return f"the store cannot be written ({error}), waiting for it"


def _are_descriptors_used_up() -> bool:
    """SQLite does not say why it could not open a file, so another one is tried."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
