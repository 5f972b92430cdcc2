"""The twins, in the order of the table: what samples easily, what time or cancellation decides, and what is hard."""

from __future__ import annotations

from typing import Final

from scripts.bench.rival_programs import actors, ports, threads
from scripts.bench.rival_programs.twin import Twin

TWINS: Final[tuple[type[Twin], ...]] = (
    actors.SnapshotThenSubscribe,
    actors.TwoDoors,
    actors.StaleCache,
    actors.Overdrawn,
    actors.ReplacedEvent,
    actors.StolenWakeup,
    actors.CrossedMailboxes,
    actors.HalfTransfer,
    actors.LeaseRanOut,
    ports.Bluetooth,
    ports.Deadlock01,
    ports.Reorder10,
    ports.Wronglock3,
    ports.Philosophers31,
    actors.CompactionUnderOldLease,
    actors.BothCopiesTorn,
)
THREADED: Final[tuple[type[threads.Threaded], ...]] = (
    threads.TwoDoors,
    threads.Overdrawn,
    threads.StolenWakeup,
    threads.Bluetooth,
    threads.Deadlock01,
    threads.Reorder10,
    threads.Wronglock3,
)


def twin_of(name: str) -> type[Twin]:
    """Return the twin of a program of the zoo."""
    [twin] = [twin for twin in TWINS if name == twin.ZOO]
    return twin
