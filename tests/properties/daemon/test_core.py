"""Scripts of what matters most, short enough to be certified: every schedule with at most so many holds and ticks.

Each is checked for every rule that fits. `scripts/certify --bound 2 --only test_core` plays some 20,000 schedules of
each, and more than twice as many where there are two lives.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.protocol import BusyMode
from tests.properties.daemon import checks, model, work
from tests.properties.daemon.exploring import of_one_script
from tests.properties.daemon.lives import Faults, play
from tests.properties.daemon.script import Clear, End, How, Mode, Say, Script, Stop
from tests.properties.daemon.seams import DaemonWorld

HEARD: Final = Script(rooms=((Say(model.TALK), Say(model.HELLO, 1.0)),))
"""A message while the model thinks."""
INTERRUPTED: Final = Script(rooms=((Say(model.WORK), Say(model.HELLO, 1.0)),))
"""A message while a tool runs."""
ASIDE: Final = Script(rooms=((Say(model.BOTH), Say(model.HELLO)),))
"""A message while calls are committed."""
STOPPED: Final = Script(rooms=((Say(model.TALK), Stop(1.0), Say(model.HELLO)),))
"""A stop while the model thinks, and a message right behind it."""
RESTARTED: Final = Script(rooms=((Say(model.WORK),),), ends=(End(How.TERMINATED, 1.0),))
"""A restart in order while a tool runs."""
KILLED: Final = Script(rooms=((Say(model.WORK),),), ends=(End(How.KILLED, 1.0),))
"""A kill while a tool runs."""

CLEARED_AT_WORK: Final = Script(rooms=((Say(model.WORK, 0.2), Clear()),))
"""A clear right behind a message: its worker may come when the session is gone."""
CLEARED_ANSWER: Final = Script(rooms=((Say(model.HELLO, 1.0), Clear()),))
"""A clear while the answer leaves: it may be gone between two of its parts."""
CLEAR_LOST: Final = Script(rooms=((Say(model.HELLO), Clear(2.5), Mode(BusyMode.INTERRUPT, 0.2)),))
"""A clear while the store crashes: it may be committed, and nobody told."""


async def holds(world: DaemonWorld, script: Script, *, is_whole: bool) -> None:
    """Play the script and check what holds of any."""
    truth = await play(world, script)
    notes = world.notes
    checks.ends_once(notes, truth)
    checks.numbered(notes, truth)
    checks.history_stands(notes, truth)
    checks.heard_in_order(truth)
    checks.delivered_in_order(notes, truth, once=is_whole)
    checks.told_whole(notes, truth)
    work.one_at_a_time(notes, parallel=4)
    work.tools_run_once(notes, truth, is_whole=is_whole)
    work.results_stand_together(truth)
    work.stops_end_what_they_cover(notes, truth)
    checks.sessions_rest(notes)
    if is_whole:
        work.tools_live(notes)


async def is_cleared(world: DaemonWorld, script: Script, faults: Faults | None = None) -> None:
    """Play the script and check that nothing is left of it, and that nothing crashed over that."""
    truth = await play(world, script, faults)
    checks.ends_once(world.notes, truth)
    checks.cleared_whole(world.notes, truth, world.disk.folder / "sessions")
    work.tools_live(world.notes)


@of_one_script()
async def test_a_message_while_the_model_thinks(world: DaemonWorld) -> None:
    await holds(world, HEARD, is_whole=True)
    work.thinks_no_longer(world.notes, within_steps=3)


@of_one_script()
async def test_a_message_while_a_tool_runs(world: DaemonWorld) -> None:
    await holds(world, INTERRUPTED, is_whole=True)


@of_one_script()
async def test_a_message_while_calls_are_committed(world: DaemonWorld) -> None:
    truth = await play(world, ASIDE)
    checks.ends_once(world.notes, truth)
    work.starts_nothing_behind(world.notes, truth)
    work.tools_live(world.notes)


@of_one_script()
async def test_a_stop_while_the_model_thinks(world: DaemonWorld) -> None:
    await holds(world, STOPPED, is_whole=True)


@of_one_script()
async def test_a_restart_in_order_while_a_tool_runs(world: DaemonWorld) -> None:
    await holds(world, RESTARTED, is_whole=True)


@of_one_script()
async def test_a_kill_while_a_tool_runs(world: DaemonWorld) -> None:
    await holds(world, KILLED, is_whole=False)


@of_one_script()
async def test_a_clear_right_behind_a_message(world: DaemonWorld) -> None:
    await is_cleared(world, CLEARED_AT_WORK)


@of_one_script()
async def test_a_clear_while_the_answer_leaves(world: DaemonWorld) -> None:
    await is_cleared(world, CLEARED_ANSWER)


@of_one_script()
async def test_a_clear_whose_answer_is_lost_with_the_store(world: DaemonWorld) -> None:
    await is_cleared(world, CLEAR_LOST, Faults(store=0.04))
