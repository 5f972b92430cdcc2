"""A few runs of the crash campaign, and that its verdicts can be guilty."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from scripts.crashes.points import INSTANT, Kill, Plan, kill_of
from scripts.crashes.remains import Remains
from scripts.crashes.verdict import after_kill, after_term, at_the_end
from tests.draws import seed_of_today

ROOT = Path(__file__).parents[2]
RUNS = 40


def test_forty_runs_of_the_crash_campaign_break_no_promise() -> None:
    seed = seed_of_today()
    command = [sys.executable, "scripts/crash_campaign", "--runs", f"{RUNS}", "--seed", f"{seed}", "--json"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert found["failed"] == []
    assert ended.returncode == 0
    assert sum(found["kills"].values()) > RUNS * 3 / 4, "most kills hit"
    families = {point.partition("/")[0].partition(".")[0] for point in found["passages"]}
    assert families >= {"store", "tool", "clear", "platform", "job", "approval"}


def test_a_campaign_that_is_stopped_prints_what_it_has() -> None:
    command = [sys.executable, "scripts/crash_campaign", "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as campaign:
        assert campaign.stdout is not None
        assert campaign.stderr is not None
        for _run in range(3):
            campaign.stderr.readline()
        campaign.send_signal(signal.SIGINT)
        found, said = campaign.communicate(timeout=60)
    assert campaign.returncode == 130, said
    assert "stopped after 3 of 1000 runs" in said
    assert json.loads(found)["failed"] == []


def row(id: str, role: str, type: str, status: str, **more: Any) -> dict[str, Any]:
    plain = {"external_id": None, "session_id": "s", "content": "", "parent_id": None, "root_id": "q", "metadata": {}}
    return {"id": id, "role": role, "type": type, "status": status, **plain, **more}


QUESTION = row("q", "user", "text", "processed", external_id="cake-2")
CALL = row("c", "assistant", "tool_call", "responded")
RESULT = row("r", "tool", "tool_result", "responded", parent_id="c", content="cake.weigh is done") | {
    "metadata": {"outcome": "ok"}
}
ANSWER = row("a", "assistant", "text", "delivered")
TOLD = row("j", "system", "text", "processed") | {"metadata": {"notice": "job", "job": "job1"}}
NOTE = row("n", "user", "text", "processed", external_id="note-2", content="It is blue.")
GOOD = Remains(
    integrity="ok",
    messages=(QUESTION, CALL, RESULT, ANSWER),
    sessions={"s": "open", "old": "tombstone"},
    chunks={("a", 0): "sent"},
    posted={"cake-2": ("q", "s"), "nut-1": ("gone", "old")},
    cleared=("old",),
    edited=frozenset(),
    withdrawn={},
    attached={},
    attempts=0,
    sent=Counter({("a", 0): 1}),
    runs=Counter({"cake.weigh": 1}),
    folders=frozenset({"s"}),
)
BROKEN: dict[str, Callable[[Remains], Remains]] = {
    "C8: the database": lambda left: evolve(left, integrity="a page is gone"),
    "C1: cake-2 was accepted and is lost": lambda left: evolve(left, messages=left.messages[1:]),
    "O4: call c has 2 results": lambda left: evolve(left, messages=(*left.messages, RESULT | {"id": "r2"})),
    "O4: calls without a result": lambda left: evolve(left, messages=(QUESTION, CALL, ANSWER)),
    "M4: a result has the outcome": lambda left: evolve(
        left, messages=(QUESTION, CALL, RESULT | {"metadata": {"outcome": "lost"}}, ANSWER)
    ),
    "C2: cake-2 is processing": lambda left: evolve(
        left, messages=(QUESTION | {"status": "processing"}, CALL, RESULT, ANSWER)
    ),
    "C4: cake-2 is processed and has 0 answers": lambda left: evolve(left, messages=left.messages[:3]),
    "C3: cake.weigh ran 2 times": lambda left: evolve(left, runs=Counter({"cake.weigh": 2})),
    "C3: cake.weigh is said to have run": lambda left: evolve(left, runs=Counter()),
    "C5: a is delivered and was never sent": lambda left: evolve(left, sent=Counter()),
    "C5: a is pending": lambda left: evolve(left, messages=(*left.messages[:3], ANSWER | {"status": "pending"})),
    "was sent 2 times, and 0 kills": lambda left: evolve(left, sent=Counter({("a", 0): 2})),
    "M7: the cleared session old is closed": lambda left: evolve(left, sessions={"s": "open", "old": "closed"}),
    "M7: rows of the cleared session": lambda left: evolve(
        left, messages=(*left.messages, row("x", "user", "text", "processed", session_id="old", external_id="pie-1"))
    ),
    "M7: the folder of the cleared": lambda left: evolve(left, folders=frozenset({"old"})),
    "M7: the trash": lambda left: evolve(left, folders=frozenset({".trash"})),
    "M6: note-2 was edited and reads": lambda left: evolve(
        left, messages=(*left.messages, NOTE | {"content": "It is bleu."}), edited=frozenset({"note-2"})
    ),
    "M6: note-2 was withdrawn and is there": lambda left: evolve(
        left, messages=(*left.messages, NOTE), withdrawn={"note-2": True}
    ),
    "I8: job1 is told and has 0 notices": lambda left: evolve(left, jobs=(("s", "job1", "c", "told"),)),
    "I8: job1 is over in the end": lambda left: evolve(left, jobs=(("s", "job1", "c", "over"),)),
    "I8: job1 was told of before its result": lambda left: evolve(
        left, messages=(QUESTION, CALL, TOLD, RESULT, ANSWER), jobs=(("s", "job1", "c", "told"),)
    ),
    "M8: the file of map-1 was saved and holds None": lambda left: evolve(left, attached={"map-1": None}),
}


def test_what_keeps_every_promise_is_not_guilty() -> None:
    assert list(at_the_end(GOOD, [])) == []


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_promise_is_told(sentence: str) -> None:
    told = list(at_the_end(BROKEN[sentence](GOOD), []))
    assert any(sentence in one for one in told), told


def test_a_part_may_be_sent_again_only_after_a_kill_between_the_send_and_its_record() -> None:
    killed_between = evolve(GOOD, chunks={("a", 0): "planned"})
    killed_later = evolve(GOOD)
    twice = evolve(GOOD, sent=Counter({("a", 0): 2}))
    assert list(at_the_end(twice, [killed_between])) == []
    assert len(list(at_the_end(twice, [killed_later]))) == 1
    assert len(list(at_the_end(evolve(GOOD, sent=Counter({("a", 0): 3})), [killed_between]))) == 1


def test_what_was_taken_back_is_not_lost() -> None:
    posted = evolve(GOOD, posted={**GOOD.posted, "note-3": ("gone", "s")})
    assert any("note-3" in one for one in at_the_end(posted, []))
    assert list(at_the_end(evolve(posted, withdrawn={"note-3": False}), [])) == []


def test_a_life_that_ended_in_order_has_given_everything_back() -> None:
    assert list(after_term(GOOD)) == []
    assert any("attempt 1" in one for one in after_term(evolve(GOOD, attempts=1)))
    held = evolve(GOOD, messages=(QUESTION | {"status": "processing"}, CALL))
    assert any("kept ['cake-2']" in one for one in after_term(held))


def test_a_life_that_was_killed_owes_no_answer_yet() -> None:
    open_turn = evolve(GOOD, messages=(QUESTION | {"status": "processing"}, CALL), sent=Counter())
    assert list(after_kill(open_turn)) == []


def test_the_point_hit_least_often_is_next() -> None:
    plan = Plan(passages={"a": 3, "b": 1}, seconds=2.0)
    rng = random.Random(0)
    drawn = [kill for _ in range(200) if (kill := plan.draw(rng, {"a": 5, "b": 4})).signal == signal.SIGKILL]
    assert {kill.point for kill in drawn} == {"b", INSTANT}
    assert all(kill.at == 1 for kill in drawn if kill.point == "b")
    assert all(0 <= kill.at <= 2 for kill in drawn if kill.point == INSTANT)


@pytest.mark.parametrize(
    "kill",
    [
        Kill("store.after_commit/Commit(step insert)", 2),
        Kill(INSTANT, 0.25),
        Kill("tool.spawned", 3, signal.SIGTERM),
    ],
)
def test_a_kill_is_read_as_it_is_written(kill: Kill) -> None:
    assert kill_of(str(kill)) == kill
