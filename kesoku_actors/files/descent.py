"""The way down from a root to a file, folder by folder (T3).

Invariants: no link is followed, also not one that is put in the way meanwhile, as each name is opened in the folder
that is open already; what is opened is a regular file on a real disk, and is looked at before it is opened, so that no
pipe or device is touched. Only the root itself is opened by its path: it is configured, not asked for.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from kesoku_actors.files.places import Place, Refused
from kesoku_actors.values import frozen

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LISTED: Final = 2_000
_NAMED_KINDS: Final = (
    (stat.S_ISLNK, "is a link, and links are not followed"),
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe, not a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a device, not a file"),
    (stat.S_ISBLK, "is a device, not a file"),
)


@frozen(kw_only=True)
class Spot:
    """A name in an open folder, and what is there."""

    place: Place
    folder: int
    """The folder's descriptor."""
    name: str
    status: os.stat_result | None
    """Of the regular file there; none when there is nothing."""

    def open(self) -> int:
        """Open the file for reading. Raises `Refused` when there is none, or what is there is no plain file by now."""
        if self.status is None:
            raise Refused(f"there is no file {self.place.shown}{_nearest(self.folder, self.name)}")
        with _told(self.place):
            file = os.open(self.name, _FILE, dir_fd=self.folder)
        try:
            _check(self.place, self.name, os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file


@contextmanager
def descended(place: Place, *, make_folders: bool = False) -> Iterator[Spot]:
    """Open the folder of `place` and look at what is there. Raises `Refused`."""
    if not place.parts:
        raise Refused(f"{place.shown} is a folder; name a file in it")
    *folders, name = place.parts
    with _told(place):
        folder = os.open(place.root.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for each in folders:
            inner = _step(place, folder, each, make_folders)
            os.close(folder)
            folder = inner
        with _told(place):
            status = _status(folder, name)
        if status is not None:
            _check(place, name, status)
        yield Spot(place=place, folder=folder, name=name, status=status)
    finally:
        os.close(folder)


def _step(place: Place, folder: int, name: str, make_folders: bool) -> int:
    with _told(place):
        status = _status(folder, name)
        if status is None and not make_folders:
            raise Refused(f"there is no folder {name!r} on the way to {place.shown}{_nearest(folder, name)}")
        if status is not None and not stat.S_ISDIR(status.st_mode):
            what = "is a link, and links are not followed" if stat.S_ISLNK(status.st_mode) else "is not a folder"
            raise Refused(f"{place.shown}: {name!r} {what}")
        if status is None:
            with suppress(FileExistsError):  # somebody else made it meanwhile
                os.mkdir(name, 0o700, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _check(place: Place, name: str, status: os.stat_result) -> None:
    for is_kind, what in _NAMED_KINDS:
        if is_kind(status.st_mode):
            raise Refused(f"{place.shown} {what}" + ("; name a file in it" if stat.S_ISDIR(status.st_mode) else ""))
    if status.st_dev in _unreal_disks():
        raise Refused(f"{place.shown} is no file on a disk, but made by the system as it is read")


def _unreal_disks() -> set[int]:
    disks = set()
    for mount in ("/proc", "/sys"):
        with suppress(OSError):
            disks.add(os.stat(mount).st_dev)
    return disks - {os.stat("/").st_dev}  # not mounted: then they are folders like any other


def _nearest(folder: int, name: str) -> str:
    """Return a hint at a name like this one in the folder."""
    names: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) == _LISTED:
                break
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Tell of what the system refuses as of a refusal."""
    try:
        yield
    except OSError as problem:
        reason = os.strerror(problem.errno or 0)
        raise Refused(f"{place.shown}: {reason[:1].lower()}{reason[1:]}") from problem
