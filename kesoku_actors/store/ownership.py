"""Who owns a store: one process, told by a locked file beside the database (C6).

The lock belongs to the open file, so the kernel releases it however the process ends; the file itself stays, because
removing it would let two processes lock two files of one name.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kesoku_actors.store import faults
from kesoku_actors.store.port import StoreInUse, StoreUnusable

_COMMAND_CHARS: Final = 120
_MOST_BYTES: Final = 1024
"""More than an owner writes into its lock."""


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own the store at `path` inside. Raises `StoreInUse` naming the owner, `StoreUnusable`, or `StoreBusy`."""
    lock = path.with_name(path.name + ".lock")
    with ExitStack() as closing:
        try:
            # Without O_NONBLOCK a pipe of that name would be waited for.
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            closing.callback(os.close, descriptor)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StoreUnusable(f"the database {path} cannot be opened: its lock, {lock.name}, is not a file")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n{_command()}\n".encode(errors="replace"), 0)
        except BlockingIOError:
            pid, _, command = os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace").partition("\n")
            owner = f"process {pid} ({command.strip()})" if pid else "another process"
            raise StoreInUse(f"the database {path} is in use by {owner}; end it or name another `db_path`") from None
        except OSError as error:
            raise faults.cannot_open(path, error, f"its lock, {lock.name}") from error
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)


def _command() -> str:
    """How this process was called, as one line that is not too long: a prompt may be part of it."""
    return " ".join(" ".join(sys.argv).split())[:_COMMAND_CHARS]
