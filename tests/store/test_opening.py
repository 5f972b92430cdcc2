"""Opening and closing: one owner (C6), damage left untouched (C8), modes of files (T6)."""

from __future__ import annotations

import os
import random
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest
import trio

from kesoku_actors.actors import SystemFailed
from kesoku_actors.harness import CHANGES, SUBSET, Disk, Fault, Operation, mounted, no_fault, power_loss_at
from kesoku_actors.store import Durability, StoreBusy, StoreDamaged, StoreInUse, StoreUnusable
from kesoku_actors.store.access import connect_plainly
from kesoku_actors.store.opening import OpenedStore, check_sqlite, open_store
from kesoku_actors.store.reading import open_for_reading
from kesoku_actors.store.schema import MIGRATIONS, SCHEMA
from tests.store.home import living


@contextmanager
def opening(path: Path, warnings: list[str] | None = None) -> Iterator[OpenedStore]:
    told = [] if warnings is None else warnings
    with open_store(path, durability=Durability.NORMAL, connect=connect_plainly, now=5.0, warn=told.append) as opened:
        yield opened


def ended_in_order(path: Path) -> None:
    with opening(path) as opened:
        opened.end_in_order()


def crashed(path: Path) -> Path:
    """Leave at another path what a dead owner leaves: the database and its log."""
    left = path.with_name("crashed.db")
    with opening(path) as opened:
        opened.connection.execute("UPDATE meta SET value = 7 WHERE name = 'epoch'")
        for name in (path.name, path.name + "-wal"):
            left.with_name(left.name + name.removeprefix(path.name)).write_bytes(path.with_name(name).read_bytes())
    return left


def spoil(path: Path) -> None:
    """Leave a database that was not closed in order and has a page of nonsense."""
    with opening(path) as opened:
        opened.connection.execute("BEGIN")
        for number in range(2000):
            opened.connection.execute("INSERT INTO refused VALUES (?, 1)", (f"{number:08}",))
        opened.connection.execute("COMMIT")
        opened.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    spoilt = bytearray(path.read_bytes())
    spoilt[-4096:] = b"\xff" * 4096
    path.write_bytes(spoilt)


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but what SQLite shares between processes, and the lock."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(("-shm", ".lock"))}


def refused_untouched(path: Path, match: str) -> None:
    before = bytes_of(path.parent)
    with pytest.raises(StoreDamaged, match=match) as refused, opening(path):
        pass
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert bytes_of(path.parent) == before


@pytest.mark.parametrize("version", ["3.51.2", "3.9.99", "2.99.99"])
def test_a_sqlite_that_may_lose_data_is_refused(version: str):
    with pytest.raises(StoreUnusable, match=rf"SQLite {version} is too old, 3\.51\.3 is needed"):
        check_sqlite(version)
    check_sqlite("3.51.3")
    check_sqlite("3.100.0")


def test_t6_what_we_make_is_for_us_alone(tmp_path: Path):
    path = tmp_path / "new" / "folder" / "k.db"
    with opening(path):
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert set(modes) == {"k.db", "k.db-wal", "k.db-shm", "k.db.lock"}
        assert set(modes.values()) == {0o600}
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:2]] == [0o700, 0o700]


def test_the_ledger_names_the_migrations_carried_out_once(tmp_path: Path):
    path = tmp_path / "k.db"
    ended_in_order(path)
    with opening(path) as opened:
        ledger = opened.connection.execute("SELECT number, name, applied FROM migrations").fetchall()
        assert ledger == [(number, name, 5.0) for number, name in enumerate(MIGRATIONS, 1)]
        assert opened.connection.pragma("user_version") == SCHEMA


@pytest.mark.parametrize(("durability", "synchronous"), [(Durability.NORMAL, 1), (Durability.FULL, 2)])
def test_c1_durability_decides_whether_a_commit_waits_for_the_disk(
    tmp_path: Path, durability: Durability, synchronous: int
):
    with open_store(tmp_path / "k.db", durability=durability, connect=connect_plainly, now=0.0, warn=print) as opened:
        assert opened.connection.pragma("synchronous") == synchronous
        assert opened.connection.pragma("journal_mode") == "wal"


def test_a_statement_is_planned_once_whatever_is_bound_to_it(tmp_path: Path):
    with opening(tmp_path / "k.db") as opened:
        reader = open_for_reading(tmp_path / "k.db", connect_plainly)
        for connection in (opened.connection, reader):
            assert connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
        reader.close()


def test_c6_a_second_owner_is_told_who_the_first_is(tmp_path: Path):
    path = tmp_path / "k.db"
    with opening(path):
        before = bytes_of(tmp_path)
        with pytest.raises(StoreInUse, match=rf"process {os.getpid()} \(.*pytest") as refused, opening(path):
            pass
        assert refused.value.exit_code == 75
        assert bytes_of(tmp_path) == before
    ended_in_order(path)


def test_c6_another_name_of_the_same_file_is_the_same_store(tmp_path: Path):
    path, link = tmp_path / "k.db", tmp_path / "link.db"
    link.symlink_to(path)
    with opening(path), pytest.raises(StoreInUse), opening(link):
        pass


def test_a_path_that_is_no_file_is_refused_in_one_line(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("x")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, Path(os.devnull), tmp_path / "pipe", file / "k.db"):
        with pytest.raises(StoreUnusable, match=str(path)) as refused, opening(path):
            pass
        assert "\n" not in str(refused.value)
        assert refused.value.exit_code == 73


def test_a_lock_that_is_no_file_is_refused_in_one_line(tmp_path: Path):
    os.mkfifo(tmp_path / "k.db.lock")
    with pytest.raises(StoreUnusable, match=r"its lock, k\.db\.lock, is not a file"), opening(tmp_path / "k.db"):
        pass
    assert not (tmp_path / "k.db").exists()


def test_a_lock_that_cannot_be_written_is_told_in_one_line(tmp_path: Path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(StoreBusy, match=r"File too large \(its lock, k\.db\.lock\).*try again"):
            ended_in_order(tmp_path / "k.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_too_many_open_files_are_named(tmp_path: Path):
    ended_in_order(tmp_path / "k.db")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = os.open(tmp_path, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, before[1]))
    os.close(used)
    told = list[str]()
    try:
        for spare in range(8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, before[1]))
            try:
                with opening(tmp_path / "k.db"):
                    break
            except StoreBusy as error:
                told.append(str(error))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(told) > 2
    assert all("ulimit -n" in text for text in told)


def test_c8_what_is_not_a_database_is_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    path.write_bytes(b"Dear diary, " * 1000)
    refused_untouched(path, "not a database")
    path.write_bytes(b"short")
    refused_untouched(path, "not a database")


def test_c8_a_database_of_another_program_is_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    refused_untouched(path, "another program")
    other = apsw.Connection(str(path))
    other.pragma("user_version", 1)
    other.close()
    refused_untouched(path, "another program")


def test_c8_a_newer_database_is_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    ended_in_order(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", SCHEMA + 1)
    newer.close()
    refused_untouched(path, "newer than this program")


def test_c8_a_newer_database_whose_log_alone_says_so_is_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    ended_in_order(path)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", SCHEMA + 1)
    left = path.with_name("left.db")
    for suffix in ("", "-wal"):
        left.with_name(left.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    newer.close()
    refused_untouched(left, "newer than this program")


def test_c8_a_truncated_database_is_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    ended_in_order(path)
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 4096, 100):
        path.write_bytes(whole[:length])
        refused_untouched(path, "damaged")


def test_c8_an_empty_file_beside_a_log_is_left_untouched(tmp_path: Path):
    left = crashed(tmp_path / "k.db")
    left.write_bytes(b"")
    refused_untouched(left, "empty beside a write-ahead log")


def test_c8_an_empty_file_is_a_new_database(tmp_path: Path):
    path = tmp_path / "k.db"
    path.touch()
    ended_in_order(path)
    assert path.stat().st_size > 0


def test_c8_pages_spoilt_before_an_unclean_end_are_found_and_left_untouched(tmp_path: Path):
    path = tmp_path / "k.db"
    spoil(path)
    refused_untouched(path, "damaged")


async def test_c8_a_large_database_is_checked_beside_its_work(tmp_path: Path):
    path = tmp_path / "k.db"
    spoil(path)

    async def work() -> None:
        async with living(path, check_at_once_bytes=0):
            await trio.sleep_forever()

    with pytest.raises(SystemFailed) as failed:
        await work()
    assert any(isinstance(leaf, StoreDamaged) for leaf in failed.value.leaves)


async def test_c8_a_check_beside_the_work_does_not_hold_up_the_end(tmp_path: Path):
    path = tmp_path / "k.db"
    with opening(path):
        pass
    async with living(path, check_at_once_bytes=0) as home:
        await home.say()
    with opening(path) as opened:
        assert not opened.was_unclean


def test_c8_a_counter_behind_its_rows_is_refused(tmp_path: Path):
    path = tmp_path / "k.db"
    with opening(path) as opened:
        values = "9, 9, 1, NULL, NULL, 'i', NULL, 'Ada', 'user', 'text', 'error', '', NULL, NULL, 0.0, '{}'"
        opened.connection.execute(f"INSERT INTO messages VALUES ({values})")
        opened.end_in_order()
        opened.connection.execute("UPDATE meta SET value = 0 WHERE name = 'counter'")
    refused_untouched(path, "counter 0 is behind")


def test_c8_an_unclean_end_is_noticed_and_an_orderly_one_is_not(tmp_path: Path):
    path = tmp_path / "k.db"
    with opening(path) as opened:
        assert not opened.was_unclean
    with opening(path) as opened:
        assert opened.was_unclean
        opened.end_in_order()
    with opening(path) as opened:
        assert not opened.was_unclean


def test_c8_a_log_that_is_gone_after_an_unclean_end_is_told(tmp_path: Path):
    left = crashed(tmp_path / "k.db")
    warnings: list[str] = []
    with opening(left, warnings):
        pass
    with opening(left, warnings):
        pass
    assert warnings == [], "the log stays when the store is not closed in order"
    left.with_name(left.name + "-wal").unlink()
    with opening(left, warnings):
        pass
    assert len(warnings) == 1
    assert "newest messages may be missing" in warnings[0]


def test_an_orderly_end_leaves_one_file(tmp_path: Path):
    ended_in_order(tmp_path / "k.db")
    assert {file.name for file in tmp_path.iterdir()} == {"k.db", "k.db.lock"}


def make(path: Path, disk: Disk) -> None:
    connect = disk.connect
    with open_store(path, durability=Durability.FULL, connect=connect, now=0.0, warn=lambda _text: None) as opened:
        opened.end_in_order()


def test_c8_a_power_loss_while_the_database_is_made_leaves_one_that_opens(tmp_path: Path):
    with mounted("making") as disk:
        make(tmp_path / "whole.db", disk)
        changes = disk.changes
    assert changes > 20
    for number in range(1, changes + 1):
        folder = tmp_path / f"cut-{number}"
        folder.mkdir()
        with mounted(folder.name, script=power_loss_at(number)) as disk:
            with pytest.raises((StoreBusy, apsw.IOError)):
                make(folder / "k.db", disk)
            disk.power_on(random.Random(number), SUBSET)
            disk.script = no_fault
            make(folder / "k.db", disk)


def test_c9_a_disk_that_fails_while_the_database_is_made_is_no_damage(tmp_path: Path):
    for number in range(1, 1_000):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        failed: list[Operation] = []

        def fail(operation: Operation, number: int = number, failed: list[Operation] = failed) -> Fault | None:
            if operation.number != number or operation.kind not in CHANGES:
                return None
            failed.append(operation)
            return Fault.ERROR

        with mounted(f"failing {number}", script=fail) as disk:
            with suppress(StoreBusy, apsw.IOError):
                make(folder / "k.db", disk)
            if not failed:
                break
            disk.script = no_fault
            make(folder / "k.db", disk)
    assert number > 50
