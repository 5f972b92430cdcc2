"""The machine beneath fails (R05, R06, R10) or we do (R18, R20): what the whole daemon makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.actors import SystemFailed
from kesoku_actors.clock import Clock, seeded_world
from kesoku_actors.errors import KesokuError
from kesoku_actors.harness import Disk, Fault, Operation, full, mounted, no_fault
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.scripted import Call, Say, Scenario, ScriptedModel
from kesoku_actors.protocol import Reason, Role, Status, Type
from kesoku_actors.session import Brain
from kesoku_actors.store import Durability, Inline, StoreBusy, StoreOptions, TooEarly
from kesoku_actors.tools import ToolOptions
from tests.draws import drawn
from tests.paths.house import Home, at_home, texts
from tests.paths.process import ROOT, write_config
from tests.paths.story import Outside, judge, rows

WORKING = (Call(name="dig"),)
ANSWER = (Say(text="It is dug."),)


@define
class Spade:
    """A tool that takes a minute; `at_half` is called in the middle of it."""

    at_half: Callable[[], None] = lambda: None
    runs: int = 0

    async def dig(self) -> str:
        """Dig a hole."""
        self.runs += 1
        await trio.sleep(30)
        self.at_half()
        await trio.sleep(30)
        return "a hole"


async def test_r05_a_disk_full_for_a_minute_refuses_what_comes_and_loses_nothing_accepted(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    spade = Spade()
    with mounted("full for a minute") as disk:
        store = StoreOptions(
            path=tmp_path / "kesoku.db", durability=Durability.FULL, access=Inline(connect=disk.connect)
        )
        async with at_home(tmp_path, [WORKING, ANSWER], tools=[spade.dig], store=store) as home:
            digging = await home.say("Dig.")
            await home.until(lambda row: row.type is Type.TOOL_CALL)
            await trio.sleep(10)
            disk.script = full
            with pytest.raises(StoreBusy, match="disk is full; make room"):
                await home.say("Are you there?")
            await trio.sleep(60)  # the tool ends meanwhile, and its outcome waits
            with pytest.raises(StoreBusy, match="disk is full"):
                await home.say("Still nothing?")
            disk.script = no_fault
            assert (await home.ended(digging)).status is Status.PROCESSED
            later = await home.say("There you are.")
            assert (await home.ended(later)).status is Status.PROCESSED
            rows = await home.rows(digging.session_id)
            assert spade.runs == 1
            assert [row.content for row in rows if row.type is Type.TOOL_RESULT] == ["a hole"]
            assert [row.content for row in rows if row.role is Role.USER] == ["Dig.", "There you are."]


@define
class FullOnceOpen(Inline):
    """A disk that is full as soon as the store has been opened."""

    disk: Disk = field(kw_only=True)
    _is_open: bool = field(default=False, init=False)

    async def run(self, call: Callable[[], Any]) -> Any:
        found = call()
        if not self._is_open:
            self._is_open, self.disk.script = True, full
        return found


async def test_r05_a_start_on_a_full_disk_ends_with_the_reason_and_its_remedy(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    with mounted("full at the start") as disk:
        access = FullOnceOpen(connect=disk.connect, disk=disk)
        store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.FULL, access=access)
        with pytest.raises(SystemFailed) as failed:
            async with at_home(tmp_path, [ANSWER], store=store):
                raise AssertionError("it started")
        disk.script = no_fault
    [told] = [leaf for leaf in failed.value.leaves if isinstance(leaf, KesokuError)]
    assert isinstance(told, StoreBusy)
    assert (told.exit_code, "the disk is full; make room" in str(told)) == (75, True)


async def test_r05_a_start_waits_for_a_disk_that_is_full_for_a_moment(tmp_path: Path, autojump_clock: trio.abc.Clock):
    with mounted("full for a moment") as disk:
        access = FullOnceOpen(connect=disk.connect, disk=disk)
        store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.FULL, access=access)

        async def make_room() -> None:
            await trio.sleep(20)
            disk.script = no_fault

        async with trio.open_nursery() as nursery:
            nursery.start_soon(make_room)
            async with at_home(tmp_path, [ANSWER], store=store) as home:
                assert (await home.ended(await home.say("Dig."))).status is Status.PROCESSED


async def test_r06_a_lock_held_for_half_a_minute_holds_neither_the_loop_nor_the_turn_for_good(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    spade, beats = Spade(), 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await trio.sleep(0.1)
            beats += 1

    async with (
        at_home(tmp_path, [WORKING, ANSWER], tools=[spade.dig]) as home,
        trio.open_nursery() as nursery,
    ):
        digging = await home.say("Dig.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(40)
        other = apsw.Connection(str(tmp_path / "kesoku.db"))
        other.execute("BEGIN IMMEDIATE")
        nursery.start_soon(beat)
        begun = trio.current_time()
        with pytest.raises(StoreBusy, match="another program holds its lock"):
            await home.say("Are you there?")
        assert trio.current_time() - begun < 5, "an asker is answered while the lock is held"
        await trio.sleep_until(begun + 30)
        assert beats >= 290, "others go on between the tries"
        assert [row.type for row in await home.rows(digging.session_id)].count(Type.TOOL_RESULT) == 0
        other.execute("ROLLBACK")
        other.close()
        assert (await home.ended(digging)).status is Status.PROCESSED
        assert spade.runs == 1
        nursery.cancel_scope.cancel()


@define
class JumpyClock:
    """A wall clock that somebody sets."""

    ahead_s: float = 0.0

    def clock(self) -> Clock:
        return Clock(wall=lambda: 1_700_000_000 + trio.current_time() + self.ahead_s, monotonic=trio.current_time)


@pytest.mark.parametrize("jump_s", [-3600.0, 86_400.0])
async def test_r10_a_wall_clock_that_jumps_in_a_turn_changes_no_order_no_duration_and_no_deadline(
    tmp_path: Path, autojump_clock: trio.abc.Clock, jump_s: float
):
    time, spade = JumpyClock(), Spade()
    spade.at_half = lambda: setattr(time, "ahead_s", jump_s)
    async with at_home(
        tmp_path,
        [WORKING, ANSWER, (Say(text="Yes."),)],
        tools=[spade.dig],
        world=seeded_world(1, time.clock()),
        tool_options=ToolOptions(deadline_s=100.0),
    ) as home:
        digging = await home.say("Dig.")
        ended = await home.ended(digging)
        assert ended.status is Status.PROCESSED
        await home.ended(await home.say("Are you done?"))
        history = await home.gateway.history(digging.session_id)
        rows = history.messages
        assert [row.content for row in rows if row.role is Role.USER] == ["Dig.", "Are you done?"]
        assert [row.content for row in rows if row.status is Status.PENDING] == ["It is dug.", "Yes."]
        in_time = [row.timestamp for row in sorted(rows, key=lambda row: row.seq)]
        assert in_time == sorted(in_time), "M1: no message is older than the one before it"
        (result,) = [row for row in rows if row.type is Type.TOOL_RESULT]
        assert (result.metadata["outcome"], result.metadata["duration_s"]) == ("ok", 60.0)
        assert all(stored.step.duration_s >= 0 for stored in history.steps)


@pytest.mark.parametrize("jump_s", [-3600.0, 86_400.0])
async def test_r10_a_wall_clock_that_jumps_after_a_stop_puts_force_off_for_a_second_at_most(
    tmp_path: Path, autojump_clock: trio.abc.Clock, jump_s: float
):
    time, spade = JumpyClock(), Spade()
    async with at_home(tmp_path, [WORKING], tools=[spade.dig], world=seeded_world(1, time.clock())) as home:
        digging = await home.say("Dig.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await home.gateway.stop(digging.session_id)
        time.ahead_s = jump_s
        if isinstance(await home.gateway.force(digging.session_id), TooEarly):
            await trio.sleep(1.01)
            assert not isinstance(await home.gateway.force(digging.session_id), TooEarly)
        assert (await home.ended(digging)).metadata["reason"] == Reason.FORCED
        (result,) = [row for row in await home.rows(digging.session_id) if row.type is Type.TOOL_RESULT]
        assert result.metadata["outcome"] == "interrupted"


class Poisoned(ScriptedModel):
    """A provider with a bug that one message meets."""

    crashes = 0

    async def infer(self, request, emit):
        await trio.sleep(1)
        if request.history[-1].content == "Poison.":
            self.crashes += 1
            raise RuntimeError("a bug")
        return await super().infer(request, emit)


async def given_up_and_usable(home: Home) -> None:
    poison = await home.ended(await home.say("Poison."))
    assert (poison.status, poison.metadata["reason"]) == (Status.ERROR, Reason.ATTEMPTS)
    notice = await home.until(lambda row: row.role is Role.SYSTEM and row.status is Status.PENDING)
    assert notice.session_id == poison.session_id
    next_one = await home.ended(await home.say("And now?"))
    assert next_one.status is Status.PROCESSED
    assert texts([row for row in await home.rows(poison.session_id) if row.status is Status.PENDING])[-1] == "Better."


async def test_r18_a_message_on_which_the_model_crashes_is_given_up_after_three_attempts_and_the_session_goes_on(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    model = Poisoned(Scenario(inferences=((Say(text="Better."),),)))
    brain = Brain(provider=model, gate=ProviderGate.of(model))
    async with at_home(tmp_path, brains=(brain,), brain_for=lambda _channel: brain) as home:
        await given_up_and_usable(home)
    assert model.crashes == 3


async def test_r18_when_no_worker_can_be_made_people_are_told_and_the_session_goes_on_when_one_can(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    model = ScriptedModel(Scenario(inferences=((Say(text="Better."),),)))
    brain = Brain(provider=model, gate=ProviderGate.of(model))
    is_broken, tries = True, 0

    def choose(_channel: object) -> Brain:
        nonlocal tries
        tries += 1
        if is_broken:
            raise RuntimeError("a bug")
        return brain

    async with at_home(tmp_path, brains=(brain,), brain_for=choose) as home:
        poison = await home.say("Poison.")
        told = await home.until(lambda row: row.role is Role.SYSTEM and row.status is Status.PENDING)
        assert told.session_id == poison.session_id
        assert 3 <= tries <= 5, "it is not tried for ever"
        is_broken = False
        assert (await home.ended(await home.say("And now?"))).status is Status.PROCESSED
        assert (await home.ended(poison)).metadata["reason"] == Reason.SUPERSEDED


async def test_r20_a_store_that_crashes_again_and_again_ends_the_program(
    tmp_path: Path, autojump_clock: trio.abc.Clock
):
    crashes = 0

    def probe(point: str) -> None:
        nonlocal crashes
        if point == "store.before_commit":
            crashes += 1
            raise RuntimeError("a bug")

    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=probe)
    with pytest.raises(SystemFailed) as failed:
        async with at_home(tmp_path, store=store):
            await trio.sleep_forever()
    assert failed.value.exit_code != 0
    assert crashes == 4, "three restarts in a minute, and not one more"


def test_r20_a_program_whose_store_crashes_again_and_again_exits_with_a_failure(tmp_path: Path):
    (tmp_path / "scenario.toml").write_text("inferences = []\n")
    config = write_config(tmp_path)
    command = [sys.executable, "-m", "tests.paths.daemon", str(config), "store.before_commit"]
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert ended.returncode not in (0, None)
    assert "ready" not in ended.stdout


def lived(folder: Path, store: StoreOptions, started: Callable[[], None] = lambda: None) -> None:
    """Tell the whole story in one life in which the store fails for a while; nobody may notice."""

    async def live() -> None:
        outside = Outside()
        async with outside.life(folder, store) as home:
            started()
            with trio.fail_after(3600):
                await outside.insist(home)
            judge(outside, outside.accepted, await rows(home), await rows(home), breaks=1)
            assert set(outside.runs.values()) == {1}, "every tool ran to its end"

    folder.mkdir(exist_ok=True)
    trio.run(live, clock=MockClock(autojump_threshold=0))


def test_c9_a_store_that_crashes_at_any_commit_is_not_noticed_by_the_turns(tmp_path: Path):
    passed = 0

    def crashing(folder: Path, number: int | None) -> StoreOptions:
        def probe(_point: str) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                raise RuntimeError("a bug")

        nonlocal passed
        passed = 0
        return StoreOptions(path=folder / "kesoku.db", durability=Durability.NORMAL, probe=probe)

    lived(tmp_path / "whole", crashing(tmp_path / "whole", None))
    for number in drawn(range(1, passed + 1), 12):
        sys.stdout.write(f"the store crashes at passage {number}\n")
        lived(tmp_path / f"{number}", crashing(tmp_path / f"{number}", number))


def test_c9_a_disk_that_fails_for_a_minute_is_not_noticed_by_the_turns(tmp_path: Path):
    asked: list[Operation] = []

    def on_disk(folder: Path, number: int | None) -> int:
        """Return how many operations the start took; one on a disk that fails is refused, which is another test."""
        until: list[float] = []

        def fail(operation: Operation) -> Fault | None:
            asked.append(operation)
            if len(asked) == number:
                until.append(trio.current_time() + 60)
            return Fault.ERROR if until and trio.current_time() < until[0] else None

        asked.clear()
        started: list[int] = []
        with mounted(f"failing-{folder.name}", script=fail) as disk:
            store = StoreOptions(
                path=folder / "kesoku.db",
                durability=Durability.FULL,
                access=Inline(connect=disk.connect),
            )
            lived(folder, store, lambda: started.append(len(asked)))
        return started[0]

    first = on_disk(tmp_path / "whole", None)
    for number in drawn(range(first + 1, len(asked) + 1), 12):
        sys.stdout.write(f"the disk fails from operation {number} on\n")
        on_disk(tmp_path / f"{number}", number)


def test_c9_a_start_while_the_disk_fails_is_refused_and_the_next_one_finds_all_in_order(tmp_path: Path):
    asked: list[Operation] = []

    def start(folder: Path, number: int) -> None:
        def fail(operation: Operation) -> Fault | None:
            asked.append(operation)
            return Fault.ERROR if len(asked) >= number else None

        async def live() -> None:
            async with Outside().life(folder, store):
                pass

        folder.mkdir()
        asked.clear()
        with mounted(f"refusing-{folder.name}", script=fail) as disk:
            store = StoreOptions(
                path=folder / "kesoku.db", durability=Durability.FULL, access=Inline(connect=disk.connect)
            )
            trio.run(live, clock=MockClock(autojump_threshold=0))

    started: list[int] = []
    whole = tmp_path / "whole"
    with mounted("starting", script=lambda operation: asked.append(operation)) as disk:
        store = StoreOptions(path=whole / "kesoku.db", access=Inline(connect=disk.connect))
        lived(whole, store, lambda: started.append(len(asked)))
    for number in drawn(range(1, started[0] + 1), 12):
        sys.stdout.write(f"the disk fails from operation {number} on\n")
        folder = tmp_path / f"{number}"
        with pytest.raises(SystemFailed):
            start(folder, number)
        lived(folder, StoreOptions(path=folder / "kesoku.db", durability=Durability.NORMAL))
