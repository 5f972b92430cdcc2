"""What a command may take of the machine, with and without a shell (T2, S17)."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial

import pytest

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools import Settled
from kesoku_actors.tools.shell import ShellOptions, ShellPolicy, shell_tool
from kesoku_actors.tools.shell.limits import Limits
from tests.tools.journals import bench, call

A = f"limits.{os.getpid()}"
run = partial(call, A, "run_shell_command")
SMALL = Limits(processes=40, file_bytes=2**20, data_bytes=2**28, address_bytes=2**30, cpu_s=1)


@pytest.fixture
def shell(tmp_path):
    async def once(command: str, *, mode: str = "blocklist"):
        tool = shell_tool(
            ShellOptions(
                policy=ShellPolicy(mode=mode, allowlist_patterns=(".+$",)),
                environment={"PATH": os.environ["PATH"]},
                limits=SMALL,
            )
        )
        async with bench([tool], workspace=tmp_path) as made:
            made.start(run(command=command))
            await made.heard(Settled, A)
        return made.outcome(A)

    return once


async def test_every_limit_is_set_and_no_core_is_dumped(shell):
    done = await shell("ulimit -c; ulimit -f; ulimit -d; ulimit -v; ulimit -t")
    assert done.content.splitlines()[:5] == ["0", "2048", "262144", "1048576", "1"]


async def test_a_file_stops_growing(shell, tmp_path):
    done = await shell("yes > big")
    assert done.outcome is Outcome.ERROR
    assert (tmp_path / "big").stat().st_size == 2**20


async def test_memory_stops_growing(shell):
    done = await shell("python3 -c 'x = bytearray(2**29)'")
    assert "MemoryError" in done.content


async def test_a_loop_ends(shell):
    done = await shell("while :; do :; done")
    assert done.outcome is Outcome.ERROR


async def test_the_limits_hold_without_a_shell_too(shell, tmp_path):
    done = await shell("dd if=/dev/zero of=big bs=1M count=4", mode="allowlist")
    assert done.outcome is Outcome.ERROR
    assert (tmp_path / "big").stat().st_size == 2**20


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user's place, which only root can")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_fork_bomb_reaches_its_limit():
    bomb = "n=0; while [ $n -lt 200 ]; do sleep 5 & n=$((n + 1)); done; echo unlimited"
    # Root has no such limit, so the bomb is lit by a user whom nobody else is.
    somebody = ("setpriv", "--reuid=54321", "--clear-groups", "/bin/sh", "-c")
    script = f"{{ {SMALL.script()}; }} 2>/dev/null; {bomb}"
    done = subprocess.run([*somebody, script], capture_output=True, text=True, start_new_session=True, check=False)
    subprocess.run([*somebody, "kill -9 -1"], check=False)
    assert "unlimited" not in done.stdout
    assert "fork" in done.stderr


def test_the_limits_of_every_day_leave_room():
    limits = Limits()
    assert limits.processes >= 4096
    assert limits.data_bytes >= 4 * 2**30
    assert limits.file_bytes >= 4 * 2**30
