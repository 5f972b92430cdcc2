"""A disk that fails when a test says so: a VFS of SQLite in front of the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from attrs import define, field


@define(eq=False)
class Disk:
    """Every write and sync raises `failure` while it is set."""

    name: str
    failure: Callable[[], Exception] | None = None
    failures: int = field(default=0, init=False)

    def check(self) -> None:
        if self.failure is not None:
            self.failures += 1
            raise self.failure()

    def connect(self, path: Path, flags: int) -> apsw.Connection:
        """Open the database on this disk: the seam of the store."""
        return apsw.Connection(str(path), flags=flags, vfs=self.name)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.check()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.disk.check()
        super().xSync(flags)


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self.disk, name, flags)


@contextmanager
def failing_disk(name: str) -> Iterator[Disk]:
    """Register a disk under a name no other test uses."""
    disk = Disk(name)
    vfs = _Vfs(disk)
    try:
        yield disk
    finally:
        vfs.unregister()
