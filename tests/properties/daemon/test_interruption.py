"""Interruption under every schedule: thought ends at once, tools end by themselves, a stop ends what it covers."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from kesoku_actors.protocol import BusyMode
from tests.properties.daemon import checks, lulls, turns, work
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Faults, play
from tests.properties.daemon.script import (
    AHEAD,
    ANSWERS,
    ASKED,
    BATCHES,
    ENDLESS,
    EVERY_MODE,
    FILES,
    FORCES,
    HANGS,
    JOBS,
    MODES,
    NOTICES,
    PAUSES,
    QUICK,
    SLOTS,
    STOPS,
    TOOLS,
    How,
    Notice,
    Script,
    Stop,
    scripts,
)
from tests.properties.daemon.seams import DaemonWorld

WAKING: Final = st.builds(Notice, st.just(True), st.sampled_from(PAUSES))
TOO_LATE: Final = st.builds(Stop, st.sampled_from((3.5, 4.5)))
"""A stop in the moment in which the answer to a talk, or to work, is handed over."""
ONE_PERSON: Final = st.builds(
    lambda before, said, after: Script(rooms=((*before, said, *after),)),
    st.lists(NOTICES, max_size=2),
    st.one_of(QUICK, TOOLS),
    st.lists(NOTICES, min_size=1, max_size=4),
)
"""Somebody says one thing, among notices."""


@explored()
async def test_i1_a_session_has_one_worker_one_inference_and_as_many_tools_as_are_allowed(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, TOOLS, MODES, STOPS, rooms=2, settings={"parallel_tools": 1}),
) -> None:
    truth = await play(world, script)
    work.one_at_a_time(world.notes, parallel=1)
    work.results_stand_together(truth)


@explored(may_tick=False)
async def test_i2_i9_a_message_ends_thought_before_any_time_passes(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, HANGS, FILES, first=st.one_of(QUICK, TOOLS, HANGS, FILES))
) -> None:
    truth = await play(world, script)
    work.thinks_no_longer(world.notes)
    work.starts_no_more(world.notes, truth)
    turns.partial_is_kept(world.notes, truth)
    turns.thinks_with_all(world.notes, BusyMode.INTERRUPT)
    lulls.nothing_is_put_off(world.notes, BusyMode.INTERRUPT)


@explored()
async def test_i3_a_tool_that_has_begun_is_never_ended_by_a_message_or_a_stop(
    world: DaemonWorld, script: Any = scripts(TOOLS, QUICK, ASKED, STOPS, MODES, settings=SLOTS)
) -> None:
    truth = await play(world, script)
    turns.outcomes_are_true(world.notes, truth)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    work.results_stand_together(truth)


@explored(may_tick=False)
async def test_i7_a_stop_ends_thought_before_any_time_passes(
    world: DaemonWorld, script: Any = scripts(QUICK, HANGS, STOPS, STOPS, first=st.one_of(QUICK, TOOLS, HANGS))
) -> None:
    truth = await play(world, script)
    work.thinks_no_longer(world.notes)
    work.stopped_is_over(world.notes)
    turns.partial_is_kept(world.notes, truth)
    turns.receipts_say_what_ended(world.notes, truth)
    lulls.nothing_is_put_off(world.notes, BusyMode.INTERRUPT)


@explored()
async def test_i7_a_stop_ends_all_it_covers_and_nothing_else(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ASKED, STOPS, FORCES, MODES)
) -> None:
    truth = await play(world, script)
    work.stops_end_what_they_cover(world.notes, truth)
    turns.covered_is_not_taken(world.notes, truth)
    turns.receipts_say_what_ended(world.notes, truth)
    turns.ends_together(truth)
    checks.ends_once(world.notes, truth)


@explored()
async def test_i6_no_notice_ends_thought(world: DaemonWorld, script: Any = ONE_PERSON) -> None:
    truth = await play(world, script)
    checks.notices_wait(world.notes)
    checks.ends_once(world.notes, truth)


@explored()
async def test_i6_turns_that_begin_by_themselves_are_bounded(
    world: DaemonWorld, script: Any = scripts(WAKING, first=WAKING, longest=14)
) -> None:
    truth = await play(world, script)
    assert checks.self_started(truth) <= 8


@explored()
async def test_i6_a_notice_that_does_not_wake_starts_nothing(
    world: DaemonWorld, script: Any = scripts(st.just(Notice(False, 1.0)), first=st.just(Notice(False)))
) -> None:
    await play(world, script)
    assert [note for note in world.notes if note.kind == "event"] == []


@explored()
async def test_i8_a_call_at_its_deadline_goes_on_as_a_job_whose_end_is_told_once(
    world: DaemonWorld, script: Any = scripts(JOBS, QUICK, MODES, STOPS, first=st.one_of(JOBS, AHEAD))
) -> None:
    truth = await play(world, script)
    checks.jobs_are_told_once(truth)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)


@explored(share=0.5)
async def test_i8_a_call_is_ended_at_its_deadline_and_no_sooner(
    world: DaemonWorld, script: Any = scripts(QUICK, MODES, STOPS, first=ENDLESS)
) -> None:
    truth = await play(world, script)
    work.ended_for_a_reason(world.notes)
    turns.killed_says_why(world.notes, truth)
    checks.ends_once(world.notes, truth)


@explored(may_tick=False)
async def test_i7_force_ends_what_runs_at_once_and_nothing_else_does(
    world: DaemonWorld, script: Any = scripts(ENDLESS, STOPS, FORCES, FORCES, first=ENDLESS)
) -> None:
    truth = await play(world, script)
    work.ended_for_a_reason(world.notes)
    work.force_ends_tools(world.notes)
    work.force_takes_a_second(world.notes)
    turns.killed_says_why(world.notes, truth)
    lulls.nothing_is_put_off(world.notes, BusyMode.INTERRUPT)
    checks.ends_once(world.notes, truth)


@explored(may_tick=False)
async def test_i5_who_waits_is_taken_as_the_mode_says(
    world: DaemonWorld, script: Any = scripts(QUICK, QUICK, TOOLS, MODES, longest=6, settings=EVERY_MODE)
) -> None:
    truth = await play(world, script)
    first = script.settings["busy_mode"]
    turns.taken_as_the_mode_says(world.notes, first)
    turns.thinks_with_all(world.notes, first)
    turns.ends_together(truth)
    turns.answers_stand(truth)
    lulls.nothing_is_put_off(world.notes, first)


@explored(may_tick=False)
async def test_i4_i8_t7_a_call_waits_for_a_slot_or_a_person_and_for_nothing_else(
    world: DaemonWorld,
    script: Any = scripts(BATCHES, AHEAD, QUICK, STOPS, FORCES, MODES, first=BATCHES, settings=SLOTS, answers=ANSWERS),
) -> None:
    truth = await play(world, script)
    lulls.nothing_is_put_off(world.notes, BusyMode.INTERRUPT, parallel=script.settings.get("parallel_tools", 4))
    turns.allowed_before_it_runs(world.notes, truth)
    turns.calls_are_answered(world.notes, truth)
    turns.steps_are_whole(truth)
    turns.outcomes_are_true(world.notes, truth)


@explored()
async def test_o1_o3_who_is_adopted_stands_where_the_model_read_him_and_results_behind_their_calls(
    world: DaemonWorld,
    script: Any = scripts(QUICK, BATCHES, AHEAD, STOPS, first=st.one_of(BATCHES, AHEAD), settings=EVERY_MODE),
) -> None:
    truth = await play(world, script)
    turns.stands_where_it_was_put(world.notes, truth)
    turns.calls_are_answered(world.notes, truth)
    turns.steps_are_whole(truth)
    turns.ends_together(truth)
    turns.answers_stand(truth)


@explored()
async def test_o4_every_call_has_one_result_that_is_true_also_where_attempts_are_used_up(
    world: DaemonWorld,
    script: Any = scripts(BATCHES, STOPS, first=BATCHES, ends=(How.KILLED,), most_ends=4),
) -> None:
    truth = await play(world, script, Faults(worker=0.05))
    turns.outcomes_are_true(world.notes, truth)
    turns.calls_are_answered(world.notes, truth)
    turns.steps_are_whole(truth)
    turns.ends_together(truth)
    turns.answers_stand(truth)
    work.tools_run_once(world.notes, truth)


@explored()
async def test_i10_what_was_handed_over_stands(
    world: DaemonWorld, script: Any = scripts(QUICK, TOO_LATE, TOO_LATE, STOPS, first=st.one_of(QUICK, TOOLS))
) -> None:
    truth = await play(world, script)
    turns.handed_over_stands(world.notes, truth)
    turns.receipts_say_what_ended(world.notes, truth)
    turns.covered_is_not_taken(world.notes, truth)
    turns.answers_stand(truth)
