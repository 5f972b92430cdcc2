"""Children by script: groups, children of children, pipes that somebody holds open, and who lives on behind a crash."""

from __future__ import annotations

import signal
import subprocess

import trio

from kesoku_actors.harness.control.procs import Exit, Fork, Ignore, Out, Process, Sleep
from kesoku_actors.harness.image import EVERYTHING
from kesoku_actors.harness.world import World

from .test_world import passes


async def started(*words: str) -> Process:
    """Start a child whose output is a pipe, at the head of a session of its own."""
    found = await trio.lowlevel.open_process(
        list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, env={"NAME": words[0]}
    )
    assert isinstance(found, Process)
    return found


def test_a_script_may_depend_on_the_words() -> None:
    async def test(world: World) -> None:
        world.procs["exit"] = lambda words: [Exit(int(words[1]))]
        done = await trio.run_process(["exit", "7"], check=False)
        assert done.returncode == 7

    passes(test)


def test_a_child_of_a_child_lives_on_behind_it_and_holds_its_output_open() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [Fork([Sleep(5), Out(b"late")]), Out(b"soon"), Exit(0)]
        child = await started("shell")
        assert await child.wait() == 0
        [other] = world.children.living()
        assert (other.parent, other.group, other.environment["NAME"]) == (child, child.pid, "shell")
        assert child.stdout is not None
        said = b""
        while data := bytes(await child.stdout.receive_some()):
            said += data
        assert said == b"soonlate"
        assert bytes(child.written) == b"soon"
        assert trio.current_time() == 5

    passes(test, may_tick=False)


def test_what_was_written_and_not_read_can_be_taken_behind_the_end_without_waiting() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [Out(b"a"), Fork([Sleep(5)]), Out(b"b")]
        child = await started("shell")
        await child.wait()
        assert child.read_nowait() + child.read_nowait() == b"ab"

    passes(test)


def test_a_group_is_signalled_as_one_and_who_left_it_is_not() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [
            Fork([Sleep(90)]),
            Fork([Ignore(), Sleep(90)]),
            Fork([Sleep(90)], leaves=True),
            Sleep(90),
        ]
        child = await started("shell")
        await trio.sleep(1)
        meek, deaf, gone = world.children.started[1:]
        world.children.signal_group(child.pid, signal.SIGTERM)
        assert [each.returncode for each in (child, meek, deaf, gone)] == [-15, -15, None, None]
        world.children.signal_group(child.pid, signal.SIGKILL)
        assert [*world.children.living()] == [gone]
        assert gone.group == gone.pid

    passes(test, may_tick=False)


def test_when_the_power_goes_nobody_lives_on_even_if_the_ended_are_forgotten_at_once() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [Sleep(90)]
        world.children.heard = lambda _process: world.children.forget()
        children = [await started("shell") for _ in range(4)]
        world.children.kill_all()
        assert [each.returncode for each in children] == [-signal.SIGKILL] * 4
        assert world.children.started == []

    passes(test, may_tick=False)


def test_who_writes_where_nobody_reads_dies_of_it() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [Sleep(1), Out(b"x"), Sleep(90)]
        child = await started("shell")
        assert child.stdout is not None
        await child.stdout.aclose()
        assert await child.wait() == -signal.SIGPIPE
        assert child.written == b""

    passes(test, may_tick=False)


def test_when_only_the_program_dies_its_children_may_live_on() -> None:
    async def test(world: World) -> None:
        world.procs["shell"] = [Sleep(90)]

        async def program() -> None:
            await started("shell")
            await trio.sleep(1)
            world.crash(EVERYTHING, orphans=world.crashes == 0)

        assert not await world.life(program)
        assert len([*world.children.living()]) == 1
        assert not await world.life(program)
        assert [*world.children.living()] == []

    passes(test, may_tick=False)
