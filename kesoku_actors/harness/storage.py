"""The disk of a world: `disk.py` in a folder of its own, with faults that the schedule decides about."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Final

import apsw
from attrs import define, field

from kesoku_actors.harness.disk import CHANGES, Disk, Fault, Kind, Operation, PowerLost, mounted
from kesoku_actors.harness.image import SUBSET, Survival

_NAMES: Final = count(1)
"""SQLite wants another name for each disk of a process."""


def _concerns(fault: Fault, operation: Operation) -> bool:
    """Tell whether a fault makes a difference to an operation."""
    match fault:
        case Fault.FULL:
            return operation.grows
        case Fault.BUSY:
            return operation.kind is Kind.LOCK
        case Fault.LIE:
            return operation.kind is Kind.SYNC
        case Fault.ERROR | Fault.POWER:
            return operation.kind in CHANGES


@define(eq=False)
class Storage:
    """A disk on which SQLite keeps databases, one connection at a time."""

    asks: Callable[[str, float], bool]
    """The world's `fault`."""
    rng: random.Random
    on_power_loss: Callable[[], None]
    rates: dict[Fault, float] = field(factory=dict)
    cut_at: int | None = None
    """The power goes at the change with this number, counted from the last restart; none: it does not."""
    folder: Path = field(factory=lambda: Path(tempfile.mkdtemp(prefix="kesoku-world-")), init=False)
    _mount: ExitStack = field(factory=ExitStack, init=False)
    _disk: Disk = field(init=False)
    _connections: list[apsw.Connection] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        name = f"kesoku world {os.getpid()} {next(_NAMES)}"
        self._disk = self._mount.enter_context(mounted(name, script=self._script, on_power_loss=self.on_power_loss))

    @property
    def changes(self) -> int:
        """How many changes were asked for since the power came on."""
        return self._disk.changes

    @property
    def is_dead(self) -> bool:
        """Whether the power is off."""
        return self._disk.is_dead

    def path(self, name: str) -> Path:
        """Return where a file of this disk is."""
        return self.folder / name

    def connect(self, name: str) -> apsw.Connection:
        """Open a database. Raises `apsw.Error`, as the faults have it."""
        connection = self._disk.connect(self.path(name))
        self._connections.append(connection)
        return connection

    def fails(self, *faults: Fault, rate: float = 0.05) -> None:
        """Let operations fail in these ways from now on, each `rate` of the times it makes a difference.

        They are faults of the world, named `disk full`, `disk busy`, `disk error`, `disk lie`, `disk power`.
        """
        self.rates.update(dict.fromkeys(faults, rate))

    def heal(self) -> None:
        """Let nothing fail from now on."""
        self.rates.clear()
        self.cut_at = None

    def die(self) -> None:
        """Let nothing reach the disk any more."""
        self._disk.is_dead = True

    def power_on(self, survival: Survival = SUBSET) -> None:
        """Close what was open, and make the files what survived."""
        self._close_all()
        self._disk.power_on(self.rng, survival)
        self.cut_at = None

    def unmount(self) -> None:
        """Forget everything."""
        self._close_all()
        self._mount.close()
        shutil.rmtree(self.folder)

    def _close_all(self) -> None:
        """Close what is open, on a dead disk: it writes nothing any more."""
        self.die()
        for connection in self._connections:
            with suppress(PowerLost):
                connection.close(force=True)
        self._connections.clear()

    def _script(self, operation: Operation) -> Fault | None:
        if operation.kind in CHANGES and operation.number == self.cut_at:
            return Fault.POWER
        for fault, rate in self.rates.items():
            if _concerns(fault, operation) and self.asks(f"disk {fault.value}", rate):
                return fault
        return None
