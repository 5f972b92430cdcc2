"""The terminal is given back as it was, whatever ends the talk."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
import trio

from kesoku_actors.adapters.commands import COMMANDS, ModelInfo
from kesoku_actors.adapters.terminal import DescriptorOutput
from kesoku_actors.adapters.terminal.interactive import Answering, Screen, TalkOptions, quiet_keys, run_talk
from kesoku_actors.adapters.terminal.interactive.completion import Completion
from kesoku_actors.adapters.terminal.interactive.editor import Editor
from kesoku_actors.adapters.terminal.interactive.input_rows import Typed
from kesoku_actors.adapters.terminal.interactive.keys import Entered, LeavePressed, NotRemembered, Told
from kesoku_actors.clock import Clock, real_world
from kesoku_actors.protocol import Channel
from tests.paths.house import ROOM, at_home

COMPLETION = Completion(
    commands=COMMANDS, values=dict, list_folder=lambda _path: (), home="/nowhere", working_folder="/nowhere"
)


class Broken(Exception):
    """A bug of ours."""


@contextmanager
def terminal() -> Iterator[tuple[int, TextIO]]:
    """A pseudo-terminal: the person's end, and the program's."""
    master, slave = os.openpty()
    with os.fdopen(slave, "r") as stdin:
        yield master, stdin
    os.close(master)


def modes(stdin: TextIO) -> list[object]:
    return termios.tcgetattr(stdin.fileno())


class BrokenDesk:
    """Breaks when it is asked which models there are."""

    def model_of(self, channel: Channel) -> Answering:
        return Answering(model="m", provider="p")

    def models(self, channel: Channel) -> Sequence[ModelInfo]:
        raise Broken

    async def choose_model(self, channel: Channel, name: str) -> Answering:
        raise Broken

    def compact(self, session_id: str, tell: Callable[[tuple[str, ...]], None]) -> None:
        raise Broken

    def end_compaction(self, session_id: str) -> bool:
        raise Broken

    async def stop_job(self, call_id: str) -> bool:
        raise Broken

    async def work_for(self, channel: Channel) -> None:
        raise Broken

    async def trace(self, session_id: str) -> str:
        raise Broken


def break_quietly(stdin: TextIO) -> None:
    with quiet_keys(stdin):
        assert not termios.tcgetattr(stdin.fileno())[3] & termios.ECHO
        raise Broken


def test_keys_are_not_echoed_while_the_block_runs_and_are_after_it_broke() -> None:
    with terminal() as (_, stdin):
        before = modes(stdin)
        with pytest.raises(Broken):
            break_quietly(stdin)
        assert modes(stdin) == before


def test_an_error_in_a_keys_handler_ends_the_editor_with_it() -> None:
    def tell(_told: Told) -> None:
        raise Broken

    with terminal() as (master, stdin):
        before = modes(stdin)
        os.write(master, b"x\r")
        with pytest.raises(Broken):
            Editor(stdin=stdin, history_path=None, completion=COMPLETION, tell=tell).run()
        assert modes(stdin) == before


def test_the_editor_ends_when_it_is_told_to_even_before_it_began() -> None:
    with terminal() as (_, stdin):
        editor = Editor(stdin=stdin, history_path=None, completion=COMPLETION, tell=lambda _told: None)
        editor.stop()
        editor.run()


def test_ctrl_d_in_an_empty_line_is_told_and_a_key_before_it_is_not_lost(tmp_path: Path) -> None:
    told: list[Told] = []

    def tell(one: Told) -> None:
        told.append(one)
        match one:
            case Typed(text=""):
                os.write(master, b"a\r" if Entered("a") not in told else b"\x04")
            case LeavePressed():
                editor.stop()
            case _:
                pass

    with terminal() as (master, stdin):
        editor = Editor(stdin=stdin, history_path=tmp_path / "history", completion=COMPLETION, tell=tell)
        editor.run()
    assert Entered("a") in told
    assert told[-1] == LeavePressed() or isinstance(told[-1], Typed)
    assert "+a" in (tmp_path / "history").read_text().splitlines()


def test_a_history_that_cannot_be_written_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    told: list[Told] = []

    def tell(one: Told) -> None:
        told.append(one)
        if isinstance(one, Entered):
            editor.stop()

    with terminal() as (master, stdin):
        os.write(master, b"a\r")
        editor = Editor(stdin=stdin, history_path=tmp_path / "none" / "history", completion=COMPLETION, tell=tell)
        editor.run()
    assert Entered("a") in told
    assert any(isinstance(one, NotRemembered) for one in told)


async def test_a_bug_in_the_middle_of_a_talk_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with terminal() as (master, stdin):
        before = modes(stdin)
        screen = Screen(out=DescriptorOutput(stdin.fileno()), clock=Clock(), size=lambda: (80, 24), no_color=True)
        options = TalkOptions(
            channel=ROOM, screen=screen, stdin=stdin, history_path=None, home="/nowhere", working_folder="/nowhere"
        )
        async with at_home(tmp_path) as home:
            with trio.fail_after(60), pytest.RaisesGroup(Broken, flatten_subgroups=True):
                _, no_signals = trio.open_memory_channel[int](0)
                await run_talk(options, gateway=home.gateway, desk=BrokenDesk(), world=real_world(), signals=no_signals)
        assert modes(stdin) == before
        written = os.read(master, 65536).decode()
        assert written.rindex("\x1b[?2004l") > written.rindex("\x1b[?2004h")
        assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
