"""Signals to a chat that is at work: the first ends it in order, the next at once, none kills it (C7)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest
from attrs import frozen

LONGEST_S = 60.0
HUNG_UP = 129
SCENARIO = """
inferences = [[{{ call = "run_shell_command", id = "a", arguments = {{ command = '{command}' }} }}]]
"""
CONFIG = """
[agent]
llm = "scripted"
[scripted]
scenario_path = "scenario.toml"
[shell]
sandbox = "off"  # the tool tells through a pipe outside
"""


@frozen(kw_only=True)
class Chat:
    """A chat whose tool runs, as a process of its own."""

    process: subprocess.Popen[str]
    tool: int
    """The end of a pipe whose other end the tool, and whatever it started, holds."""

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def sends_until_it_ends(self, number: int) -> None:
        """Send a signal again and again: one that is not taken yet is one with the next, and it may come first."""
        for _ in range(int(LONGEST_S / 0.5)):
            self.send(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
                return
        raise AssertionError("it does not end")

    def leaves(self) -> int:
        return self.process.wait(LONGEST_S)

    def tool_is_gone(self) -> bool:
        try:
            return os.read(self.tool, 1) == b""
        except BlockingIOError:  # somebody could still write
            return False


@contextmanager
def working(folder: Path, environ: dict[str, str], command: str) -> Iterator[Chat]:
    """Run a chat until its tool has begun `command`."""
    (folder / "config.toml").write_text(CONFIG)
    os.mkfifo(folder / "begun")
    begun = os.open(folder / "begun", os.O_RDONLY | os.O_NONBLOCK)
    (folder / "scenario.toml").write_text(SCENARIO.format(command=f"exec 3> {folder}/begun; echo >&3; {command}"))
    with subprocess.Popen(
        [sys.executable, "-m", "kesoku_actors", "chat", "-c", "config.toml", "Go."],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            select.select([begun], [], [], LONGEST_S)
            assert os.read(begun, 1) == b"\n"
            yield Chat(process=process, tool=begun)
        finally:
            process.kill()
            os.close(begun)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_while_it_stops_ends_everything_at_once(
    tmp_path: Path, environ: dict[str, str], number: signal.Signals
) -> None:
    with working(tmp_path, environ, "sleep 300") as chat:
        chat.send(signal.SIGTERM)
        chat.sends_until_it_ends(number)
        assert chat.tool_is_gone()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_the_exit_code_names_the_signal_that_ended_the_chat(
    tmp_path: Path, environ: dict[str, str], number: signal.Signals, code: int
) -> None:
    with working(tmp_path, environ, "true; sleep 0.1") as chat:
        chat.send(number)
        assert chat.leaves() == code


def test_a_terminal_that_hangs_up_twice_leaves_the_tool_its_time(tmp_path: Path, environ: dict[str, str]) -> None:
    with working(tmp_path, environ, f"until cat {tmp_path}/go; do sleep 0.05; done 2>&-") as chat:
        chat.send(signal.SIGHUP)
        chat.send(signal.SIGTERM)
        chat.send(signal.SIGHUP)
        (tmp_path / "gone").write_text("all is well")
        (tmp_path / "gone").rename(tmp_path / "go")
        assert chat.leaves() == HUNG_UP
    with closing(apsw.Connection(str(tmp_path / "kesoku.db"))) as store:
        [(said,)] = store.execute("SELECT content FROM messages WHERE type = 'tool_result'")
    assert said.startswith("all is well")


def test_what_a_stopped_inference_used_is_told_in_the_summary_and_in_history(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "Sixteen letters." }, { stall = true }]]')
    program = [sys.executable, "-m", "kesoku_actors"]
    with subprocess.Popen(
        [*program, "chat", "--json", "-c", "config.toml", "--llm", "scripted", "Go."],
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            while not json.loads(process.stdout.readline()).get("text", "").endswith("letters."):
                pass
            process.send_signal(signal.SIGINT)
            summary = json.loads(process.stdout.read().splitlines()[-1])
            assert process.wait(LONGEST_S) == 130
        finally:
            process.kill()
    assert (summary["event"], summary["state"], summary["turns"]) == ("summary", "stopped", 1)
    told, said = summary["context_tokens"], summary["tokens"] - summary["context_tokens"]
    assert (told > 0, said > 0) == (True, True)
    show = [*program, "history", "show", "last", "-c", "config.toml"]
    page = subprocess.run(show, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert f"1 step · tokens {told} in, {said} out" in page
