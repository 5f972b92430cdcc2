"""Who owns a store: one process, told by a locked file beside the database (C6).

The lock belongs to the open file, so the kernel releases it however the process ends; the file itself stays, because
removing it would let two processes lock two files of one name.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kesoku_actors.store.port import StoreInUse, StoreUnusable

_COMMAND_CHARS: Final = 120


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own the store at `path` inside. Raises `StoreInUse` naming the owner, or `StoreUnusable`."""
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreUnusable(
            f"the database {path} cannot be opened: {error.strerror} (its lock, {lock.name})"
        ) from error
    with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _, command = file.read().partition("\n")
            owner = f"process {pid} ({command.strip()})" if pid else "another process"
            raise StoreInUse(f"the database {path} is in use by {owner}; end it or name another `db_path`") from None
        except OSError as error:
            raise StoreUnusable(
                f"the database {path} cannot be opened: {error.strerror} (its lock, {lock.name})"
            ) from error
        file.truncate()
        file.write(f"{os.getpid()}\n{_command()}\n")
        file.flush()
        try:
            yield
        finally:
            file.seek(0)
            file.truncate()


def _command() -> str:
    """How this process was called, as one line that is not too long: a prompt may be part of it."""
    return " ".join(" ".join(sys.argv).split())[:_COMMAND_CHARS]
