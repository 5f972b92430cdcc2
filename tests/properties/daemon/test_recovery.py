"""Crashes, loss of power and restarts at any step of any schedule: nothing is lost, and no tool runs twice."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from hypothesis import strategies as st

from kesoku_actors.actors import SystemFailed, run_system
from kesoku_actors.app.house import build_house
from kesoku_actors.errors import NotFound
from kesoku_actors.gateway import Gateway
from kesoku_actors.harness import Fault
from kesoku_actors.protocol import Reason
from kesoku_actors.store import StoreDamaged, StoreInUse
from tests.properties.daemon import checks, model, work
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Faults, Life, Play, play
from tests.properties.daemon.script import (
    ASKED,
    CLEARS,
    ENDLESS,
    JOBS,
    MODES,
    QUICK,
    RACES,
    REPEATS,
    SLOTS,
    STOPS,
    TOOLS,
    End,
    How,
    Say,
    Script,
    says,
    scripts,
)
from tests.properties.daemon.seams import DATABASE, DaemonWorld, SteppedAccess, access_to


@explored()
async def test_c1_what_was_accepted_survives_the_loss_of_power_at_any_step(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, REPEATS, STOPS, CLEARS, rooms=2)
) -> None:
    truth = await play(world, script, Faults(power=True))
    checks.ends_once(world.notes, truth)
    checks.posted_once(world.notes, truth)
    checks.seen_before(world.notes, truth)
    checks.numbered(world.notes, truth)


@explored(share=0.5)
async def test_c1_a_command_that_is_refused_takes_none_along_that_was_accepted(
    world: DaemonWorld, script: Any = scripts(QUICK, RACES, MODES, STOPS, first=RACES, rooms=2)
) -> None:
    async def stranger(life: Life) -> None:
        gateway = life.house.gateway
        for _time in range(30):
            async with trio.open_nursery() as nursery:
                for _asker in range(2):
                    nursery.start_soon(ask_in_vain, gateway)
                await trio.sleep(0.1)

    truth = await play(world, script, beside=stranger)
    checks.ends_once(world.notes, truth)
    checks.told_whole(world.notes, truth)


async def ask_in_vain(gateway: Gateway) -> None:
    with suppress(NotFound):
        await gateway.stop("nobody")


@explored()
async def test_c2_turns_go_on_after_crashes_under_one_worker_at_a_time(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, ends=(How.KILLED, How.CUT), rooms=2),
) -> None:
    truth = await play(world, script, Faults(worker=0.03))
    checks.ends_once(world.notes, truth)
    work.one_at_a_time(world.notes, parallel=4)
    checks.history_stands(world.notes, truth)


@explored(share=0.5)
async def test_c2_a_turn_that_breaks_off_each_time_is_given_up_after_three_attempts(
    world: DaemonWorld,
    words: Any = st.lists(QUICK, min_size=1, max_size=2),
    event: Any = st.sampled_from(("CommitStands", "PromptBuilt", "ModelFinished")),
) -> None:
    truth = await play(world, Script(rooms=tuple((one,) for one in words)), Faults(worker_at=event))
    work.given_up_after(world.notes, truth, event=event, attempts=3)
    checks.ends_once(world.notes, truth)


@explored()
async def test_c3_no_call_runs_twice_whatever_crashes(
    world: DaemonWorld,
    script: Any = scripts(TOOLS, ASKED, QUICK, STOPS, ends=(How.KILLED, How.CUT, How.TERMINATED)),
) -> None:
    truth = await play(world, script, Faults(worker=0.02, store=0.01, power=True))
    work.tools_run_once(world.notes, truth)
    work.results_stand_together(truth)


@explored()
async def test_c5_every_part_of_an_answer_is_shown_in_order_whatever_crashes(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, first=says(model.TALK), ends=(How.KILLED, How.CUT, How.TERMINATED), rooms=2),
) -> None:
    truth = await play(world, script, Faults(send=0.5, power=True))
    checks.delivered_in_order(world.notes, truth, once=False)


@explored()
async def test_c7_a_restart_in_order_ends_no_tool_and_costs_no_attempt(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, ASKED, MODES, ends=(How.TERMINATED,), most_ends=4, settings=SLOTS),
) -> None:
    truth = await play(world, script)
    work.interrupted_with_their_turn(world.notes, truth)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    checks.ends_once(world.notes, truth)
    assert [row for row in checks.people(truth) if checks.reason(row) == Reason.ATTEMPTS] == []


@explored(may_tick=False)
async def test_c7_a_program_that_is_to_end_starts_nothing_more_and_ends_in_time(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ENDLESS, ends=(How.TERMINATED,), most_ends=3)
) -> None:
    truth = await play(world, script)
    work.stops_in_order(world.notes)
    work.ended_for_a_reason(world.notes)
    work.text_is_dropped(truth)
    work.killed_at_the_end(world.notes, truth)
    checks.ends_once(world.notes, truth)


@explored()
async def test_c10_a_commit_whose_answer_was_lost_happens_once(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, CLEARS),
    where: Any = st.sampled_from(("store.", "store.after_commit/Commit")),
) -> None:
    rate = 0.04 if where == "store." else 0.2
    truth = await play(world, script, Faults(store=rate, store_at=where))
    checks.ends_once(world.notes, truth)
    work.answered_what_stood(world.notes)
    checks.nothing_crashed(world.notes, but="root/store")
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    checks.told_whole(world.notes, truth)
    checks.history_stands(world.notes, truth)


@explored()
async def test_i8_a_job_is_told_once_whatever_crashes(
    world: DaemonWorld,
    script: Any = scripts(JOBS, QUICK, STOPS, first=JOBS, ends=(How.KILLED, How.CUT, How.TERMINATED)),
) -> None:
    truth = await play(world, script, Faults(worker=0.02, store=0.01))
    checks.jobs_are_told_once(truth)
    work.tools_run_once(world.notes, truth)


@explored()
async def test_c9_a_disk_that_fails_for_a_while_ends_nothing(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, CLEARS),
    impatient: Any = st.booleans(),
) -> None:
    faults = Faults(disk=(Fault.FULL, Fault.BUSY, Fault.ERROR), impatient=impatient)
    try:
        truth = await play(world, script, faults)
    except* SystemFailed as failed:
        raise AssertionError("a disk that fails for a while ended the program") from failed
    checks.nothing_crashed(world.notes)
    checks.ends_once(world.notes, truth)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    checks.told_whole(world.notes, truth)


@explored(share=0.5)
async def test_c6_a_second_program_is_told_who_owns_the_store_and_opens_nothing(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS), after_s: Any = st.sampled_from((0.0, 0.5, 1.5))
) -> None:
    opened: list[str] = []

    def connect(path: Path, _flags: int) -> apsw.Connection:
        opened.append(path.name)
        return world.disk.connect(path.name)

    async def intrude(life: Life) -> None:
        await trio.sleep(after_s)
        for _attempt in range(2):
            access = SteppedAccess(connect=connect)
            second = build_house(life.composed(access, lambda _gateway: ()))
            with pytest.raises(SystemFailed) as failed:
                async with run_system(second.spec):
                    raise AssertionError("two programs own one store")
            assert all(isinstance(leaf, StoreInUse) for leaf in failed.value.leaves)
            assert all(f"process {os.getpid()} " in str(leaf) for leaf in failed.value.leaves)
            assert opened == []

    truth = await play(world, script, beside=intrude)
    checks.ends_once(world.notes, truth)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_kind(path: Path) -> None:
    path.write_bytes(b"no database file" + path.read_bytes()[16:])


def of_a_later_program(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:60] + (10_000).to_bytes(4, "big") + data[64:])


def behind_its_rows(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE meta SET value = 0 WHERE name = 'counter'")


def torn(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get
        size = connection.pragma("page_size")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def leave_open(path: Path) -> None:
    """Leave it as a process does that is killed: with its mark, and a log beside it."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'open'")


def is_open(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT value FROM meta WHERE name = 'open'").get)


@explored(share=0.5)
async def test_c8_a_database_that_is_damaged_or_newer_is_refused_and_left_as_it_is(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, longest=1),
    damage: Any = st.sampled_from(
        [
            *(
                (end, damage)
                for end in (None, leave_open)
                for damage in (cut_short, of_another_kind, of_a_later_program)
            ),
            (None, behind_its_rows),
            (leave_open, torn),
        ]
    ),
) -> None:
    one = Play(world=world, script=script)
    await one.go()
    path = world.disk.path(DATABASE)
    for change in filter(None, damage):
        change(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    life = Life(play=one, number=len(one.lives), crashes=world.crashes, access=access_to(world))
    with pytest.raises(SystemFailed) as failed:
        async with run_system(build_house(life.composed(life.access, lambda _gateway: ())).spec):
            raise AssertionError("a damaged database is used")
    assert any(isinstance(leaf, StoreDamaged) for leaf in failed.value.leaves)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()} == before


@explored(share=0.5)
async def test_c8_the_mark_stands_while_the_program_runs_and_goes_with_an_orderly_end(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ends=(How.TERMINATED, How.KILLED, How.CUT))
) -> None:
    marks: list[bool] = []

    async def look(life: Life) -> None:
        await trio.sleep(0.1)
        if (connection := life.access.connection) is not None:
            marks.append(is_open(connection))

    await play(world, script, beside=look)
    assert all(marks)
    assert not is_open(world.disk.connect(DATABASE))


@explored(may_tick=False, share=0.5)
async def test_c2_a_turn_that_three_kills_broke_off_is_given_up(
    world: DaemonWorld, hows: Any = st.tuples(*[st.sampled_from((How.KILLED, How.CUT))] * 3)
) -> None:
    script = Script(rooms=((Say(model.HANG),),), ends=tuple(End(how, 1.5) for how in hows))
    truth = await play(world, script)
    work.given_up_after(world.notes, truth, event="PromptBuilt", attempts=3)
    checks.ends_once(world.notes, truth)
