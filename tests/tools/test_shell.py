"""The shell tool with real processes: start, output, end, and what is left behind (T2, R14, S14, S17)."""

from __future__ import annotations

import os
import re
import resource
from functools import partial
from pathlib import Path

import pytest
import trio

from kesoku_actors.protocol import Outcome
from kesoku_actors.tools import Settled, Started, ToolOptions
from kesoku_actors.tools.shell import ShellOptions, ShellPolicy, clean_environment, shell_tool
from kesoku_actors.tools.shell.process_table import Family, process, start_time
from tests.tools.journals import bench, call


@pytest.fixture
def shell(tmp_path: Path):
    """The tool actor with the shell tool, in a folder of its own."""

    def made(*, mode: str = "blocklist", grace_s: float = 0.3, **options):
        policy = ShellPolicy(mode=mode, allowlist_patterns=options.pop("allowed", ()))
        tool = shell_tool(
            ShellOptions(
                policy=policy,
                environment=clean_environment({"PATH": os.environ["PATH"], "SECRET_KEY": "hunter2"}, {"GIVEN": "yes"}),
                end_grace_s=grace_s,
            )
        )
        return bench([tool], workspace=tmp_path, options=ToolOptions(**options))

    return made


run = partial(call, name="run_shell_command")

# Processes are found by their call's id, on the whole machine: another run of these tests must have other ids.
A, B = f"a.{os.getpid()}", f"b.{os.getpid()}"


def belonging(pid: int | None, call_id: str):
    return Family(leader=pid, call_id=call_id).members()


def numbered(n: int) -> str:
    return f"{n}.{os.getpid()}"


async def test_what_a_command_prints_and_how_it_ended_reach_the_model(shell):
    async with shell() as made:
        made.start(run(A, command="echo out; echo err >&2; exit 3"))
        await made.heard(Settled, A)
    staged = made.outcome(A)
    assert staged.outcome is Outcome.ERROR
    assert re.fullmatch(r"out\nerr\n\[exit status 3, \d+\.\d s\]", staged.content)
    assert staged.metadata["exit_status"] == 3
    pid, start = made.journal.processes[A]
    assert pid > 0
    assert start


async def test_a_command_runs_in_the_workspace_without_input_and_knows_nothing_of_ours(shell, tmp_path):
    async with shell() as made:
        made.start(run(A, command="pwd; cat; umask; env"))
        await made.heard(Settled, A)
    printed = made.outcome(A).content
    assert printed.startswith(f"{tmp_path}\n0077\n")
    names = {line.split("=")[0] for line in printed.splitlines() if "=" in line}
    assert names <= {"PATH", "TERM", "GIVEN", "KESOKU_CALL", "PWD", "OLDPWD", "SHLVL", "_"}
    assert "hunter2" not in printed


async def test_a_child_in_the_background_holds_nothing_and_is_named(shell):
    async with shell() as made:
        with trio.fail_after(60):
            made.start(run(A, command="sleep 600 & echo hi"))
            await made.heard(Settled, A)
        staged = made.outcome(A)
        assert staged.outcome is Outcome.OK
        (survivor,) = staged.metadata["survivors"]
        os.kill(survivor["pid"], 9)
        assert re.fullmatch(r"hi\n\[exit status 0, \d+\.\d s; still running: \w+ \(pid \d+\)\]", staged.content)
        assert f"(pid {survivor['pid']})" in staged.content


async def test_a_flood_is_cut_kept_whole_in_a_file_and_costs_no_memory(shell, tmp_path):
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    async with shell() as made:
        made.start(run(A, command="echo first; yes | head -c 96M; echo last"))
        await made.heard(Settled, A)
    staged = made.outcome(A)
    assert staged.metadata["output_bytes"] == 96 * 2**20 + len("first\nlast\n")
    assert staged.content.startswith("first\ny\n")
    assert "last\n[exit status 0" in staged.content
    assert len(staged.content) < 20_000
    assert (tmp_path / staged.metadata["output_file"]).stat().st_size == staged.metadata["output_bytes"]
    assert resident() - before < 64 * 2**20


async def test_a_flood_that_ignores_the_polite_request_and_forks_is_ended_at_its_deadline(shell):
    async with shell(deadline_s=0.5) as made:
        made.start(run(A, command="trap '' TERM; echo begun; yes & yes & (setsid yes &) ; yes"))
        await made.heard(Settled, A)
        pid, _start = made.journal.processes[A]
        assert belonging(pid, A) == ()
    staged = made.outcome(A)
    assert (staged.outcome, staged.metadata["reason"]) == (Outcome.ERROR, "deadline")
    assert staged.content.startswith("begun\ny\n")
    assert staged.content.endswith("\n[ended at its deadline of 0.5 s]")
    assert staged.metadata["survivors"] == []


async def test_bytes_that_are_no_text_are_stored_as_valid_text_that_controls_nothing(shell):
    async with shell() as made:
        made.start(run(A, command=r"printf 'a\0b\377\303\050\033[2J\033]0;t\007one\rtwo'"))
        await made.heard(Settled, A)
    assert made.outcome(A).content.startswith("a\\x00b\ufffd\ufffd(one\ntwo\n[exit status 0")


async def test_a_command_that_makes_another_of_itself_again_and_again_is_ended_by_force(shell, tmp_path):
    os.mkfifo(tmp_path / "third")
    (tmp_path / "chain").write_text(
        "[ $1 = 3 ] && echo up > third; [ $1 = 900 ] && exit; sleep 0.02; setsid sh chain $(($1 + 1)) &"
    )
    async with shell() as made:
        made.start(run(A, command="trap '' TERM; sh chain 0; sleep 600"))
        await trio.Path(tmp_path / "third").read_text()
        made.tools.end([A])
        await made.heard(Settled, A)
        pid, _start = made.journal.processes[A]
        assert belonging(pid, A) == ()
    assert made.outcome(A).metadata["survivors"] == []


async def test_a_command_ended_by_its_own_signal_says_so(shell):
    async with shell() as made:
        made.start(run(B, command="echo x; kill -9 $$"))
        await made.heard(Settled, B)
    assert made.outcome(B).metadata["signal"] == 9
    assert re.fullmatch(r"x\n\[ended by signal 9, \d+\.\d s\]", made.outcome(B).content)


async def test_the_deadline_ends_a_group_that_ignores_the_polite_request(shell):
    async with shell(deadline_s=0.5) as made:
        made.start(run(A, command="trap '' TERM; (trap '' TERM; sleep 600) & echo begun; sleep 600"))
        await made.heard(Settled, A)
        pid, _start = made.journal.processes[A]
        assert belonging(pid, A) == ()
    staged = made.outcome(A)
    assert staged.outcome is Outcome.ERROR
    assert staged.metadata["reason"] == "deadline"
    assert staged.content == "begun\n[ended at its deadline of 0.5 s]"


async def test_force_reaches_a_child_that_left_session_and_parent(shell, tmp_path):
    async with shell() as made:
        os.mkfifo(tmp_path / "escaped")  # opening it waits for the other side
        made.start(run(A, command="setsid sh -c 'setsid sleep 600 & echo $! > escaped' ; sleep 600"))
        await made.heard(Started, A)
        escaped = int(await trio.Path(tmp_path / "escaped").read_text())
        assert process(escaped) is not None
        made.tools.end([A])
        await made.heard(Settled, A)
        assert process(escaped) is None
    assert made.outcome(A).outcome is Outcome.INTERRUPTED


CLEARED = "env -i PATH=/usr/bin:/bin KESOKU_CALL=forged setsid"


async def test_the_deadline_ends_what_left_session_parent_and_environment(shell, tmp_path):
    os.mkfifo(tmp_path / "escaped")
    escape = f"({CLEARED} sh -c \"trap '' TERM; echo \\$\\$ > escaped; sleep 600; :\" &) ; sleep 600"
    async with shell(deadline_s=2.0) as made:
        made.start(run(A, command=escape))
        escaped = int(await trio.Path(tmp_path / "escaped").read_text())
        seen = process(escaped)
        assert seen is not None
        await made.heard(Settled, A)
        assert process(escaped) is None
    assert made.outcome(A).metadata["survivors"] == []


async def test_what_left_everything_and_lives_on_is_named_and_belongs_to_its_own_call(shell):
    async with shell() as made:
        made.start(run(A, command=f"({CLEARED} sleep 600 &) ; echo hi"), run(B, command="echo alone"))
        await made.heard(Settled, A, B)
        (survivor,) = made.outcome(A).metadata["survivors"]
        os.kill(survivor["pid"], 9)
    assert f"(pid {survivor['pid']})" in made.outcome(A).content
    assert made.outcome(B).metadata["survivors"] == []


async def test_the_mark_changes_nothing_that_a_command_does(shell):
    async with shell() as made:
        made.start(run(A, command="echo $? $0 $#; ulimit -n; ps -o comm= -p $$; nope\nnope"))
        await made.heard(Settled, A)
    files = str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    assert made.outcome(A).content.splitlines()[:-1] == [
        "0 /bin/sh 0",
        files,
        "sh",
        "/bin/sh: 1: nope: not found",
        "/bin/sh: 2: nope: not found",
    ]


@pytest.mark.parametrize("command", ["# nothing", "\n# nothing\n", ":"])
async def test_a_command_that_does_nothing_succeeds(shell, command):
    async with shell() as made:
        made.start(run(A, command=command))
        await made.heard(Settled, A)
    assert (made.outcome(A).outcome, made.outcome(A).metadata["exit_status"]) == (Outcome.OK, 0)


async def test_what_a_command_has_said_is_in_its_file_while_it_goes_on(shell, tmp_path):
    file = tmp_path / "output" / f"{A}.txt"
    async with shell() as made:
        # It ends only when its first line has come to the file.
        made.start(run(A, command=f"echo first; until grep -q first {file}; do sleep 0.01; done 2>/dev/null; echo"))
        with trio.fail_after(60):
            await made.heard(Settled, A)
    assert file.read_text() == "first\n\n"


@pytest.mark.parametrize("size", [0, 5, 70_000, 700_000])
async def test_all_that_is_said_is_kept_in_order_however_much(shell, tmp_path, size):
    async with shell() as made:
        made.start(run(A, command=f"seq -w 1 {size // 7 + 1}; printf end"))
        await made.heard(Settled, A)
    numbers = size // 7 + 1
    width = len(str(numbers))
    said = "".join(f"{number:0{width}}\n" for number in range(1, numbers + 1))
    assert (tmp_path / "output" / f"{A}.txt").read_text() == f"{said}end"


async def test_the_program_s_end_leaves_no_child(shell):
    async with shell(shutdown_grace_s=0.0) as made:
        made.start(*(run(numbered(n), command="sleep 600 & sleep 600") for n in range(4)))
        await made.heard(Started, *(numbered(n) for n in range(4)))
        for n in range(4):
            await made.journal.process_of(numbered(n))
    assert {made.outcome(numbered(n)).outcome for n in range(4)} == {Outcome.INTERRUPTED}
    assert [belonging(pid, id) for id, (pid, _) in made.journal.processes.items()] == [()] * 4


async def test_fifty_commands_that_took_too_long_leave_no_zombie_and_no_child(shell):
    async with shell(deadline_s=0.3) as made:
        made.start(*(run(numbered(n), command="sleep 600 | sleep 600") for n in range(50)), parallel=25)
        await made.heard(Settled, *(numbered(n) for n in range(50)))
        assert made.journal.processes
        pids = [pid for pid, _start in made.journal.processes.values()]
    assert [pid for pid in pids if start_time(pid) is not None] == []
    assert [one for n in range(50) for one in belonging(None, numbered(n))] == []


async def test_a_program_that_is_not_there_is_an_error_that_names_it(shell):
    async with shell(mode="allowlist", allowed=(".+",)) as made:
        made.start(run(A, command="no-such-program --now"))
        await made.heard(Settled, A)
    assert made.outcome(A).outcome is Outcome.ERROR
    assert "no-such-program" in made.outcome(A).content


async def test_a_refused_command_is_never_started(shell, tmp_path):
    async with shell(mode="allowlist", allowed=(r"^(echo|touch)(\s|$)",)) as made:
        made.start(run(A, command="echo ok; touch canary"), run(B, command="touch 'plain canary'"))
        await made.heard(Settled, A, B)
    assert made.outcome(A).outcome is Outcome.ERROR
    assert "';'" in made.outcome(A).content
    assert made.journal.processes.keys() == {B}
    assert [path.name for path in tmp_path.iterdir()] == ["plain canary"]
