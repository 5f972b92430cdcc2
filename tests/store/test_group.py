"""The actor: group commit, answers, retries (C1, C9), with both executors."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, get_args

import apsw
import pytest
import trio
from attrs import define, field

from kesoku_actors.actors import ActorStopped, SystemFailed
from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import InvalidMessage
from kesoku_actors.store import (
    Command,
    Durability,
    Inline,
    Publication,
    RequestStop,
    ResultMode,
    StoreBusy,
    StoreDamaged,
    Threaded,
)
from kesoku_actors.store.access import Access
from kesoku_actors.store.engine import HANDLERS
from tests.store.disks import Disk, failing_disk
from tests.store.home import Home, done, living, take

T = TypeVar("T")
BOTH = pytest.mark.parametrize("durability", list(Durability))


def access_to(path: Path, durability: Durability, disk: Disk) -> Access:
    if durability is Durability.FULL:
        return Threaded(path=path, connect=disk.connect)
    return Inline(connect=disk.connect)


@define(eq=False)
class Gate:
    """Holds the store's thread at a named point until it is opened."""

    point: str
    reached: trio.Event = field(factory=trio.Event)
    token: trio.lowlevel.TrioToken = field(factory=trio.lowlevel.current_trio_token)
    open: threading.Event = field(factory=threading.Event)

    def probe(self, point: str) -> None:
        if point == self.point:
            self.token.run_sync_soon(self.reached.set)
            assert self.open.wait(timeout=30)


def test_every_command_of_the_port_has_its_handler():
    assert set(HANDLERS) == set(get_args(Command))


async def together(count: int, ask: Callable[[int], Awaitable[object]]) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(ask, number)


@BOTH
async def test_what_is_asked_at_once_is_committed_together(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:
        await together(100, lambda number: home.say(f"{number}", external_id=f"x{number}"))
        told = [message.content for publication in home.publications for message in publication.changed]
        assert sorted(told, key=int) == [str(number) for number in range(100)]
        assert len(home.publications) < 20
        found = await home.reader.changes(0, 1000)
        assert len(found.changed) == 100


@BOTH
async def test_b1_what_changed_is_published_before_it_is_answered(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:

        async def ask(_number: int) -> None:
            message = await home.say()
            assert any(message in publication.changed for publication in home.publications)

        await together(30, ask)


@BOTH
async def test_one_that_is_refused_leaves_the_rest_of_its_group_alone(tmp_path: Path, durability: Durability):
    async with living(tmp_path / "k.db", durability=durability) as home:
        refused = 0

        async def ask(number: int) -> None:
            nonlocal refused
            if number % 3:
                await home.say(f"{number}")
                return
            with pytest.raises((InvalidMessage, NotFound)):
                await (home.say("\ud800") if number % 2 else home.store.stop(RequestStop(session_id="nowhere")))
            refused += 1

        await together(30, ask)
        assert refused == 10
        assert len((await home.reader.changes(0, 100)).changed) == 20


async def test_c1_a_message_is_accepted_after_the_commit_and_not_before(tmp_path: Path):
    gate = Gate("store.before_commit")
    answered: list[str] = []

    async def ask(home: Home) -> None:
        answered.append((await home.say()).id)

    async with (
        living(tmp_path / "k.db", durability=Durability.FULL, probe=gate.probe) as home,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(ask, home)
        await gate.reached.wait()
        assert answered == []
        assert (await home.reader.changes(0, 10)).changed == ()
        gate.open.set()
    assert len(answered) == 1


async def test_the_points_of_a_group_name_the_kind_of_command_and_what_a_commit_carries(tmp_path: Path):
    passed: list[str] = []
    async with living(tmp_path / "k.db", probe=passed.append) as home:

        async def kind_of(ask: Awaitable[T]) -> tuple[str, T]:
            passed.clear()
            reply = await ask
            _, kind = passed[1].split("/")
            points = ("store.before_commit", "store.after_commit")
            assert passed == [name for point in points for name in (point, f"{point}/{kind}")]
            return kind, reply

        kind, root = await kind_of(home.say())
        assert kind == "Post"
        key = await home.hire(root.session_id)
        assert (await kind_of(home.stand(key, claim=take(root))))[0] == "Commit(claim)"
        assert (await kind_of(home.call(key, root, "look")))[0] == "Commit(step insert)"
        kind, _ = await kind_of(home.stand(key, root, results=ResultMode.SETTLE, ends=(done(root),)))
        assert kind == "Commit(results ends)"


async def test_an_asker_that_left_does_not_undo_what_was_begun(tmp_path: Path):
    gate = Gate("store.before_commit")
    async with living(tmp_path / "k.db", durability=Durability.FULL, probe=gate.probe) as home:

        async def leave(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
            with trio.CancelScope() as scope:
                task_status.started(scope)
                await home.say("from one who left")

        async with trio.open_nursery() as nursery:
            scope = await nursery.start(leave)
            await gate.reached.wait()
            scope.cancel()
            gate.open.set()
        await home.say("from one who stayed")
        contents = [message.content for message in (await home.reader.changes(0, 10)).changed]
        assert contents == ["from one who left", "from one who stayed"]


async def test_a_store_that_is_stopped_in_a_commit_still_answers_it(tmp_path: Path):
    gate = Gate("store.before_commit")
    answers: list[object] = []
    async with living(tmp_path / "k.db", durability=Durability.FULL, probe=gate.probe) as home:

        async def ask(content: str) -> None:
            try:
                answers.append((await home.say(content)).content)
            except ActorStopped as stopped:
                answers.append(type(stopped))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "in hand")
            await gate.reached.wait()
            nursery.start_soon(ask, "queued")
            await trio.testing.wait_all_tasks_blocked()
            home.system.request_stop()
            gate.open.set()
    assert answers == ["in hand", ActorStopped]
    async with living(tmp_path / "k.db", seed=1) as home:
        assert [message.content for message in (await home.reader.changes(0, 10)).changed] == ["in hand"]


@BOTH
async def test_a_crash_answers_its_letters_keeps_nothing_of_them_and_restarts(tmp_path: Path, durability: Durability):
    crashes = ["store.before_commit"]

    def probe(point: str) -> None:
        if point in crashes:
            crashes.remove(point)
            raise RuntimeError("a bug")

    async with living(tmp_path / "k.db", durability=durability, probe=probe, intensity=1) as home:
        with pytest.raises(ActorStopped):
            await home.say("lost")
        await home.say("kept")
        assert [message.content for message in (await home.reader.changes(0, 10)).changed] == ["kept"]


@define
class Pauses:
    """Takes the place of sleeping: notes each pause, and calls back."""

    then: Callable[[int], None] = field(default=lambda _count: None)
    taken: list[float] = field(factory=list)

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.then(len(self.taken))
        await trio.lowlevel.checkpoint()


@BOTH
async def test_c9_a_lock_of_another_program_is_waited_for(tmp_path: Path, durability: Durability):
    pauses = Pauses()
    async with living(tmp_path / "k.db", durability=durability, sleep=pauses.sleep) as home:
        other = apsw.Connection(str(tmp_path / "k.db"))
        other.execute("BEGIN IMMEDIATE")
        pauses.then = lambda count: other.execute("ROLLBACK") and None if count == 3 else None
        assert (await home.say("patient")).content == "patient"
        assert len(pauses.taken) == 3
        other.close()


@BOTH
async def test_c9_a_lock_held_too_long_is_a_typed_reply_and_no_crash(tmp_path: Path, durability: Durability):
    pauses = Pauses()
    async with living(tmp_path / "k.db", durability=durability, sleep=pauses.sleep, retry_s=(0.1, 0.2)) as home:
        other = apsw.Connection(str(tmp_path / "k.db"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another program holds its lock"):
            await home.say("lost")
        assert [0.05 <= pauses.taken[0] <= 0.15, 0.1 <= pauses.taken[1] <= 0.3] == [True, True]
        assert len(pauses.taken) == 2
        other.close()
        await home.say("kept")
        assert [message.content for message in (await home.reader.changes(0, 10)).changed] == ["kept"]


@BOTH
async def test_c9_a_full_disk_is_a_typed_reply_and_no_crash(tmp_path: Path, durability: Durability):
    path, connections = tmp_path / "k.db", []

    def connect(where: Path, flags: int) -> apsw.Connection:
        connections.append(apsw.Connection(str(where), flags=flags))
        return connections[-1]

    access = Threaded(path=path, connect=connect) if durability is Durability.FULL else Inline(connect=connect)
    pauses = Pauses()
    async with living(path, durability=durability, access=access, sleep=pauses.sleep, retry_s=(0.1,)) as home:
        await home.say("before")
        pages = connections[0].pragma("page_count")
        connections[0].pragma("max_page_count", pages + 2)
        with pytest.raises(StoreBusy, match="disk is full"):
            await home.say("x" * 100_000)
        await home.say("small")
        connections[0].pragma("max_page_count", pages + 1000)
        await home.say("x" * 100_000)
        lengths = [len(message.content) for message in (await home.reader.changes(0, 10)).changed]
        assert lengths == [6, 5, 100_000]


@BOTH
async def test_c9_a_failing_disk_loses_nothing_that_was_accepted(tmp_path: Path, durability: Durability):
    path = tmp_path / "k.db"
    with failing_disk(f"failing-{durability}") as disk:
        pauses = Pauses()
        options = {"access": access_to(path, durability, disk), "sleep": pauses.sleep, "retry_s": (0.1, 0.1)}
        async with living(path, durability=durability, **options) as home:
            await home.say("before")
            disk.failure = apsw.IOError
            with pytest.raises(StoreBusy, match="the disk fails"):
                await home.say("lost")
            pauses.then = lambda _count: setattr(disk, "failure", None)
            await home.say("after")
            assert disk.failures >= 4
            contents = [message.content for message in (await home.reader.changes(0, 10)).changed]
            assert contents == ["before", "after"]
        async with living(path, seed=1) as home:
            assert len((await home.reader.changes(0, 10)).changed) == 2


@BOTH
async def test_c8_damage_met_later_is_told_and_ends_the_store(tmp_path: Path, durability: Durability):
    path = tmp_path / "k.db"
    refused: list[StoreDamaged] = []

    async def meet_damage(disk: Disk) -> None:
        async with living(path, durability=durability, access=access_to(path, durability, disk)) as home:
            await home.say("before")
            disk.failure = apsw.CorruptError
            try:
                await home.say("lost")
            except StoreDamaged as error:
                refused.append(error)
            await trio.sleep_forever()

    with failing_disk(f"damaged-{durability}") as disk:
        with pytest.raises(SystemFailed) as failed:
            await meet_damage(disk)
        written = disk.failures
    assert [error.exit_code for error in refused] == [65]
    assert any(isinstance(leaf, StoreDamaged) for leaf in failed.value.leaves)
    assert written == 1, "nothing was written after the damage was met"


async def test_c8_a_store_that_cannot_be_closed_in_order_says_so(tmp_path: Path):
    path, warnings = tmp_path / "k.db", []
    with failing_disk("unclosable") as disk:
        access = access_to(path, Durability.NORMAL, disk)
        async with living(path, access=access, warn=warnings.append) as home:
            await home.say()
            disk.failure = apsw.FullError
        disk.failure = None
    assert len(warnings) == 1
    assert "could not be closed in order" in warnings[0]


async def test_a_publisher_hears_of_nothing_when_nothing_changed(tmp_path: Path):
    heard: list[Publication] = []
    async with living(tmp_path / "k.db", publish=heard.append) as home:
        message = await home.say(external_id="x1")
        await home.say(external_id="x1")
        await home.hire(message.session_id)
        assert [publication.changed for publication in heard] == [(), (message,)], "the first says that it lives"


@BOTH
async def test_b1_a_start_tells_where_it_starts_and_each_publication_where_the_last_ended(
    tmp_path: Path, durability: Durability
):
    heard: list[Publication] = []
    for seed in range(2):
        async with living(tmp_path / "k.db", durability=durability, publish=heard.append, seed=seed) as home:
            await home.say()
            await home.say()
    told = [(publication.base, publication.rev) for publication in heard]
    assert told == [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3), (3, 4)]


async def test_b1_what_a_crash_kept_from_being_told_shows_at_the_next_start(tmp_path: Path):
    crashes = ["store.after_commit"]
    heard: list[Publication] = []

    def probe(point: str) -> None:
        if point in crashes:
            crashes.remove(point)
            raise RuntimeError("a bug")

    async with living(tmp_path / "k.db", probe=probe, publish=heard.append, intensity=1) as home:
        with pytest.raises(ActorStopped):
            await home.say("committed and not told")
        await home.say("next")
        assert [(publication.base, publication.rev) for publication in heard] == [(0, 0), (1, 1), (1, 2)]
