"""A disk that takes nothing more during a turn: it is told once, and keeps nobody (I7, C7)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

CONFIG = """
[agent]
llm = "scripted"
[scripted]
scenario_path = "scenario.toml"
[workspace]
db_path = "k.db"
sessions_dir = "sessions"
"""
LIMITED = "ulimit -f 400; exec {python} -m kesoku_actors chat -c config.toml hello"
TOLD = "waiting for it"


@contextmanager
def waiting_chat(folder: Path, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a chat whose answer does not fit, until it has said so; a limit of the process stands for the disk's."""
    (folder / "config.toml").write_text(CONFIG)
    (folder / "scenario.toml").write_text(f'inferences = [[{{ say = "{"x" * 600_000}" }}]]')
    with subprocess.Popen(
        ["bash", "-c", LIMITED.format(python=sys.executable)],
        cwd=folder,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while TOLD not in (line := process.stderr.readline()):
            assert line, "it ended without a word"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_full_disk_does_not_keep_a_chat_that_is_to_end(
    tmp_path: Path, environ: dict[str, str], number: signal.Signals
) -> None:
    with waiting_chat(tmp_path, environ) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert TOLD not in errors
    assert "Traceback" not in errors


def test_a_full_disk_does_not_keep_whoever_goes_on_pressing(tmp_path: Path, environ: dict[str, str]) -> None:
    with waiting_chat(tmp_path, environ) as process:
        for _ in range(30):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
                break
        assert process.returncode == 130
        assert process.stderr is not None
        assert TOLD not in process.stderr.read()
