"""A disk that loses power, fills up and fails when a script says so: a VFS of SQLite in front of the real files.

    with mounted("example", script=power_loss_at(17)) as disk:
        connection = disk.connect(path)             # an ordinary apsw connection
        try:
            ...                                     # every commit that returned is durable, or should be
        except apsw.Error:                          # the 17th change did not happen, and nothing works any more
            connection.close(force=True)
        disk.power_on(random.Random(seed), SUBSET)  # the files are now one of the images the disk may hold
    apsw.Connection(str(path))                      # recovers from it

Every change asked of the disk (write, truncation, sync, removal) has a number, from 1. The script sees each operation
before it is carried out and may answer with a fault. The real files always hold what a running program reads; what is
durable is kept in memory and becomes the files again in `power_on`. Nothing is really synced, which makes it quick.

Limits: one connection at a time, in exclusive locking mode, because the index that SQLite shares between connections
to a write-ahead log is memory that no VFS sees. For the same reason `BUSY` can only be given when the file is locked as
a whole. Names in a folder (made, removed) become durable as SQLite asks for it: with the first sync of a journal that
was made, and with a removal that is to be durable; a sync of a file covers its own name. Not safe for use by several
threads at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final

import apsw
from attrs import define, field, frozen

from kesoku_actors.harness.image import SECTOR_BYTES, Block, Cut, Piece, Removal, Survival, applied, changed, torn


class Kind(Enum):
    """What is asked of the disk."""

    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    REMOVE = "remove"
    LOCK = "lock"


class Fault(Enum):
    """How the disk fails."""

    POWER = "power"
    """The operation does not happen, nor any after it, until `power_on`."""
    FULL = "full"
    """There is no room: only what makes a file grow fails."""
    ERROR = "error"
    """The operation fails and nothing of it is done."""
    BUSY = "busy"
    """Another program holds the lock: only `LOCK` fails."""
    LIE = "lie"
    """A sync says that it is done, and nothing is durable: only `SYNC` is concerned."""


CHANGES: Final = frozenset({Kind.WRITE, Kind.TRUNCATE, Kind.SYNC, Kind.REMOVE})


_JOURNALS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL


class PowerLost(apsw.IOError):
    """The power is off."""


@frozen(kw_only=True)
class Operation:
    """One thing asked of the disk."""

    number: int
    """How many changes were asked for so far, this one included."""
    kind: Kind
    file: str
    """The file's name without its folder."""
    grows: bool = False
    """Whether the file is longer afterwards."""


Script = Callable[[Operation], Fault | None]


def no_fault(_operation: Operation) -> Fault | None:
    """A disk that works."""
    return None


def power_loss_at(number: int) -> Script:
    """Return the script in which the power goes at a change."""
    return lambda operation: Fault.POWER if operation.kind in CHANGES and operation.number == number else None


def full(operation: Operation) -> Fault | None:
    """A disk without room."""
    return Fault.FULL if operation.grows else None


@define(eq=False)
class _Kept:
    """One file: what is durable of it, and what was done to it since."""

    durable: bytearray | None
    """Changed in place, as a database is far bigger than what one commit writes. None: there is no such file."""
    pieces: list[Piece] = field(factory=list)


@define(eq=False)
class Disk:
    """A mounted disk. `script` may be replaced at any time."""

    name: str
    script: Script = no_fault
    sector_bytes: int = SECTOR_BYTES
    on_power_loss: Callable[[], None] = lambda: None
    """Called once when the power goes, before the operation fails; a simulation ends its program here."""
    changes: int = field(default=0, init=False)
    """Changes asked for since the power came on."""
    is_dead: bool = field(default=False, init=False)
    _files: dict[Path, _Kept] = field(factory=dict, init=False)

    def connect(self, path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) -> apsw.Connection:
        """Open a database on this disk, for one connection alone. Raises `apsw.Error` as the script has it."""
        connection = apsw.Connection(str(path), flags=flags, vfs=self.name)
        try:
            connection.pragma("locking_mode", "exclusive")
        except apsw.Error:
            connection.close(force=True)
            raise
        return connection

    def power_on(self, rng: random.Random, survival: Survival) -> None:
        """Make the files what the disk holds: everything durable, and of the rest what survives.

        Every connection must be closed. Also for a disk whose power never went: then it went just now.
        """
        for path in sorted(self._files):
            kept = self._files[path]
            pieces = tuple(torn(kept.pieces, self.sector_bytes))
            image = applied(kept.durable, (pieces[number] for number in survival(rng, len(pieces))))
            if image is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(image)
        self._files.clear()
        self.changes, self.is_dead = 0, False

    # What follows is for the VFS of this module.

    def _ask(self, kind: Kind, path: Path, *, grows: bool = False) -> Fault | None:
        """Raise what the script says, if it says so; return a fault that nobody notices."""
        if self.is_dead:
            raise PowerLost("the power is off")
        self.changes += kind in CHANGES
        fault = self.script(Operation(number=self.changes, kind=kind, file=path.name, grows=grows))
        match fault:
            case None | Fault.LIE:
                return fault
            case Fault.POWER:
                self.is_dead = True
                self.on_power_loss()
                raise PowerLost("the power went")
            case Fault.FULL:
                if grows:
                    raise apsw.FullError("the disk is full")
            case Fault.ERROR:
                raise apsw.IOError("the disk failed")
            case Fault.BUSY:
                if kind is Kind.LOCK:
                    raise apsw.BusyError("another program holds the lock")
        return None

    def _known(self, path: Path) -> None:
        """Take note of a file before the first change of it in this life; what is there already is durable."""
        if path not in self._files:
            self._files[path] = _Kept(bytearray(path.read_bytes()) if path.exists() else None)

    def _done(self, path: Path, piece: Piece) -> None:
        """Note what was done to a file, or may have been."""
        self._files[path].pieces.append(piece)

    def _synced(self, path: Path) -> None:
        """Make durable what was done to a file that is there, its name included."""
        kept = self._files[path]
        durable = changed(kept.durable, kept.pieces)
        kept.durable, kept.pieces = bytearray() if durable is None else durable, []

    def _names_synced(self, folder: Path) -> None:
        """Make durable which files of a folder there are, not what is in them."""
        for path, kept in self._files.items():
            if path.parent != folder:
                continue
            removals = [number for number, piece in enumerate(kept.pieces) if isinstance(piece, Removal)]
            if removals:
                kept.durable = None
                del kept.pieces[: removals[-1] + 1]
            if kept.durable is None and path.exists():
                kept.durable = bytearray()


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, path: Path, name: apsw.URIFilename | str, flags: list[int]) -> None:
        self._disk, self._path = disk, path
        self._is_new_journal = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _JOURNALS)
        disk._known(path)
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk._ask(Kind.READ, self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        block = Block(offset, bytes(data))
        self._change(Kind.WRITE, block, grows=offset + len(data) > self.xFileSize())
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._change(Kind.TRUNCATE, Cut(newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._disk._ask(Kind.SYNC, self._path) is Fault.LIE:
            return
        self._disk._synced(self._path)
        if self._is_new_journal:
            self._is_new_journal = False
            self._disk._names_synced(self._path.parent)

    def xLock(self, level: int) -> None:
        self._disk._ask(Kind.LOCK, self._path)
        super().xLock(level)

    def _change(self, kind: Kind, piece: Piece, *, grows: bool = False) -> None:
        """A change during which the power goes may have reached the disk in part; one that failed has not."""
        try:
            self._disk._ask(kind, self._path, grows=grows)
        except PowerLost:
            self._disk._done(self._path, piece)
            raise
        self._disk._done(self._path, piece)


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile("", name, flags)
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        return _File(self._disk, Path(text), name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        path = Path(filename)
        self._disk._known(path)
        self._disk._ask(Kind.REMOVE, path)
        super().xDelete(filename, False)
        self._disk._done(path, Removal())
        if syncdir:
            self._disk._names_synced(path.parent)


@contextmanager
def mounted(
    name: str,
    *,
    script: Script = no_fault,
    sector_bytes: int = SECTOR_BYTES,
    on_power_loss: Callable[[], None] = lambda: None,
) -> Iterator[Disk]:
    """Mount a disk: register its VFS under `name`, which no other one of the process bears, while the block runs."""
    disk = Disk(name, script=script, sector_bytes=sector_bytes, on_power_loss=on_power_loss)
    vfs = _Vfs(disk)
    try:
        yield disk
    finally:
        vfs.unregister()
