"""The disk under SQLite: what was synced survives, what was not may, and faults come where the script says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.harness import (
    CHANGES,
    EVERYTHING,
    NOTHING,
    SURVIVALS,
    Disk,
    Fault,
    Kind,
    Operation,
    PowerLost,
    Survival,
    full,
    mounted,
    no_fault,
    power_loss_at,
)

FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE
writes = st.tuples(st.just("write"), st.integers(0, 2000), st.binary(min_size=1, max_size=1200))
cuts = st.tuples(st.just("cut"), st.integers(0, 2000), st.just(b""))
syncs = st.tuples(st.just("sync"), st.just(0), st.just(b""))
ROWS = 12


def play(file: apsw.VFSFile, actions: Sequence[tuple[str, int, bytes]]) -> tuple[bytes, bytes, set[int]]:
    """Return what a program reads afterwards, what it read at the last sync, and the bytes touched since."""
    seen, synced, touched = bytearray(), b"", set[int]()
    for action, at, data in actions:
        if action == "write":
            file.xWrite(data, at)
            seen.extend(bytes(max(0, at - len(seen))))
            seen[at : at + len(data)] = data
            touched |= set(range(at, at + len(data)))
        elif action == "cut" and at <= len(seen):
            file.xTruncate(at)
            touched |= set(range(at, 4000))
            del seen[at:]
        elif action == "sync":
            file.xSync(apsw.SQLITE_SYNC_NORMAL)
            synced = bytes(seen)
            touched.clear()
    return bytes(seen), synced, touched


@given(st.lists(writes | cuts | syncs, max_size=12), st.integers(0, 999), st.sampled_from(SURVIVALS))
def test_what_was_synced_survives_and_what_was_not_may(actions, seed, survival):
    with TemporaryDirectory() as folder, mounted("laws") as disk:
        path = Path(folder) / "file"
        file = apsw.VFSFile(disk.name, str(path), [FLAGS, 0])
        seen, synced, touched = play(file, actions)
        assert not seen or file.xRead(len(seen), 0) == seen
        file.xClose()
        disk.power_on(random.Random(seed), survival)
        left = path.read_bytes() if path.exists() else b""
        assert all(left[at] == byte for at, byte in enumerate(synced) if at not in touched)
        if survival is NOTHING:
            assert left == synced
        if survival is EVERYTHING:
            assert left == seen


def insert_rows(disk: Disk, path: Path, *, log: bool, synchronous: str) -> list[int]:
    """Insert rows, each in a transaction of its own, as long as there is power; return those that were committed."""
    committed: list[int] = []
    try:
        connection = disk.connect(path)
    except apsw.Error:
        return committed
    try:
        connection.pragma("journal_mode", "wal" if log else "delete")
        connection.pragma("synchronous", synchronous)
        connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text)")
        for number in range(ROWS):
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 300))
            committed.append(number)
    except apsw.Error:
        assert disk.is_dead
    try:
        connection.close()
    except PowerLost:
        assert disk.is_dead
    return committed


def rows_left(path: Path) -> list[int]:
    """Recover with SQLite's own VFS; raise `apsw.CorruptError` unless the database is sound."""
    connection = apsw.Connection(str(path))
    try:
        if connection.pragma("integrity_check") != "ok":
            raise apsw.CorruptError("integrity")
        if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            return []
        return [number for (number,) in connection.execute("SELECT id FROM t ORDER BY id")]
    finally:
        connection.close()


def cut_at_every_change(folder: Path, *, log: bool, synchronous: str, survival: Survival) -> int:
    """Return how many power cuts lost a committed row. Raises `apsw.Error` when one left a database unsound."""
    with mounted("whole") as disk:
        assert insert_rows(disk, folder / "whole.db", log=log, synchronous=synchronous) == list(range(ROWS))
        changes = disk.changes
    losses = 0
    for number in range(1, changes + 1):
        path = folder / f"{number}.db"
        with mounted(f"cut at {number}", script=power_loss_at(number)) as disk:
            committed = insert_rows(disk, path, log=log, synchronous=synchronous)
            disk.power_on(random.Random(number), survival)
        found = rows_left(path)
        assert found == list(range(len(found))), "what is there is there in order"
        losses += not set(committed) <= set(found)
    return losses


@pytest.mark.parametrize("survival", SURVIVALS)
@pytest.mark.parametrize("log", [True, False], ids=["wal", "journal"])
def test_a_database_with_full_syncs_loses_nothing_committed_at_any_change(
    tmp_path: Path, log: bool, survival: Survival
):
    assert cut_at_every_change(tmp_path, log=log, synchronous="FULL", survival=survival) == 0


def test_a_log_that_is_not_synced_at_commit_loses_what_was_committed(tmp_path: Path):
    assert cut_at_every_change(tmp_path, log=True, synchronous="NORMAL", survival=NOTHING) > 10


def test_the_death_of_the_process_alone_loses_nothing(tmp_path: Path):
    assert cut_at_every_change(tmp_path, log=True, synchronous="OFF", survival=EVERYTHING) == 0


def test_after_the_power_went_nothing_is_changed_and_nothing_is_read(tmp_path: Path):
    asked: list[Operation] = []

    def script(operation: Operation) -> Fault | None:
        asked.append(operation)
        return power_loss_at(20)(operation)

    lost: list[bool] = []
    with mounted("dead", script=script, on_power_loss=lambda: lost.append(True)) as disk:
        insert_rows(disk, tmp_path / "k.db", log=True, synchronous="FULL")
        assert asked[-1].number == 20
        assert lost == [True]
        with pytest.raises(PowerLost):
            disk.connect(tmp_path / "k.db").close()
        assert asked[-1].number == 20
        disk.power_on(random.Random(0), NOTHING)
        assert not disk.is_dead


def test_every_change_has_a_number_and_reads_have_none_of_their_own(tmp_path: Path):
    asked: list[Operation] = []
    with mounted("counted", script=lambda operation: asked.append(operation)) as disk:
        insert_rows(disk, tmp_path / "k.db", log=True, synchronous="FULL")
        numbers = [operation.number for operation in asked if operation.kind in CHANGES]
        assert numbers == list(range(1, disk.changes + 1))
    assert {operation.file for operation in asked} == {"k.db", "k.db-wal", "k.db-journal"}
    assert {operation.kind for operation in asked} == set(Kind)


def test_a_full_disk_refuses_what_grows_and_takes_the_rest(tmp_path: Path):
    with mounted("full") as disk:
        connection = disk.connect(tmp_path / "k.db")
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.pragma("journal_mode", "memory")
        disk.script = full
        connection.execute("UPDATE t SET n = 2")
        with pytest.raises(apsw.FullError):
            connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
        disk.script = no_fault
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
        assert connection.execute("SELECT count(*), min(n) FROM t").get == (2, 2)
        connection.close()


@pytest.mark.parametrize(
    ("kind", "fault", "error"),
    [
        (Kind.WRITE, Fault.ERROR, apsw.IOError),
        (Kind.SYNC, Fault.ERROR, apsw.IOError),
        (Kind.READ, Fault.ERROR, apsw.IOError),
        (Kind.LOCK, Fault.BUSY, apsw.BusyError),
    ],
)
def test_a_fault_comes_where_the_script_says_and_leaves_what_was_committed(
    tmp_path: Path, kind: Kind, fault: Fault, error: type[apsw.Error]
):
    path = tmp_path / "k.db"
    with mounted("scripted") as disk:
        insert_rows(disk, path, log=False, synchronous="FULL")
        disk.script = lambda operation: fault if operation.kind is kind else None
        with pytest.raises(error):
            insert_more(disk, path)
        disk.script = no_fault
        disk.power_on(random.Random(0), NOTHING)
    assert rows_left(path) == list(range(ROWS))


def insert_more(disk: Disk, path: Path) -> None:
    connection = apsw.Connection(str(path), vfs=disk.name)
    try:
        connection.execute("INSERT INTO t VALUES (100, '')")
    finally:
        connection.close(force=True)
