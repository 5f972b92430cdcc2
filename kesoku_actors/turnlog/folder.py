"""The files of a turn log in one session's folder: finding the next index, writing, keeping only the newest.

Tools may write in that folder, so nothing in it is trusted: a file is made new and never opened again for writing, a
link is not followed, names with impossible numbers are passed over, and only files of our name are ever deleted. The
folder itself is never made here: one that is gone belongs to a session that is gone.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from kesoku_actors.values import frozen

NAME: Final = re.compile(r"llm-turn-([0-9]{1,20})\.log\.yaml\Z")
HIGHEST: Final = 999_999
"""A number above it was not written by us in any life."""
_TRIES: Final = 64
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER: Final = 1 << 16


@frozen(kw_only=True)
class LogFile:
    """A file of the log."""

    idx: int
    size: int
    name: str


@frozen(kw_only=True)
class Survey:
    """What is there."""

    last: int
    """The highest index of a file that is present, 0 without one."""
    files: tuple[LogFile, ...]
    """By index."""
    strange: int
    """Files with our name and a number that cannot be ours."""


def file_name(idx: int) -> str:
    """Return the name of the file with this index."""
    return f"llm-turn-{idx}.log.yaml"


def survey(folder: Path) -> Survey:
    """Look at the log files of a folder. Raises `OSError`."""
    files: list[LogFile] = []
    last = strange = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            found = NAME.match(entry.name)
            if found is None:
                continue
            idx = int(found[1])
            if idx > HIGHEST:
                strange += 1
                continue
            last = max(last, idx)
            with suppress(OSError):  # it went away meanwhile
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(about.st_mode) and entry.name == file_name(idx):
                    files.append(LogFile(idx=idx, size=about.st_size, name=entry.name))
    return Survey(last=last, files=tuple(sorted(files, key=lambda file: file.idx)), strange=strange)


def write_new(folder: Path, idx: int, write: Callable[[TextIO, int], None]) -> LogFile:
    """Let `write` fill a new file of mode 0600 with this index, or the next one that is free. Raises `OSError`.

    A file that cannot be written whole is taken away again.
    """
    with _opened(folder) as at:
        for number in range(idx, idx + _TRIES):
            name = file_name(number)
            try:
                descriptor = os.open(name, _NEW, 0o600, dir_fd=at)
            except FileExistsError:
                continue
            try:
                with open(descriptor, "w", encoding="utf-8", newline="\n", buffering=_BUFFER) as file:
                    write(file, number)
                    file.flush()
                    size = os.fstat(descriptor).st_size
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=at)
                raise
            return LogFile(idx=number, size=size, name=name)
    raise FileExistsError(f"{file_name(idx)} and the {_TRIES - 1} after it exist already")


def delete(folder: Path, files: Iterator[LogFile]) -> None:
    """Delete files of the log; one that cannot be deleted stays. Raises `OSError` when the folder cannot be opened."""
    with _opened(folder) as at:
        for file in files:
            with suppress(OSError):
                os.unlink(file.name, dir_fd=at)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
