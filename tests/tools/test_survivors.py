"""What an earlier life of the program left running is ended, and nobody else is (C3)."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import pytest
import trio

from kesoku_actors.store.port import DeadCall
from kesoku_actors.tools.shell import end_survivors
from kesoku_actors.tools.shell.process_table import CALL_VARIABLE, marked, process, start_time


def ours(call_id: str) -> str:
    """An id that no other run of these tests has: a mark is looked for on the whole machine."""
    return f"{call_id}.{os.getpid()}"


@pytest.fixture
async def orphan():
    """Commands as a dead program left them, each in a session of its own and at work."""

    async def spawn(script: str = "echo up; sleep 600; :", call_id: str = "lost") -> trio.Process:
        started = await trio.lowlevel.open_process(
            marked(("sh", "-c", script), ours(call_id)),
            start_new_session=True,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", CALL_VARIABLE: ours(call_id)},
        )
        spawned.append(started)
        await started.stdout.receive_some()
        return started

    spawned: list[trio.Process] = []
    yield spawn
    for started in spawned:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        await started.stdout.aclose()
        await started.wait()


def dead(pid: int | None, start: float | None, call_id: str = "lost") -> DeadCall:
    return DeadCall(call_id=ours(call_id), session_id="s", pid=pid, process_start=start)


async def test_a_survivor_is_ended_with_all_that_belongs_to_it(orphan):
    left = await orphan("trap '' TERM; setsid sh -c 'echo up; sleep 600; :' & sleep 600; :")
    (found,) = await end_survivors([dead(left.pid, start_time(left.pid))], grace_s=0.1)
    assert found.left == ()
    assert left.pid in {one.pid for one in found.ended}
    assert len({one.session for one in found.ended}) == 2
    assert all(process(one.pid) is None for one in found.ended)


async def test_a_survivor_that_was_never_stored_is_found_by_its_mark(orphan):
    left = await orphan()
    (found,) = await end_survivors([dead(None, None)])
    assert {one.pid for one in found.ended} >= {left.pid}


async def test_a_survivor_without_its_environment_and_parent_is_found_by_its_limit(orphan):
    await orphan("(env -i /usr/bin/setsid /bin/sh -c \"trap '' TERM; echo up; sleep 600; :\" &)")
    (found,) = await end_survivors([dead(None, None)], grace_s=0.1)
    assert found.left == ()
    assert "sh" in {one.name for one in found.ended}
    assert all(process(one.pid) is None for one in found.ended)


async def test_survivors_of_many_calls_are_ended_together_and_told_in_order(orphan):
    left = {id: await orphan("trap '' TERM; echo up; sleep 600; :", call_id=id) for id in ("a", "b", "c")}
    calls = [dead(one.pid, start_time(one.pid), id) for id, one in left.items()]
    found = await end_survivors([*calls, dead(None, None, "none")], grace_s=0.1)
    assert [one.call_id for one in found] == [ours("a"), ours("b"), ours("c")]
    assert all(process(one.pid) is None for one in left.values())


async def test_a_process_that_only_has_the_same_number_is_left_alone(orphan):
    stranger = await orphan(call_id="another")
    found = await end_survivors([dead(stranger.pid, start_time(stranger.pid) - 1)])
    assert found == ()
    assert process(stranger.pid) is not None
