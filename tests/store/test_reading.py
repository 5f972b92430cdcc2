"""Reading: cursors (B1), order (O1), one snapshot, one range scan."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import apsw
import pytest
import trio
from attrs import define

from kesoku_actors.harness import Fault, Kind, mounted
from kesoku_actors.protocol import Message
from kesoku_actors.store import (
    CloseSession,
    Durability,
    EditMessage,
    Inline,
    Publication,
    StopOutcome,
    StoreBusy,
    StoreDamaged,
    StoreFault,
    StoreOptions,
    StoreUnusable,
    Threaded,
    WipeSession,
    WithdrawMessage,
    open_reader,
    queries,
)
from kesoku_actors.store.rows import message_of
from tests.store.home import ROOM, Home, cut, living, saying, take

T = TypeVar("T")
BOTH = pytest.mark.parametrize("durability", list(Durability))


async def catch_up(home: Home, after: int, page: int) -> tuple[dict[str, Message], list[str], int]:
    """Follow a cursor to its end, as a listener that lags does."""
    found: dict[str, Message] = {}
    removed: list[str] = []
    while True:
        seen = await home.reader.changes(after, page)
        for message in seen.changed:
            assert message.id not in found, "a row came twice"
            assert after < message.rev <= seen.rev
            found[message.id] = message
        removed += [message_id for message_id, _session, _rev in seen.removed]
        if seen.rev == after:
            return found, removed, after
        after = seen.rev


@pytest.mark.parametrize("page", [1, 2, 3, 100])
async def test_b1_a_cursor_meets_each_changed_row_once_in_its_present_state(tmp_path: Path, page: int):
    async with living(tmp_path / "k.db") as home:
        before = await home.say("before")
        after = await home.reader.head()
        key = await home.hire(before.session_id)
        await home.stand(key, claim=take(before))
        gone, kept = await home.say("gone"), await home.say("kept")
        await home.store.edit(EditMessage(message_id=kept.id, content="edited"))
        await home.store.withdraw(WithdrawMessage(message_id=gone.id))
        await home.answer(key, before)
        found, removed, cursor = await catch_up(home, after, page)
        assert removed == [gone.id]
        assert {message.content for message in found.values()} == {"before", "edited", "hi"}
        assert found[before.id] == await home.now(before)
        assert cursor == await home.reader.head()


async def test_b1_publications_together_say_the_same_as_a_cursor(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        other = await home.say("other")
        await home.stand(key, root, insert=(saying("a"), saying("b")), ends=(cut(root),), claim=take(other))
        told: dict[str, Message] = {}
        revs = [0]
        for publication in home.publications:
            order = [message.rev for message in publication.changed]
            assert order == sorted(order)
            assert all(revs[-1] < rev <= publication.rev for rev in order)
            revs.append(publication.rev)
            told |= {message.id: message for message in publication.changed}
        found, _removed, _cursor = await catch_up(home, 0, 100)
        assert found == told


async def test_b1_a_row_wiped_with_its_session_is_not_told_as_changed(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        await home.store.close_session(CloseSession(session_id=message.session_id))
        await home.store.wipe(WipeSession(session_id=message.session_id))
        found, removed, _cursor = await catch_up(home, 0, 10)
        assert (found, removed) == ({}, [message.id])


@BOTH
async def test_everything_answers_for_what_is_unknown(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:
        reader = home.reader
        assert (await reader.history("nowhere")).messages == ()
        assert await reader.message("nobody") is None
        assert await reader.session("nowhere") is None
        assert await reader.waiting("nowhere") == ()
        assert await reader.stops("nowhere") == ()
        assert await reader.stop(5) is None
        assert await reader.stop_outcome(5) == StopOutcome()
        assert await reader.calls("nobody") == ()
        assert await reader.chunks("nobody") == ()
        assert not await reader.is_runnable("nowhere")
        assert await reader.changes(0, 10) == Publication(base=0, rev=0, changed=())


@BOTH
async def test_what_was_answered_is_what_is_read(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:
        key, root = await home.begin("héllo \0 世界")
        reply = await home.answer(key, root)
        history = (await home.reader.history(key.session_id)).messages
        assert history == tuple(sorted(reply.rows, key=lambda row: row.seq))


async def test_a_message_read_back_is_as_good_as_a_new_one(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        read = await home.now(message)
        assert (read, repr(read)) == (message, repr(message))
        assert type(read.status) is type(message.status)


def test_m1_a_row_says_every_field_of_a_message():
    row = ("id", 1, 2, "s", "bot", "room", "x", "Ada", "user", "text", "processed", "hi", None, "id", 1, 5.0, '{"a":1}')
    read = message_of(row)
    message = Message(
        id="id",
        seq=1,
        rev=2,
        session_id="s",
        chatbot_id="bot",
        channel_id="room",
        external_id="x",
        sender="Ada",
        role=read.role,
        type=read.type,
        status=read.status,
        content="hi",
        root_id="id",
        place=1,
        timestamp=5.0,
        metadata={"a": 1},
    )
    assert read == message


PLANS = {
    "a history is one range scan": (queries.history, ("s",), "messages_history (session_no=? AND root_seq>?)"),
    "a turn is found by what is open": (queries.turn, (1,), "messages_open (session_no=?)"),
    "waiting rows are found by what is open": (queries.waiting, (1,), "messages_open (session_no=?)"),
    "work is found by what is open": (queries.runnable, (None, 8), "messages_open"),
    "leaving rows are found by what leaves": (queries.leaving, (ROOM,), "messages_leaving"),
    "changes are found by rev": (queries.changes, (0, 10), "messages_by_rev (rev>?)"),
}


@pytest.mark.parametrize("promise", PLANS)
async def test_reads_do_not_grow_with_what_they_do_not_return(tmp_path: Path, promise: str):
    query, values, wanted = PLANS[promise]
    async with living(tmp_path / "k.db") as home:
        await home.say()

        def plans(connection: apsw.Connection) -> list[str]:
            statements: list[str] = []
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: statements.append(event["sql"]))
            query(connection, *values)
            connection.trace_v2(0)
            return [
                row[3]
                for sql in statements
                for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", _bound(sql)).fetchall()
            ]

        details = await home.options.access.read(plans)
        assert any(wanted in detail for detail in details), details
        assert not any("SCAN m" in detail and "INDEX" not in detail for detail in details), details
        assert not any("TEMP B-TREE" in detail for detail in details) or query in (queries.runnable, queries.turn)


def _bound(sql: str) -> tuple[int, ...]:
    return (0,) * sql.count("?")


async def test_reads_without_an_open_store_are_told_to_try_again(tmp_path: Path):
    options = StoreOptions(path=tmp_path / "k.db", durability=Durability.NORMAL, retry_s=(0.0,))
    with pytest.raises(StoreBusy):
        await open_reader(options).head()


async def test_c6_a_reader_alone_owns_nothing_and_makes_nothing(tmp_path: Path):
    path = tmp_path / "k.db"
    with pytest.raises(StoreUnusable, match="no database to read"):
        await open_reader(StoreOptions(path=path)).head()
    assert not path.exists()
    async with living(path, durability=Durability.FULL) as home:
        message = await home.say()
        alone = open_reader(StoreOptions(path=path))
        assert await alone.message(message.id) == message
        await alone.close()
    alone = open_reader(StoreOptions(path=path))
    assert await alone.message(message.id) == message
    await alone.close()


async def not_read(path: Path, fault: type[StoreFault], match: str) -> None:
    """Look that a reader refuses the database and leaves its folder as it was."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    reader = open_reader(StoreOptions(path=path, retry_s=()))
    with pytest.raises(fault, match=match):
        await reader.head()
    await reader.close()
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


async def test_c6_a_reader_of_a_database_not_made_yet_is_told_to_try_again(tmp_path: Path):
    path = tmp_path / "k.db"
    path.touch()
    await not_read(path, StoreBusy, "being created")
    with closing(apsw.Connection(str(path))) as half_made:
        half_made.pragma("journal_mode", "wal")
    await not_read(path, StoreBusy, "being created")


async def test_c8_a_reader_refuses_what_an_owner_refuses_and_makes_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "k.db"
    async with living(path) as home:
        await home.say()
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    await not_read(path, StoreDamaged, "is not a database")
    path.write_bytes(whole[:20_000])
    await not_read(path, StoreDamaged, "20000 bytes of")
    path.write_bytes(whole[:60] + (99).to_bytes(4, "big") + whole[64:])
    await not_read(path, StoreDamaged, "schema 99")
    path.unlink()
    with closing(apsw.Connection(str(path))) as foreign:
        foreign.pragma("journal_mode", "wal")
        foreign.execute("CREATE TABLE theirs (a)")
    await not_read(path, StoreDamaged, "of another program")


async def test_c6_a_reader_beside_a_stray_journal_tells_who_puts_it_in_order(tmp_path: Path):
    path = tmp_path / "k.db"
    async with living(path) as home:
        message = await home.say()
    path.with_name("k.db-journal").write_bytes(b"xx")
    await not_read(path, StoreBusy, "half written")
    async with living(path) as home:
        assert await home.reader.message(message.id) == message


async def test_c6_a_reader_of_a_read_only_disk_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a folder?%20" / "k.db"
    path.parent.mkdir()
    async with living(path) as home:
        message = await home.say()
    before = sorted(path.parent.iterdir())
    # Root may write everywhere: what it is told of the folder stands for a disk that is mounted read-only.
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    reader = open_reader(StoreOptions(path=path))
    assert await reader.message(message.id) == message
    assert sorted(path.parent.iterdir()) == before
    await reader.close()


@define(eq=False)
class Failing(Inline):
    """An access whose next reads fail."""

    failures: int = 0

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        if self.failures:
            self.failures -= 1
            raise StoreBusy("not now")
        return await super().read(query)


async def test_c9_a_read_that_fails_is_tried_again_and_told_when_it_goes_on_failing(tmp_path: Path):
    access, pauses = Failing(), list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with living(tmp_path / "k.db", access=access, retry_s=(0.1, 0.2), sleep=sleep) as home:
        await home.say()
        access.failures = 2
        assert await home.reader.head() == 1
        assert pauses == [0.1, 0.2]
        access.failures = 3
        with pytest.raises(StoreBusy):
            await home.reader.head()


async def test_c9_a_disk_that_fails_when_a_reader_opens_the_file_is_no_damage(tmp_path: Path):
    path = tmp_path / "k.db"
    async with living(path) as home:
        await home.say()
    with mounted("reader") as disk:

        def connect(where: Path, flags: int) -> apsw.Connection:
            return apsw.Connection(str(where), flags=flags, vfs=disk.name)

        options = StoreOptions(path=path, access=Threaded(path=path, connect=connect), retry_s=())
        disk.script = lambda operation: Fault.ERROR if operation.kind is Kind.READ else None
        with pytest.raises(StoreBusy, match="the disk fails"):
            await open_reader(options).head()
        await options.access.close()


@BOTH
async def test_every_read_lets_the_other_tasks_run(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:
        with trio.testing.assert_checkpoints():
            await home.reader.head()


async def test_closing_waits_for_a_query_and_closes_its_connection_too(tmp_path: Path):
    may_end, used, closed = threading.Event(), [], []

    def slowly(connection: apsw.Connection) -> None:
        used.append(connection)
        assert may_end.wait(timeout=30)

    async def close(home: Home) -> None:
        await home.reader.close()
        with pytest.raises(apsw.ConnectionClosedError):
            used[0].execute("SELECT 1")
        closed.append(True)

    async with living(tmp_path / "k.db", durability=Durability.FULL) as home:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(home.options.access.read, slowly)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(close, home)
            await trio.testing.wait_all_tasks_blocked()
            assert closed == []
            may_end.set()
        assert closed
        await home.say("still open")
        assert await home.reader.head() > 0
