"""Interruption under every schedule: thought ends at once, tools end by themselves, a stop ends what it covers."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from tests.properties.daemon import checks, work
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import play
from tests.properties.daemon.script import (
    ASKED,
    ENDLESS,
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
    Notice,
    Script,
    scripts,
)
from tests.properties.daemon.seams import DaemonWorld

WAKING: Final = st.builds(Notice, st.just(True), st.sampled_from(PAUSES))
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
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, HANGS, first=st.one_of(QUICK, TOOLS, HANGS))
) -> None:
    truth = await play(world, script)
    work.thinks_no_longer(world.notes)
    work.starts_no_more(world.notes, truth)


@explored()
async def test_i3_a_tool_that_has_begun_is_never_ended_by_a_message_or_a_stop(
    world: DaemonWorld, script: Any = scripts(TOOLS, QUICK, ASKED, STOPS, MODES, settings=SLOTS)
) -> None:
    truth = await play(world, script)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    work.results_stand_together(truth)


@explored(may_tick=False)
async def test_i7_a_stop_ends_thought_before_any_time_passes(
    world: DaemonWorld, script: Any = scripts(QUICK, HANGS, STOPS, STOPS, first=st.one_of(QUICK, TOOLS, HANGS))
) -> None:
    await play(world, script)
    work.thinks_no_longer(world.notes)
    work.stopped_is_over(world.notes)


@explored()
async def test_i7_a_stop_ends_all_it_covers_and_nothing_else(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ASKED, STOPS, FORCES, MODES)
) -> None:
    truth = await play(world, script)
    work.stops_end_what_they_cover(world.notes, truth)
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
    world: DaemonWorld, script: Any = scripts(JOBS, QUICK, MODES, STOPS, first=JOBS)
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
    checks.ends_once(world.notes, truth)


@explored(may_tick=False)
async def test_i7_force_ends_what_runs_at_once_and_nothing_else_does(
    world: DaemonWorld, script: Any = scripts(ENDLESS, STOPS, FORCES, FORCES, first=ENDLESS)
) -> None:
    truth = await play(world, script)
    work.ended_for_a_reason(world.notes)
    work.force_ends_tools(world.notes)
    checks.ends_once(world.notes, truth)
