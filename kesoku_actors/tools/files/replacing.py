"""A file replaced as a whole, or not at all.

The new content is written beside the old one, is on the disk before it takes its name, and takes it in one step:
whoever reads, whenever the power fails, meets the old file or the new one. The mode stays, and the owner where we may
keep it. A file that is not any more what was read is not replaced.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from kesoku_actors.files.descent import Spot
from kesoku_actors.files.places import Place, Refused

NEW_MODE: Final = 0o600
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_root(place: Place) -> None:
    """Raise `Refused` where files may only be read."""
    if not place.root.is_writable:
        raise Refused(f"{place.shown} lies in {place.root.path}, which may only be read")


def check_writable(spot: Spot) -> None:
    """Raise `Refused` when the file itself may only be read."""
    if spot.status is not None and not spot.status.st_mode & 0o222:
        raise Refused(f"{spot.place.shown} may only be read: its mode is {stat.S_IMODE(spot.status.st_mode):04o}")


def replace(spot: Spot, content: bytes, token: str) -> None:
    """Put `content` at `spot`; `token` makes the name beside it unique. Raises `Refused` and leaves nothing behind."""
    beside = f".{token}.part"
    try:
        with suppress(FileNotFoundError):  # left there when the machine failed
            os.unlink(beside, dir_fd=spot.folder)
        file = os.open(beside, _NEW, NEW_MODE, dir_fd=spot.folder)
        try:
            with os.fdopen(file, "wb") as stream:
                _keep_rights(file, spot.status)
                stream.write(content)
                stream.flush()
                os.fsync(file)
            _check_unchanged(spot)
            os.rename(beside, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=spot.folder)
            raise
        os.fsync(spot.folder)
    except OSError as problem:
        raise Refused(f"{spot.place.shown} was not written: {os.strerror(problem.errno or 0)}") from problem


def _keep_rights(file: int, status: os.stat_result | None) -> None:
    if status is not None:
        with suppress(PermissionError):
            os.fchown(file, status.st_uid, status.st_gid)
        os.fchmod(file, status.st_mode & 0o777)


def _check_unchanged(spot: Spot) -> None:
    try:
        now = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _mark(now) != _mark(spot.status):
        raise Refused(f"{spot.place.shown} was changed by somebody else meanwhile; read it again")


def _mark(status: os.stat_result | None) -> tuple[int, ...] | None:
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
