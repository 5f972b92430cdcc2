"""Goal 32: what a power cut at every operation of the disk costs, by SQLite's mode of journal and of syncs.

    scripts/python -m scripts.bench.sweep [--rows N] [--seeds N] [--survival NAME]

Rows are inserted, each in a transaction of its own, on a disk that loses power at one change; then the database is
recovered from what survives, by default any part of what was not synced, torn at sectors. That is done for each change
there is, under each seed. A row is lost when its commit had returned and it is gone; a database is unsound when SQLite
says so. Exits with 1 when a mode loses what it promises to keep. A rollback journal with NORMAL promises nothing: its
pages and its header are synced at once, and the checksum of a page looks at few of its bytes, so that one that is torn
may be taken for whole and brings an older row back.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw
from attrs import frozen

from kesoku_actors.harness import (
    EVERYTHING,
    NOTHING,
    PREFIX,
    SUBSET,
    Disk,
    Fault,
    Kind,
    Operation,
    PowerLost,
    Script,
    Survival,
    mounted,
    no_fault,
    power_loss_at,
)
from scripts.bench.folders import folder
from scripts.bench.report import Row
from scripts.counts import count

SURVIVALS: Final[dict[str, Survival]] = {
    "subset": SUBSET,
    "prefix": PREFIX,
    "nothing": NOTHING,
    "everything": EVERYTHING,
}
ROWS: Final = 12
SEEDS: Final = 3


@frozen(kw_only=True)
class Mode:
    """How a database is kept."""

    name: str
    journal: str
    synchronous: str
    script: Script = no_fault
    """What the disk does wrong besides."""
    keeps_rows: bool
    """Whether it promises that what was committed is there after a power cut."""
    stays_sound: bool


def _lies(operation: Operation) -> Fault | None:
    return Fault.LIE if operation.kind is Kind.SYNC else None


MODES: Final = (
    Mode(name="rollback FULL", journal="delete", synchronous="FULL", keeps_rows=True, stays_sound=True),
    Mode(name="rollback NORMAL", journal="delete", synchronous="NORMAL", keeps_rows=False, stays_sound=False),
    Mode(name="rollback OFF", journal="delete", synchronous="OFF", keeps_rows=False, stays_sound=False),
    Mode(
        name="rollback FULL, syncs that lie",
        journal="delete",
        synchronous="FULL",
        script=_lies,
        keeps_rows=False,
        stays_sound=False,
    ),
    Mode(name="WAL FULL", journal="wal", synchronous="FULL", keeps_rows=True, stays_sound=True),
    Mode(name="WAL NORMAL", journal="wal", synchronous="NORMAL", keeps_rows=False, stays_sound=True),
    Mode(name="WAL OFF", journal="wal", synchronous="OFF", keeps_rows=False, stays_sound=False),
)


@frozen(kw_only=True)
class Swept:
    """What came of all power cuts in one mode."""

    mode: Mode
    cuts: int
    losing: int
    """After so many of them a row was lost whose commit had returned."""
    unsound: int
    """After so many the database was not sound."""

    @property
    def holds(self) -> bool:
        """Whether the mode keeps what it promises."""
        return not (self.mode.keeps_rows and self.losing) and not (self.mode.stays_sound and self.unsound)

    def __str__(self) -> str:
        verdict = "as promised" if self.holds else "BROKEN"
        return f"{self.mode.name:<32}{self.cuts:>8,}{self.losing:>10,}{self.unsound:>10,}  {verdict}"


HEADER: Final = f"{'mode':<32}{'cuts':>8}{'losing':>10}{'unsound':>10}"


def insert(disk: Disk, path: Path, mode: Mode, rows: int) -> list[int]:
    """Insert rows as long as there is power; return those whose commit returned."""
    committed: list[int] = []
    try:
        connection = disk.connect(path)
    except apsw.Error:
        return committed
    try:
        connection.pragma("journal_mode", mode.journal)
        connection.pragma("synchronous", mode.synchronous)
        connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text)")
        for number in range(rows):
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 300))
            committed.append(number)
        connection.close()
    except apsw.Error:
        if not disk.is_dead:
            raise
        with suppress(PowerLost):
            connection.close(force=True)
    return committed


def left(path: Path) -> list[int] | None:
    """Recover, and return the rows that are there; none when the database is not sound."""
    connection = apsw.Connection(str(path))
    try:
        if connection.pragma("integrity_check") != "ok":
            return None
        if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            return []
        return [number for (number,) in connection.execute("SELECT id FROM t ORDER BY id")]
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
        return None
    finally:
        connection.close()


def swept(mode: Mode, *, rows: int = ROWS, seeds: Sequence[int] = range(SEEDS), survival: Survival = SUBSET) -> Swept:
    """Cut the power at each change in turn, under each seed."""
    cuts = losing = unsound = 0
    with folder() as place:
        with mounted("sweep, whole", script=mode.script) as disk:
            insert(disk, place / "whole.db", mode, rows)
            changes = disk.changes
        for seed in seeds:
            for number in range(1, changes + 1):
                path = place / f"{seed}-{number}.db"
                cut = power_loss_at(number)

                def script(operation: Operation, cut: Script = cut) -> Fault | None:
                    return cut(operation) or mode.script(operation)

                with mounted(f"sweep {seed} {number}", script=script) as disk:
                    committed = insert(disk, path, mode, rows)
                    disk.power_on(random.Random(f"{mode.name} {seed} {number}"), survival)
                found = left(path)
                cuts += 1
                unsound += found is None
                losing += found is not None and not set(committed) <= set(found)
                for file in place.glob(f"{path.name}*"):
                    file.unlink()
    return Swept(mode=mode, cuts=cuts, losing=losing, unsound=unsound)


def long_rows() -> list[Row]:
    """Sweep the modes that promise to keep every row."""
    found = [swept(mode) for mode in MODES if mode.keeps_rows]
    return [
        Row(
            goal=32,
            name=f"{one.mode.name}: losses at {one.cuts:,} power cuts",
            ratio=one.losing + one.unsound,
            limit=0,
            spread=0,
        )
        for one in found
    ]


def main() -> int:
    """Sweep, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=count, default=ROWS)
    parser.add_argument("--seeds", type=count, default=SEEDS)
    parser.add_argument("--survival", choices=SURVIVALS, default="subset", help="what survives of what was not synced")
    asked = parser.parse_args()
    print(HEADER)
    holds = True
    for mode in MODES:
        one = swept(mode, rows=asked.rows, seeds=range(asked.seeds), survival=SURVIVALS[asked.survival])
        holds = holds and one.holds
        print(one, flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
