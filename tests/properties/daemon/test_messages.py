"""Messages under every schedule: nothing a person says is lost, and nothing is dealt with twice."""

from __future__ import annotations

from typing import Any

from tests.properties.daemon import checks
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Faults, play
from tests.properties.daemon.script import (
    ASKED,
    CLEARS,
    FILES,
    FORCES,
    JOBS,
    MODES,
    MODES_AT_FIRST,
    NOTICES,
    QUICK,
    RACES,
    REPEATS,
    SKEWS,
    STOPS,
    TOOLS,
    How,
    scripts,
)
from tests.properties.daemon.seams import DaemonWorld


@explored()
async def test_every_message_of_a_person_ends_once(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.ends_once(world.notes, truth)


@explored()
async def test_m1_numbers_are_given_once_and_time_never_runs_back(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, SKEWS, MODES, STOPS, CLEARS, ends=(How.KILLED, How.TERMINATED), rooms=2),
) -> None:
    truth = await play(world, script)
    checks.numbered(world.notes, truth)


@explored()
async def test_m5_an_event_that_comes_again_starts_nothing(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, REPEATS, REPEATS, CLEARS, longest=5, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.posted_once(world.notes, truth)
    checks.seen_before(world.notes, truth)
    checks.ends_once(world.notes, truth)


@explored()
async def test_m6_messages_that_race_make_one_session(
    world: DaemonWorld, script: Any = scripts(RACES, QUICK, CLEARS, first=RACES, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.one_open_session(truth)
    checks.in_its_channel(world.notes, truth)
    checks.ends_once(world.notes, truth)


@explored()
async def test_o1_nothing_moves_in_front_of_what_was_read(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, settings=MODES_AT_FIRST)
) -> None:
    truth = await play(world, script)
    checks.history_stands(world.notes, truth)


@explored()
async def test_o2_people_are_heard_and_answered_in_order(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, rooms=2)
) -> None:
    truth = await play(world, script, Faults(send=0.2))
    checks.heard_in_order(truth)
    checks.delivered_in_order(world.notes, truth, once=True)


@explored()
async def test_b1_a_listener_hears_every_change_in_order_and_once(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, CLEARS, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.told_whole(world.notes, truth)


@explored()
async def test_b1_a_queue_that_is_full_loses_nothing_and_mixes_up_nothing(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, CLEARS, rooms=2)
) -> None:
    truth = await play(world, script, Faults(crowded=True))
    checks.told_whole(world.notes, truth)
    checks.ends_once(world.notes, truth)
    checks.delivered_in_order(world.notes, truth, once=True)


@explored()
async def test_b2_pieces_of_an_answer_come_in_order_and_say_what_is_stored(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, rooms=2)
) -> None:
    truth = await play(world, script, Faults(model=0.2))
    checks.deltas_fit(world.notes, truth)


@explored()
async def test_b3_a_session_that_has_nothing_to_do_has_no_worker(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, NOTICES, rooms=2)
) -> None:
    await play(world, script)
    checks.sessions_rest(world.notes)


@explored()
async def test_m7_of_a_cleared_session_nothing_is_left(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ASKED, JOBS, CLEARS, CLEARS, FORCES, rooms=2)
) -> None:
    truth = await play(world, script)
    checks.cleared_whole(world.notes, truth, world.disk.folder / "sessions")


@explored()
async def test_m7_a_clear_that_was_accepted_is_finished_after_a_crash(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, CLEARS, CLEARS, ends=(How.KILLED, How.CUT), rooms=2)
) -> None:
    truth = await play(world, script, Faults(power=True))
    checks.cleared_whole(world.notes, truth, world.disk.folder / "sessions")


@explored(may_tick=False)
async def test_m8_a_turn_waits_for_the_files_of_its_prompt_a_minute_at_most(
    world: DaemonWorld, script: Any = scripts(FILES, QUICK, MODES, first=FILES)
) -> None:
    truth = await play(world, script)
    checks.files_are_waited_for(world.notes, truth)
    checks.ends_once(world.notes, truth)
