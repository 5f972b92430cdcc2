"""Interruption under every schedule: thought ends at once, tools end by themselves, a stop ends what it covers."""

from __future__ import annotations

from typing import Any

from tests.properties.daemon import checks
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import play
from tests.properties.daemon.script import ASKED, FORCES, HANGS, MODES, QUICK, STOPS, TOOLS, scripts
from tests.properties.daemon.seams import DaemonWorld


@explored()
async def test_i1_a_session_has_one_worker_one_inference_and_as_many_tools_as_are_allowed(
    world: DaemonWorld,
    script: Any = scripts(QUICK, TOOLS, MODES, STOPS, rooms=2, settings={"parallel_tools": 1}),
) -> None:
    truth = await play(world, script)
    checks.one_at_a_time(world.notes, parallel=1)
    checks.results_stand_together(truth)


@explored(certify=True, may_tick=False)
async def test_i2_i9_a_message_ends_thought_before_any_time_passes(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, HANGS)
) -> None:
    truth = await play(world, script)
    checks.thinks_no_longer(world.notes)
    checks.starts_no_more(world.notes, truth)


@explored(certify=True)
async def test_i3_a_tool_that_has_begun_is_never_ended_by_a_message_or_a_stop(
    world: DaemonWorld, script: Any = scripts(TOOLS, QUICK, ASKED, STOPS, MODES)
) -> None:
    truth = await play(world, script)
    checks.tools_live(world.notes)
    checks.tools_run_once(world.notes, truth, is_whole=True)
    checks.results_stand_together(truth)


@explored(may_tick=False)
async def test_i7_a_stop_ends_thought_before_any_time_passes(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, HANGS, STOPS)
) -> None:
    await play(world, script)
    checks.thinks_no_longer(world.notes)


@explored()
async def test_i7_a_stop_ends_all_it_covers_and_nothing_else(
    world: DaemonWorld, script: Any = scripts(QUICK, TOOLS, ASKED, STOPS, FORCES, MODES)
) -> None:
    truth = await play(world, script)
    checks.stops_end_what_they_cover(world.notes, truth)
    checks.ends_once(world.notes, truth)
