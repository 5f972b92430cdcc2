"""What a command left running ends with its session, and with the program (M7, C7)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from kesoku_actors.actors import SupervisorSpec, run_system
from kesoku_actors.llm.scripted import Call, Say, Stall
from kesoku_actors.protocol import Message, Stop, Type
from kesoku_actors.tools import ToolRegistry
from kesoku_actors.tools.shell import Leftovers, ShellOptions, add_shell_tool
from kesoku_actors.tools.shell.kernel import Machine
from kesoku_actors.tools.shell.process_table import process
from tests.paths.house import Home, at_home
from tests.paths.test_clear import wiped

SERVE = Call(name="run_shell_command", arguments={"command": "sleep 600 & echo hi"})


@asynccontextmanager
async def with_a_shell(folder: Path, *then: Say | Stall) -> AsyncIterator[Home]:
    registry, leftovers = ToolRegistry(), Leftovers(grace_s=0.3)
    options = ShellOptions(environment={"PATH": os.environ["PATH"]}, leftovers=leftovers)
    add_shell_tool(registry, options, owner="tests")
    async with at_home(folder, [(SERVE,), then], registry=registry, leftovers=leftovers) as home:
        yield home


async def left(home: Home) -> tuple[Message, int]:
    """Have a command leave a process; return the message that asked for it, and the process."""
    asked = await home.say("Serve it.")
    result = await home.until(lambda row: row.type is Type.TOOL_RESULT)
    (survivor,) = result.metadata["survivors"]
    await home.ended(asked)
    return asked, survivor["pid"]


async def test_what_a_command_left_lives_on_with_its_session_and_ends_when_it_is_cleared(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with with_a_shell(tmp_path, Say(text="It runs.")) as home:
            asked, pid = await left(home)
            assert process(pid) is not None
            await home.gateway.clear(asked.session_id)
            await wiped(home, asked.id)
            assert process(pid) is None


async def test_the_receipt_of_a_clear_does_not_say_that_it_lives_on(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with with_a_shell(tmp_path, Say(text="Now"), Stall()) as home:
            asked = await home.say("Serve it.")
            result = await home.until(lambda row: row.type is Type.TOOL_RESULT)
            (survivor,) = result.metadata["survivors"]
            cleared = await home.gateway.clear(asked.session_id)
            assert isinstance(cleared, Stop)
            receipt = await home.gateway.stop_receipt(cleared)
            assert (receipt.ended, receipt.survivors) == ((asked.id,), ())
            await wiped(home, asked.id)
            assert process(survivor["pid"]) is None


async def test_what_a_command_left_ends_with_the_program(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with with_a_shell(tmp_path, Say(text="It runs.")) as home:
            _asked, pid = await left(home)
            assert process(pid) is not None
        assert process(pid) is None


async def test_what_a_command_left_ends_when_the_program_begins_again_after_a_kill(tmp_path: Path) -> None:
    with trio.fail_after(60):
        registry = ToolRegistry()
        # That life hears of nothing that was left, as if it had been killed before it could end it.
        options = ShellOptions(environment={"PATH": os.environ["PATH"]}, leftovers=Leftovers())
        add_shell_tool(registry, options, owner="tests")
        async with at_home(tmp_path, [(SERVE,), (Say(text="It runs."),)], registry=registry) as home:
            _asked, pid = await left(home)
        assert process(pid) is not None
        async with with_a_shell(tmp_path):
            assert process(pid) is None


class Deserted(Machine):
    """A machine on which no command runs."""

    def pids(self) -> list[int]:
        return []


async def test_a_start_reads_no_commands_where_none_can_have_outlived_the_program() -> None:
    async def every_command() -> tuple[()]:
        raise AssertionError("every command ever run was read")

    leftovers = Leftovers(kernel=Deserted())
    with trio.fail_after(60):
        async with run_system(SupervisorSpec(id="root", children=(leftovers.spec(every_command),))):
            pass
