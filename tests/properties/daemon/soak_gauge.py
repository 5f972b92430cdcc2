"""What a soak measures at the end of each day, and the bounds that hold over the days. Pure but for `read_gauge`."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw
from attrs import field, frozen

from kesoku_actors.harness import disk, image

BOUND: Final = 1.05
"""The last day over the second one; the first day fills caches."""
BOUNDED: Final = ("resident_mib", "traced_mib", "tasks", "descriptors")
MIB: Final = 1024 * 1024


@frozen(kw_only=True)
class Gauge:
    """The program at the end of one day, when nobody waits for anything."""

    day: int
    resident_mib: float
    """Of the process, without the disk."""
    traced_mib: float
    """Held by Python objects, without the disk."""
    tasks: int
    """Without processes that live on, which are tasks in here."""
    descriptors: int
    workers: int
    rows: Mapping[str, int] = field(factory=dict)
    """By table."""
    store_mib: float
    lives: int
    """Begun so far."""
    said: int
    """Messages of people on this day."""
    asked: int
    """Inferences of this day."""
    failed: int
    """Of those."""
    steps: int
    """Of tasks, on this day."""
    seconds: float
    """Real ones, for this day."""


@frozen
class Missed:
    """A bound that does not hold."""

    what: str
    first: float
    last: float

    def __str__(self) -> str:
        return f"{self.what}: {self.first:g} after the second day, {self.last:g} after the last ({self.ratio:.3f}x)"

    @property
    def ratio(self) -> float:
        """Return how many times as much it is."""
        return self.last / self.first if self.first else math.inf


def missed(gauges: Sequence[Gauge]) -> Iterator[Missed]:
    """Yield what has grown from the second day to the last one by more than `BOUND`; nothing of fewer than three."""
    if len(gauges) < 3:
        return
    second, last = gauges[1], gauges[-1]
    for what in BOUNDED:
        one = Missed(what, getattr(second, what), getattr(last, what))
        if one.last > BOUND * one.first:
            yield one


def read_memory() -> tuple[float, float]:
    """Return what the process holds, MiB: resident, and in Python objects as far as they are traced.

    What is free already is given back to the system before, where the C library can do that. The simulated disk, which
    keeps the content of its files in memory, is in neither.
    """
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE") / MIB
    if not tracemalloc.is_tracing():
        return resident, 0.0
    traces = tracemalloc.take_snapshot()
    on_disk = traces.filter_traces([tracemalloc.Filter(True, source) for source in (disk.__file__, image.__file__)])
    disk_mib = sum(trace.size for trace in on_disk.traces) / MIB
    return resident - disk_mib, sum(trace.size for trace in traces.traces) / MIB - disk_mib


def count_descriptors() -> int:
    """Return how many descriptors are open."""
    return len(os.listdir("/proc/self/fd")) - 1  # the listing needs one


def count_rows(connection: apsw.Connection) -> dict[str, int]:
    """Return the number of rows of each table that has some."""
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    counts: dict[str, int] = {}
    for (name,) in connection.execute(names).fetchall():
        [(count,)] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()
        if count:
            counts[str(name)] = int(count)
    return counts


HEAD: Final = (
    f"{'day':>3} {'RSS MiB':>8} {'traced':>7} {'tasks':>5} {'fds':>4} {'workers':>7} {'rows':>6} {'kept':>6}"
    f" {'store MiB':>9} {'lives':>5} {'said':>5} {'asked':>6} {'failed':>6} {'steps':>9} {'seconds':>7}"
)
FOR_EVER: Final = ("removed", "seen", "sessions")
"""Tables whose rows outlive a clear: what was deleted (B1), which events were taken (M5), which sessions there were."""


def line_of(gauge: Gauge) -> str:
    """Return a line of the table. `kept` are the rows that history must hold, `rows` all others."""
    kept = sum(gauge.rows.get(table, 0) for table in FOR_EVER)
    rest = sum(gauge.rows.values()) - kept
    return (
        f"{gauge.day:>3} {gauge.resident_mib:>8.1f} {gauge.traced_mib:>7.2f} {gauge.tasks:>5} {gauge.descriptors:>4}"
        f" {gauge.workers:>7} {rest:>6} {kept:>6} {gauge.store_mib:>9.2f} {gauge.lives:>5} {gauge.said:>5}"
        f" {gauge.asked:>6} {gauge.failed:>6} {gauge.steps:>9} {gauge.seconds:>7.1f}"
    )
