"""Calls that go on as jobs (I8, I7, M7, C7): the order of facts, the ends, and the tools to deal with them."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import trio

from kesoku_actors.protocol import JobEnding, Outcome
from kesoku_actors.tools import (
    Ending,
    Settled,
    Started,
    ToolContext,
    ToolOptions,
    ToolOutcome,
    ToolRegistry,
    add_job_tools,
)
from kesoku_actors.tools.shell import ShellOptions, add_shell_tool, clean_environment
from kesoku_actors.tools.shell.process_table import Family, process
from tests.tools.journals import Bench, MemoryJournal, bench, call


async def work(context: ToolContext, seconds: float = 1.0, at_once: bool = False) -> ToolOutcome:
    """Take a while and say so."""
    said: list[str] = ["begun"]
    context.watch(lambda: ToolOutcome(outcome=Outcome.OK, content=" ".join(said)))
    if at_once:
        context.go_on_behind()
    await trio.sleep(seconds)
    said.append("done")
    return ToolOutcome(outcome=Outcome.OK, content=" ".join(said), metadata={"exit_status": 0})


async def look() -> str:
    return "seen"


def patient(**options):
    registry = ToolRegistry()
    registry.add(work, owner="tests", becomes_job=True)
    registry.add(look, owner="tests")
    journal = options.pop("journal", None)
    return bench([], registry=registry, journal=journal, options=ToolOptions(**{"deadline_s": 300.0, **options}))


async def test_the_result_is_durable_before_the_job_is_told_and_its_end_comes_after(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1_000.0))
        await made.heard(Settled, "a")
        assert trio.current_time() == 300.0
        assert made.outcome("a").content.startswith("begun\n[goes on in the background after 300 s, as job1; ")
        await made.journal.end_of("a")
        assert 1_000 <= trio.current_time() < 1_002
    assert made.journal.facts == [
        "started a",
        "Started a",
        "staged a background",
        "Settled a",
        "over a exited",
    ]
    ending, detail, notice = made.journal.over["a"]
    assert (ending, detail) == (JobEnding.EXITED, "exit status 0")
    assert notice.endswith("has ended by itself: exit status 0.\nThe end of what it said:\nbegun done")


async def test_a_call_that_ends_before_its_deadline_is_no_job(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=299.0))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK
    assert made.journal.begun == {}


async def test_a_call_may_ask_to_become_a_job_at_once(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1_000.0, at_once=True))
        await made.heard(Settled, "a")
        assert trio.current_time() == 0.0
        await made.journal.end_of("a")
    assert "as asked, as job1" in made.outcome("a").content


async def test_a_job_gives_its_slot_to_the_next_call(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1e4), call("b", "look"), parallel=1)
        await made.heard(Settled, "a", "b")
        assert trio.current_time() == 300.0
        assert made.tools.running("s") == ()
        assert [job.call_id for job in made.tools.statistics().jobs] == ["a"]


@pytest.mark.parametrize("delay_s", [0.5, 2.0])
async def test_a_call_that_ends_while_its_job_is_being_stored_has_one_result_and_one_end(autojump_clock, delay_s):
    async with patient(journal=MemoryJournal(delay_s=delay_s)) as made:
        made.start(call("a", "work", seconds=300.2))
        await made.heard(Settled, "a")
        await made.journal.end_of("a")
    assert [fact for fact in made.journal.facts if fact.startswith(("staged", "over"))] == [
        "staged a background",
        "over a exited",
    ]


async def test_a_store_that_is_away_or_loses_replies_changes_nothing(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1_000.0))
        await made.heard(Started, "a")
        await trio.sleep(290)
        made.journal.away = True
        await trio.sleep(60)
        made.journal.away, made.journal.loses_replies = False, 1
        await made.heard(Settled, "a")
        await trio.sleep(600)
        made.journal.away = True
        await trio.sleep(200)
        made.journal.away, made.journal.loses_replies = False, 1
        await made.journal.end_of("a")
    assert [fact for fact in made.journal.facts if fact.startswith(("staged", "over"))] == [
        "staged a background",
        "over a exited",
    ]


async def test_where_too_many_jobs_run_the_next_is_ended_at_its_deadline(autojump_clock):
    async with patient(max_jobs=2) as made:
        made.start(*(call(id, "work", seconds=1e4) for id in "abc"))
        await made.heard(Settled, "a", "b", "c")
    outcomes = sorted(made.outcome(id).outcome for id in "abc")
    assert outcomes == [Outcome.BACKGROUND, Outcome.BACKGROUND, Outcome.ERROR]
    (refused,) = [made.outcome(id) for id in "abc" if made.outcome(id).outcome is Outcome.ERROR]
    assert refused.content.endswith("[ended at its deadline of 300 s: 2 jobs run in this session already]")


async def test_force_ends_the_jobs_of_its_turn_alone(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1e4))
        other = call("b", "work", seconds=1e4)
        made.start(type(other)(call_id="b", session_id="s", root_id="later", name="work", arguments={"seconds": 1e4}))
        await made.heard(Settled, "a", "b")
        made.tools.end_jobs("s", root_id="root")
        await made.journal.end_of("a")
        assert made.journal.over["a"][0] is JobEnding.FORCED
        assert "b" not in made.journal.over


async def test_a_clear_ends_all_jobs_of_its_session_and_waits_for_it(autojump_clock):
    async with patient(journal=MemoryJournal(delay_s=0.5)) as made:
        made.start(call("a", "work", seconds=1e4), call("b", "work", seconds=1e4))
        made.tools.attach("other", made.sink)
        made.start(call("c", "work", session_id="other", seconds=1e4))
        await made.heard(Settled, "a", "b", "c")
        await made.tools.clear_jobs("s")
        assert {id: over[0] for id, over in made.journal.over.items()} == {
            "a": JobEnding.CLEARED,
            "b": JobEnding.CLEARED,
        }


async def test_a_stop_of_the_program_ends_jobs_as_soon_as_no_call_runs(autojump_clock):
    told: list[str] = []
    async with patient(shutdown_grace_s=180.0, tell=told.append) as made:
        made.start(call("a", "work", seconds=1e5))
        await made.heard(Settled, "a")
        made.start(call("b", "work", seconds=50.0))
        await made.heard(Started, "b")
        asked = trio.current_time()
        made.tools.shut_down()
        await made.heard(Settled, "b")
    assert made.outcome("b").outcome is Outcome.OK
    assert made.journal.over["a"][0] is JobEnding.SHUTDOWN
    assert 50 <= trio.current_time() - asked < 55
    assert told == ["job1 was ended because the program stops: "]


async def test_a_job_alone_keeps_no_program_from_ending(autojump_clock):
    async with patient(shutdown_grace_s=180.0) as made:
        made.start(call("a", "work", seconds=1e5))
        await made.heard(Settled, "a")
        asked = trio.current_time()
    assert trio.current_time() - asked < 1
    assert made.journal.over["a"][0] is JobEnding.SHUTDOWN


async def test_the_first_reason_of_an_end_stands(autojump_clock):
    async with patient() as made:
        made.start(call("a", "work", seconds=1e5))
        await made.heard(Settled, "a")
        made.tools.end_jobs("s", Ending.CLEARED)
        made.tools.end_jobs("s")
        await made.journal.end_of("a")
    assert made.journal.over["a"][0] is JobEnding.CLEARED


# With real commands.

A, B, C = (f"{name}.{os.getpid()}" for name in "abc")
run = partial(call, name="run_shell_command")


@pytest.fixture
def shell(tmp_path: Path):
    """The tool actor with the shell tool, whose long commands become jobs, and the tools to deal with them."""

    def made(**options):
        registry = ToolRegistry()
        environment = clean_environment({"PATH": os.environ["PATH"]})
        add_shell_tool(registry, ShellOptions(environment=environment, end_grace_s=0.3), owner="tests")
        return bench([], registry=registry, workspace=tmp_path, options=ToolOptions(**options))

    return made


async def said(made: Bench, id: str, name: str, **arguments: object) -> str:
    """Call a tool and return what it says."""
    made.start(call(id, name, **arguments))
    await made.heard(Settled, id)
    return made.outcome(id).content


async def test_a_command_goes_on_at_its_deadline_says_more_and_ends(shell, tmp_path):
    os.mkfifo(tmp_path / "go")
    async with shell(deadline_s=2.0, mask=lambda text: text.replace("hunter2", "***")) as made:
        add_job_tools(made.tools.registry, lambda: made.tools)
        made.start(run(A, command="echo hunter2 begins; cat go; echo all done; exit 3"))
        await made.heard(Settled, A)
        staged = made.outcome(A)
        assert staged.outcome is Outcome.BACKGROUND
        assert staged.content.startswith("*** begins\n[goes on in the background after ")
        assert "*** begins\n[bytes 0 to 11 of 11; go on with start=11; job1: running" in await said(
            made, "1", "job_output", job_id="job1"
        )
        assert re.fullmatch(r"job1  running for \d+ s in the background  echo .*", await said(made, "2", "list_jobs"))
        await trio.Path(tmp_path / "go").write_text("more\n")
        await made.journal.end_of(A)
        ending, detail, notice = made.journal.over[A]
        assert (ending, detail) == (JobEnding.EXITED, "exit status 3")
        assert "*** begins\nmore\nall done\n[exit status 3, " in notice
        assert f"All it said is in output/{A}.txt" in notice
        assert (await said(made, "3", "job_output", job_id="1", start=11)).startswith("more\nall done\n[bytes 11 to 25")
        assert "does not run any more: exited (exit status 3)" in await said(made, "4", "job_stop", job_id="job1")
        assert "there is no job 'job7'" in await said(made, "5", "job_output", job_id="job7")


async def test_a_command_started_in_the_background_returns_at_once_and_is_ended_whole_by_name(shell):
    async with shell() as made:
        add_job_tools(made.tools.registry, lambda: made.tools)
        made.start(run(A, command="(trap '' TERM; sleep 600) & sleep 600", background=True))
        await made.heard(Settled, A)
        assert made.outcome(A).outcome is Outcome.BACKGROUND
        pid, _start = made.journal.processes[A]
        assert process(pid) is not None
        assert await said(made, "1", "job_stop", job_id="job 1") == "job1 was ended."
        assert made.journal.over[A][0] is JobEnding.STOPPED
        assert Family(leader=pid, call_id=A).members() == ()


async def test_jobs_are_ended_with_all_their_processes_when_the_program_stops(shell):
    async with shell() as made:
        made.start(run(A, command="sleep 600 & setsid sleep 600", background=True))
        await made.heard(Settled, A)
        pid, _start = made.journal.processes[A]
    assert Family(leader=pid, call_id=A).members() == ()
    assert made.journal.over[A][0] is JobEnding.SHUTDOWN


async def test_output_is_read_in_parts_that_join_between_characters(shell, tmp_path):
    async with shell() as made:
        add_job_tools(made.tools.registry, lambda: made.tools)
        command = "i=0; while [ $i -lt 9000 ]; do echo ünïcödé $i; i=$((i+1)); done; sleep 600"
        made.start(run(A, command=command, background=True))
        await made.heard(Settled, A)
        for number in count(1_000):
            if "ünïcödé 8999" in await said(made, str(number), "job_output", job_id="job1"):
                break
        whole, at, parts = (tmp_path / "output" / f"{A}.txt").read_text(), 0, []
        for number in range(100):
            content = await said(made, str(number), "job_output", job_id="job1", start=at)
            part, _, where = content.rpartition("\n[bytes ")
            parts.append(part)
            at = int(re.search(r"start=(\d+)", where)[1])
            if "more" not in where:
                break
        assert "".join(parts).replace("\n", "") == whole.replace("\n", "")


async def test_a_job_that_said_much_at_once_keeps_all_of_it_in_one_file(shell, tmp_path):
    os.mkfifo(tmp_path / "go")
    async with shell(deadline_s=0.05, output_chars=100) as made:
        made.start(run(A, command="seq 1 5000; cat go"))
        await made.heard(Settled, A)
        await trio.Path(tmp_path / "go").write_text("end\n")
        await made.journal.end_of(A)
    assert f"output/{A}.txt" in made.journal.over[A][2]
    assert (tmp_path / "output" / f"{A}.txt").read_text().split() == [*map(str, range(1, 5001)), "end"]


async def test_a_shell_without_jobs_brings_no_tools_for_them(shell):
    registry = ToolRegistry()
    registry.add(look, owner="tests")
    async with bench([], registry=registry) as made:
        add_job_tools(registry, lambda: made.tools)
    assert registry.names() == ("look",)


async def test_a_command_that_cannot_go_on_in_the_background_says_so_and_names_no_deadline(shell):
    async with shell(max_jobs=1) as made:
        made.start(run(A, command="sleep 600", background=True), run(B, command="sleep 600", background=True))
        await made.heard(Settled, A, B)
        (refused,) = [made.outcome(id) for id in (A, B) if made.outcome(id).outcome is Outcome.ERROR]
        assert refused.content == "[ended as it cannot go on in the background: 1 jobs run in this session already]"


async def test_a_job_is_read_from_its_end_when_more_is_asked_for_than_there_is(shell):
    async with shell(deadline_s=0.5) as made:
        add_job_tools(made.tools.registry, lambda: made.tools)
        made.start(run(A, command="echo begun; sleep 600"))
        await made.heard(Settled, A)
        assert "go on with start=" in await said(made, "2", "job_output", job_id="job1", start=10**30)
