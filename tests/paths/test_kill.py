"""C1 to C4 with real processes: kill -9, start again, and nothing is lost, doubled or half done."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.paths.process import Daemon, daemon, is_row

BATCH = """
inferences = [
    [
        { call = "run_shell_command", arguments = { command = "echo quick >> runs; echo quick" } },
        { call = "run_shell_command", arguments = { command = "echo slow >> runs; echo $$ > pid; exec sleep 120" } },
        { call = "run_shell_command", arguments = { command = "echo late >> runs" } },
    ],
]

[[rules]]
when_result = ""
moves = [{ say = "I have read the results." }]
"""

THOUGHT = """
inferences = [
    [{ say = "thinking about it for a long time", word_delay_s = 3.0 }],
]
"""


def results(running: Daemon, count: int) -> list[dict[str, Any]]:
    running.wait(lambda event: is_row(event, type="tool_result"), count)
    return [event for event in running.seen if is_row(event, type="tool_result")]


def begun(running: Daemon, posted: dict[str, Any]) -> None:
    running.wait(lambda event: is_row(event, id=posted["id"], status="processing"))


def alive(pid: int) -> bool:
    """Whether it runs; a dead one that nobody has collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_kill_during_a_batch_runs_no_call_twice_and_the_turn_goes_on(tmp_path: Path, durability: str) -> None:
    (tmp_path / "scenario.toml").write_text(BATCH)
    with daemon(tmp_path, durability=durability, agent="parallel_tools = 2") as first:
        posted = first.post("Do three things.")
        workspace = tmp_path / "sessions" / posted["session_id"]
        # The third call starts when the first has ended and its outcome is staged; only the second still runs then.
        first.wait(lambda event: event["event"] == "started", 3)
        while not (workspace / "pid").exists() or "late" not in (workspace / "runs").read_text():
            os.sched_yield()
        first.kill()
    survivor = int((workspace / "pid").read_text())
    assert alive(survivor), "the tool outlives the program that is killed"
    with daemon(tmp_path, durability=durability, agent="parallel_tools = 2") as second:
        assert second.ended(posted["id"])["status"] == "processed"
        outcomes = [result["metadata"]["outcome"] for result in results(second, 3)]
        assert outcomes[0] == "ok", "a staged outcome is published as it was (O3)"
        assert outcomes[1] == "unknown", "a started call whose run is gone is unknown, once (C3)"
        assert outcomes[2] in ("ok", "unknown")
        assert not alive(survivor), "a survivor is ended before its session resumes"
        answers = [event for event in second.seen if is_row(event, status="pending", role="assistant")]
        assert [answer["content"] for answer in answers] == ["I have read the results."]
        assert second.close() == 0
    assert sorted((workspace / "runs").read_text().split()) == ["late", "quick", "slow"]


def test_kill_during_thought_loses_no_message_and_each_is_answered_once(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(THOUGHT)
    with daemon(tmp_path) as first:
        posted = first.post("Think.")
        begun(first, posted)
        first.kill()
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "Done thinking." }]]\n')
    with daemon(tmp_path) as second:
        assert second.ended(posted["id"])["status"] == "processed"
        assert second.close() == 0
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "Another answer." }]]\n')
    with daemon(tmp_path) as third:
        third.ended(third.post("Another question.")["id"])
        answers = [event for event in third.seen if is_row(event, role="assistant")]
        assert [answer["content"] for answer in answers] == ["Done thinking.", "Another answer."]
        assert third.close() == 0


def test_a_message_that_interrupted_before_the_kill_is_answered_after_it(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(BATCH)
    with daemon(tmp_path, agent="parallel_tools = 2") as first:
        build = first.post("Do three things.")
        first.wait(lambda event: event["event"] == "started", 2)
        question = first.post("How far are you?")
        first.kill()
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "As far as the results say." }]]\n')
    with daemon(tmp_path, agent="parallel_tools = 2") as second:
        assert second.ended(question["id"])["status"] == "processed"
        assert second.ended(build["id"])["status"] == "interrupted"
        assert len(results(second, 3)) == 3
        assert second.close() == 0


def test_a_stop_stored_before_the_kill_is_obeyed_before_anything_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(BATCH)
    with daemon(tmp_path, agent="parallel_tools = 2") as first:
        posted = first.post("Do three things.")
        first.wait(lambda event: event["event"] == "started", 2)
        waiting = first.post("And this.")
        first.command(do="stop", session=posted["session_id"])
        later = first.post("A new question.")
        first.kill()
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "New answer." }]]\n')
    with daemon(tmp_path) as second:
        assert second.ended(posted["id"])["metadata"]["reason"] == "stopped"
        assert second.ended(waiting["id"])["metadata"]["reason"] == "stopped"
        assert second.ended(later["id"])["status"] == "processed"
        answers = [event for event in second.seen if is_row(event, role="assistant", status="pending")]
        assert [answer["content"] for answer in answers] == ["New answer."]
        assert second.close() == 0


def test_three_crashes_of_a_turn_end_it_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(THOUGHT)
    with daemon(tmp_path) as first:
        posted = first.post("Think.")
        begun(first, posted)
        first.kill()
    for _ in range(2):
        with daemon(tmp_path) as again:
            begun(again, posted)
            again.kill()
    with daemon(tmp_path) as last:
        ended = last.ended(posted["id"])
        assert (ended["status"], ended["metadata"]["reason"]) == ("error", "attempts")
        assert [event["role"] for event in last.seen if is_row(event, status="pending")] == ["system"]
        assert last.close() == 0


def test_an_orderly_end_gives_the_turn_back_and_the_next_start_takes_it_up(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(THOUGHT)
    with daemon(tmp_path) as first:
        posted = first.post("Think.")
        begun(first, posted)
        assert first.close() == 0
    for _ in range(3):
        with daemon(tmp_path) as again:
            begun(again, posted)
            assert again.close() == 0
    (tmp_path / "scenario.toml").write_text('inferences = [[{ say = "Done thinking." }]]\n')
    with daemon(tmp_path) as last:
        assert last.ended(posted["id"])["status"] == "processed", "attempts do not rise in an orderly end (C7)"
        assert last.close() == 0


SUMMARY = """
repeat = true
context_tokens = 4000
inferences = [[{{ say = "Yes." }}]]
[asides]
summary = [[{{ wait_s = {wait_s} }}, {{ say = "They spoke at length." }}]]
"""


def summaries(folder: Path) -> list[tuple[str, int]]:
    with closing(apsw.Connection(str(folder / "kesoku.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute("SELECT content, level FROM summaries ORDER BY first_root_seq").fetchall()


def talked_until_compacted(running: Daemon) -> dict[str, Any]:
    """Post until a turn waits for a compaction; return what was posted last."""
    for number in range(9):
        posted = running.post(f"{number}: {'All of this was said at length. ' * 110}")
        if "activity" in running.wait(partial(_waits_or_is_answered, posted["id"])):
            return posted
    raise AssertionError("it never becomes long")


def _waits_or_is_answered(message_id: str, event: dict[str, Any]) -> bool:
    return event.get("activity") == "compacting" or is_row(event, id=message_id, status="processed")


def test_kill_during_a_compaction_leaves_nothing_half_and_the_turn_is_answered(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SUMMARY.format(wait_s=3600))
    with daemon(tmp_path) as first:
        posted = talked_until_compacted(first)
        first.kill()
    assert summaries(tmp_path) == []
    (tmp_path / "scenario.toml").write_text(SUMMARY.format(wait_s=0))
    with daemon(tmp_path) as second:
        assert second.ended(posted["id"])["status"] == "processed"
        assert second.close() == 0
    assert summaries(tmp_path) == [("They spoke at length.", 0)]


ASKS = '[tools]\napprove = "risky"'
QUESTION = """
[[rules]]
when_result = ""
moves = [{ say = "I have read the results." }]

[[rules]]
when_said = ""
moves = [
    { call = "run_shell_command", arguments = { command = "echo one >> runs" } },
    { call = "run_shell_command", arguments = { command = "echo two >> runs" } },
]
"""


def asks(running: Daemon) -> list[str]:
    """Wait until two calls wait for a yes, and return them."""
    running.wait(lambda event: event["event"] == "asks", 2)
    return sorted({event["call"] for event in running.seen if event["event"] == "asks"})


def test_a_kill_while_calls_wait_for_a_yes_asks_again_and_runs_each_once(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(QUESTION)
    with daemon(tmp_path, more=ASKS) as first:
        posted = first.post("Do two things.")
        one, two = asks(first)
        first.kill()
    with daemon(tmp_path, more=ASKS) as second:
        second.wait(lambda event: is_row(event, id=posted["id"], status="processing"))
        second.command(do="approve", call=one, yes=True)
        runs = tmp_path / "sessions" / posted["session_id"] / "runs"
        while not runs.exists() or not runs.read_text():
            os.sched_yield()
        second.kill()
    with daemon(tmp_path, more=ASKS) as third:
        third.wait(lambda event: is_row(event, id=posted["id"], status="processing"))
        third.command(do="approve", call=one, yes=False)  # decided before: nothing comes of it
        third.command(do="approve", call=two, yes=False)
        assert third.ended(posted["id"])["status"] == "processed"
        outcomes = [(event["parent_id"], event["metadata"]["outcome"]) for event in results(third, 2)]
        assert outcomes[0] in ((one, "ok"), (one, "unknown"))
        assert outcomes[1] == (two, "error")
        assert third.close() == 0
    assert runs.read_text() == "one\n"


def test_an_end_in_order_leaves_a_question_waiting(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(QUESTION)
    with daemon(tmp_path, more=ASKS) as first:
        posted = first.post("Do two things.")
        one, two = asks(first)
        assert first.close() == 0
    with daemon(tmp_path, more=ASKS) as second:
        second.command(do="waiting", session=posted["session_id"])
        assert asks(second) == [one, two]
        for call in (one, two):
            second.command(do="approve", call=call, yes=True)
        assert second.ended(posted["id"])["status"] == "processed"
        assert second.close() == 0
    assert sorted((tmp_path / "sessions" / posted["session_id"] / "runs").read_text().split()) == ["one", "two"]


JOB = """
[[rules]]
when_said = "was lost"
moves = [{ say = "I have heard of the loss." }]

[[rules]]
when_result = "goes on in the background"
moves = [{ say = "It goes on." }]

[[rules]]
when_said = ""
moves = [{ call = "run_shell_command", arguments = { command = "echo $$ > pid; exec sleep 600", background = true } }]
"""


def is_told(event: dict[str, Any]) -> bool:
    """Whether it is the notice of a job."""
    return is_row(event, role="system") and "job" in event["metadata"]


def test_a_job_whose_program_is_killed_is_ended_and_told_of_once_as_lost(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(JOB)
    with daemon(tmp_path) as first:
        posted = first.post("Serve.")
        assert first.ended(posted["id"])["status"] == "processed"
        pid = tmp_path / "sessions" / posted["session_id"] / "pid"
        while not pid.exists() or not pid.read_text().strip():
            os.sched_yield()
        first.kill()
    survivor = int(pid.read_text())
    for _ in range(2):
        with daemon(tmp_path) as again:
            again.wait(lambda event: is_row(event, role="assistant", content="I have heard of the loss."))
            again.wait(lambda event: is_told(event) and event["status"] == "processed")
            assert not alive(survivor)
            assert len({event["id"] for event in again.seen if is_told(event)}) == 1
            assert again.close() == 0


def test_a_job_ends_with_its_program_and_wakes_nobody(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(JOB)
    with daemon(tmp_path) as first:
        posted = first.post("Serve.")
        assert first.ended(posted["id"])["status"] == "processed"
        assert first.close() == 0
    with daemon(tmp_path) as second:
        notice = second.wait(is_told)
        assert (notice["metadata"]["ending"], notice["metadata"]["wakes"]) == ("shutdown", False)
        assert second.close() == 0
