"""Commands under every schedule: nobody ends them but who may, all they say is kept, and nothing of them is left.

The folders of sessions, where outputs and turn logs are kept, are real ones, in the folder of a run's disk: what the
program does there it does with links, modes and renames of a real system, which no folder in memory has. Nothing in
them depends on anything but the run, as the last test shows. What a loss of power would take there is not simulated.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from kesoku_actors.harness import Random
from kesoku_actors.harness.control import execute
from kesoku_actors.harness.strategy import RunInfo
from tests.properties.daemon import checks, commands, endings, work
from tests.properties.daemon.commands import LASTING, SERVERS, SHORT, STUBBORN
from tests.properties.daemon.exploring import FILES, LIMITS, explored
from tests.properties.daemon.lives import Faults, play
from tests.properties.daemon.script import CLEARS, FORCES, MODES, QUICK, SLOTS, STOPS, End, How, Say, Script, scripts
from tests.properties.daemon.seams import DaemonWorld

ANY: Any = st.one_of(SHORT, STUBBORN, LASTING, SERVERS)


@explored(share=0.2)
async def test_i3_a_command_ends_by_itself_whoever_speaks_or_stops_it(
    world: DaemonWorld, script: Any = scripts(SHORT, QUICK, STOPS, MODES, first=SHORT, settings=SLOTS)
) -> None:
    truth = await play(world, script, commands=True)
    endings.signalled_for_a_reason(world.notes, truth)
    endings.settled_behind_its_end(world.notes, truth)
    endings.output_is_whole(truth, world.computer, world.disk.folder / "sessions", is_whole=True)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)
    work.results_stand_together(truth)


@explored(share=0.2, may_tick=False)
async def test_i7_force_asks_a_command_with_all_it_started_then_kills_and_then_settles_it(
    world: DaemonWorld, script: Any = scripts(STUBBORN, STOPS, STOPS, FORCES, FORCES, first=STUBBORN)
) -> None:
    truth = await play(world, script, commands=True)
    endings.signalled_for_a_reason(world.notes, truth)
    endings.ended_by_the_ladder(world.notes, in_time=True)
    endings.settled_behind_its_end(world.notes, truth)
    endings.output_is_whole(truth, world.computer, world.disk.folder / "sessions", is_whole=True)
    checks.ends_once(world.notes, truth)


@explored(share=0.2)
async def test_i8_a_command_goes_on_as_a_job_and_all_it_says_is_kept(
    world: DaemonWorld, script: Any = scripts(LASTING, SHORT, QUICK, STOPS, first=LASTING)
) -> None:
    truth = await play(world, script, commands=True)
    endings.signalled_for_a_reason(world.notes, truth)
    endings.output_is_whole(truth, world.computer, world.disk.folder / "sessions", is_whole=True)
    checks.jobs_are_told_once(truth)
    work.tools_live(world.notes)
    work.tools_run_once(world.notes, truth, is_whole=True)


@explored(share=0.4)
async def test_c3_a_command_that_outlives_the_program_is_ended_before_its_session_goes_on(
    world: DaemonWorld, script: Any = scripts(ANY, QUICK, first=ANY, ends=(How.KILLED, How.CUT))
) -> None:
    truth = await play(world, script, Faults(worker=0.01, store=0.01, power=True), commands=True)
    endings.signalled_for_a_reason(world.notes, truth)
    endings.ended_before_it_goes_on(world.notes)
    endings.settled_behind_its_end(world.notes, truth)
    endings.ended_by_the_ladder(world.notes, in_time=False)
    endings.output_is_whole(truth, world.computer, world.disk.folder / "sessions")
    work.tools_run_once(world.notes, truth)


@explored(share=0.2, may_tick=False)
async def test_c7_a_program_that_ends_lets_commands_end_and_leaves_nothing_of_them(
    world: DaemonWorld, script: Any = scripts(ANY, QUICK, first=ANY, ends=(How.TERMINATED,), most_ends=3)
) -> None:
    truth = await play(world, script, commands=True)
    endings.nothing_is_left(world.notes)
    endings.signalled_for_a_reason(world.notes, truth)
    endings.ended_by_the_ladder(world.notes, in_time=True)
    endings.output_is_whole(truth, world.computer, world.disk.folder / "sessions")
    work.stops_in_order(world.notes)


@explored(share=0.2)
async def test_m7_a_clear_ends_what_commands_started_before_it_deletes_anything(
    world: DaemonWorld, script: Any = scripts(ANY, CLEARS, CLEARS, QUICK, first=ANY)
) -> None:
    truth = await play(world, script, commands=True)
    endings.cleared_behind_its_end(world.notes)
    endings.signalled_for_a_reason(world.notes, truth)
    checks.cleared_whole(world.notes, truth, world.disk.folder / "sessions")


def files_of_a_run() -> Mapping[str, bytes]:
    """Play a script under a schedule that is drawn, and return the files of its sessions."""
    found: dict[str, bytes] = {}
    script = Script(
        rooms=((Say(commands.PAIR), Say(commands.CLAN, 6.0)), (Say(commands.BUILD),)),
        ends=(End(How.KILLED, 7.0),),
        settings={"turn_log": True},
    )

    async def program() -> None:
        world = DaemonWorld()
        await play(world, script, commands=True)
        folder = world.disk.folder / "sessions"
        here = str(world.disk.folder).encode()
        for file in folder.rglob("*"):
            if file.is_file():
                found[str(file.relative_to(folder))] = file.read_bytes().replace(here, b"here")

    strategy = Random()
    strategy.begin(RunInfo(number=0, rng=random.Random(5), length=100))
    run = execute(program, strategy, limits=LIMITS, allow=FILES)
    if run.error is not None:
        raise run.error
    return found


def test_a_run_leaves_the_same_files_when_it_is_played_again() -> None:
    files = files_of_a_run()
    assert {name.split("/")[1].partition("-")[0] for name in files} >= {"output", "llm"}
    assert files == files_of_a_run()
