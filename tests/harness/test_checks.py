"""Checkers: each can hold and can fail, and names the two events that show it; searches agree with brute force."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import permutations
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.harness.checks import (
    Answer,
    GaveUp,
    Judgement,
    PropertyFailed,
    Queue,
    Register,
    Span,
    always,
    batch_atomic,
    conserved,
    eventually,
    exactly_once,
    fifo,
    leads_to,
    linearizable,
    never_killed,
    ordered,
    prompt,
    serializable,
    terminal,
)
from kesoku_actors.harness.checks.histories import Operation, operations_of
from kesoku_actors.harness.notes import NoField, Note
from kesoku_actors.harness.strategies import Random
from kesoku_actors.harness.world import World

from .test_control import run


def trace(*events: tuple[Any, ...]) -> list[Note]:
    """Return notes: (kind, fields), or (kind, fields, time, lane step)."""
    notes = []
    for number, (kind, fields, *when) in enumerate(events):
        time, lane_step = (*when, 0.0, 0)[:2] if when else (float(number), number)
        notes.append(
            Note(kind=kind, fields=fields, number=number, step=number, lane="t", lane_step=lane_step, time=time)
        )
    return notes


def sent(item: int, group: str = "a") -> tuple[str, dict[str, Any]]:
    return "sent", {"item": item, "group": group}


def received(item: int, group: str = "a") -> tuple[str, dict[str, Any]]:
    return "received", {"item": item, "group": group}


TOOL = Span(begin="begun", end="ended")
ONE = {"id": 1}
TWO = {"id": 2}

CASES: dict[str, tuple[Callable[[list[Note]], Judgement], Sequence[Any], Sequence[Any], tuple[int, int]]] = {
    "fifo: overtaken": (
        lambda notes: fifo(notes, by="group"),
        [sent(1), sent(2), sent(3, "b"), received(3, "b"), received(1), received(2)],
        [sent(1), sent(2), received(2), received(1)],
        (2, 3),
    ),
    "fifo: twice": (
        lambda notes: fifo(notes, by="group"),
        [sent(1), received(1)],
        [sent(1), received(1), received(1)],
        (1, 2),
    ),
    "ordered": (
        lambda notes: ordered(notes, "rev", key="n", by="group"),
        [("rev", {"n": 1, "group": 1}), ("rev", {"n": 0, "group": 2}), ("rev", {"n": 1, "group": 1})],
        [("rev", {"n": 2, "group": 1}), ("rev", {"n": 9, "group": 2}), ("rev", {"n": 1, "group": 1})],
        (0, 2),
    ),
    "ordered strictly": (
        lambda notes: ordered(notes, "rev", key="n", strictly=True),
        [("rev", {"n": 1}), ("rev", {"n": 2})],
        [("rev", {"n": 1}), ("rev", {"n": 1})],
        (0, 1),
    ),
    "batch_atomic": (
        lambda notes: batch_atomic(notes, opens="open", closes="close"),
        [
            ("open", {"batch": 1}),
            ("row", {"batch": 1}),
            ("close", {"batch": 1}),
            ("open", {"batch": 2}),
            ("close", {"batch": 2}),
        ],
        [("open", {"batch": 1}), ("open", {"batch": 2}), ("close", {"batch": 1}), ("close", {"batch": 2})],
        (0, 1),
    ),
    "batch_atomic: never closed": (
        lambda notes: batch_atomic(notes, opens="open", closes="close"),
        [("open", {"batch": 1}), ("close", {"batch": 1})],
        [("open", {"batch": 1}), ("row", {"batch": 1})],
        (0, 1),
    ),
    "exactly_once: twice": (
        lambda notes: exactly_once(notes, asked="asked", done="done"),
        [("asked", ONE), ("done", ONE)],
        [("asked", ONE), ("done", ONE), ("done", ONE)],
        (1, 2),
    ),
    "exactly_once: never": (
        lambda notes: exactly_once(notes, asked="asked", done="done"),
        [("asked", ONE), ("asked", TWO), ("done", TWO), ("done", ONE)],
        [("asked", ONE), ("asked", TWO), ("done", TWO)],
        (0, 2),
    ),
    "never_killed": (
        lambda notes: never_killed(notes, TOOL),
        [("begun", ONE), ("begun", TWO), ("ended", TWO), ("ended", ONE)],
        [("begun", ONE), ("begun", TWO), ("ended", TWO)],
        (0, 2),
    ),
    "never_killed: by a note": (
        lambda notes: never_killed(notes, TOOL, killed="killed"),
        [("begun", ONE), ("ended", ONE), ("killed", ONE)],
        [("begun", ONE), ("killed", ONE), ("ended", ONE)],
        (0, 1),
    ),
    "terminal": (
        lambda notes: terminal(notes, begins="begun", ends={"done", "failed"}),
        [("begun", ONE), ("begun", TWO), ("failed", TWO), ("done", ONE)],
        [("begun", ONE), ("begun", TWO), ("failed", TWO)],
        (0, 2),
    ),
    "terminal: goes on": (
        lambda notes: terminal(notes, begins="begun", ends={"done"}),
        [("begun", ONE), ("said", ONE), ("done", ONE)],
        [("begun", ONE), ("done", ONE), ("said", ONE)],
        (1, 2),
    ),
    "prompt: in seconds": (
        lambda notes: prompt(notes, "stop", "stopped", within_s=2),
        [("stop", {}, 1.0), ("stopped", {}, 3.0)],
        [("stop", {}, 1.0), ("stopped", {}, 3.5)],
        (0, 1),
    ),
    "prompt: in steps": (
        lambda notes: prompt(notes, "stop", "stopped", within_steps=3),
        [("stop", {}, 0.0, 1), ("stopped", {}, 0.0, 3)],
        [("stop", {}, 0.0, 1), ("stopped", {}, 0.0, 4)],
        (0, 1),
    ),
    "prompt: never": (
        lambda notes: prompt(notes, "stop", "stopped", by="id"),
        [("stop", ONE), ("stopped", ONE)],
        [("stop", ONE), ("stopped", TWO)],
        (0, 1),
    ),
    "conserved": (
        lambda notes: conserved(notes, "balance", total="sum"),
        [("balance", {"sum": 10}), ("other", {}), ("balance", {"sum": 10})],
        [("balance", {"sum": 10}), ("balance", {"sum": 10}), ("balance", {"sum": 9})],
        (0, 2),
    ),
    "always": (
        lambda notes: always(notes, lambda note: note["n"] > 0, kind="n"),
        [("n", {"n": 1}), ("other", {}), ("n", {"n": 2})],
        [("n", {"n": 1}), ("n", {"n": 0})],
        (0, 1),
    ),
    "eventually": (
        lambda notes: eventually(notes, lambda note: note.kind == "ready"),
        [("begin", {}), ("ready", {})],
        [("begin", {}), ("end", {})],
        (0, 1),
    ),
    "leads_to": (
        lambda notes: leads_to(notes, lambda one: one.kind == "asked", lambda one: one.kind == "done", by="id"),
        [("asked", ONE), ("asked", TWO), ("done", TWO), ("done", ONE)],
        [("asked", ONE), ("done", ONE), ("asked", TWO), ("done", ONE)],
        (2, 3),
    ),
    "serializable": (
        serializable,
        [
            ("read", {"transaction": 1, "key": "x", "value": None}),
            ("write", {"transaction": 2, "key": "x", "value": 5}),
            ("commit", {"transaction": 2}),
            ("commit", {"transaction": 1}),
        ],
        [
            ("read", {"transaction": 1, "key": "x", "value": None}),
            ("read", {"transaction": 2, "key": "x", "value": None}),
            ("write", {"transaction": 1, "key": "x", "value": 1}),
            ("write", {"transaction": 2, "key": "x", "value": 2}),
            ("commit", {"transaction": 1}),
            ("commit", {"transaction": 2}),
        ],
        (4, 5),
    ),
    "linearizable": (
        lambda notes: linearizable(notes, Register(0)),
        [
            ("call", {"op": 1, "name": "write", "argument": 1}),
            ("call", {"op": 2, "name": "read"}),
            ("return", {"op": 2, "result": 0}),
            ("return", {"op": 1}),
        ],
        [
            ("call", {"op": 1, "name": "write", "argument": 1}),
            ("return", {"op": 1}),
            ("call", {"op": 2, "name": "read"}),
            ("return", {"op": 2, "result": 0}),
        ],
        (0, 3),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_checker_can_hold_and_can_fail_and_names_the_two_events(case: str) -> None:
    check, good, bad, witnesses = CASES[case]
    judgement = check(trace(*good))
    assert judgement.holds, str(judgement)
    assert judgement.cases > 0
    assert judgement.demand() is judgement
    failing = check(trace(*bad))
    assert failing.answer is Answer.FAILS
    assert tuple(note.number for note in failing.witnesses) == witnesses
    with pytest.raises(PropertyFailed) as raised:
        failing.demand()
    assert str(failing.witnesses[1]) in str(raised.value)


@pytest.mark.parametrize("case", CASES)
def test_nothing_noted_is_no_case(case: str) -> None:
    if not case.startswith("eventually"):
        judgement = CASES[case][0]([])
        assert (judgement.holds, judgement.cases) == (True, 0)


def test_a_history_whose_calls_and_returns_do_not_match_is_not_linearizable() -> None:
    call = ("call", {"op": 1, "name": "write", "argument": 1})
    orphan = linearizable(trace(call, ("return", {"op": 2, "result": None})), Register())
    assert (orphan.answer, len(orphan.witnesses)) == (Answer.FAILS, 1)
    twice = linearizable(trace(call, ("return", {"op": 1, "result": None}), call), Register())
    assert (twice.answer, len(twice.witnesses)) == (Answer.FAILS, 2)


def test_one_history_that_is_given_up_does_not_hide_another_one_that_fails() -> None:
    long = [("call", {"op": number, "name": "put", "argument": number, "key": "long"}) for number in range(9)]
    backs = [("return", {"op": number}) for number in range(9)]
    read = [("call", {"op": 99, "name": "get", "key": "long"}), ("return", {"op": 99, "result": "never put"})]
    wrong = [("call", {"op": 100, "name": "get", "key": "short"}), ("return", {"op": 100, "result": "never put"})]
    assert linearizable(trace(*long, *backs, *read), Queue(), budget=500).answer is Answer.INCONCLUSIVE
    judgement = linearizable(trace(*long, *backs, *read, *wrong), Queue(), budget=500)
    assert (judgement.answer, "of 'short'" in judgement.why) == (Answer.FAILS, True)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("commit", {"transaction": 1}), "was committed twice"),
        (("write", {"transaction": 1, "key": "x", "value": 2}), "has a `write` behind its commit"),
        (("read", {"transaction": 1, "key": "x", "value": 1}), "has a `read` behind its commit"),
    ],
)
def test_a_transaction_that_goes_on_behind_its_commit_is_not_serializable(more: Any, why: str) -> None:
    done = [("write", {"transaction": 1, "key": "x", "value": 1}), ("commit", {"transaction": 1})]
    judgement = serializable(trace(*done, more))
    assert (judgement.answer, why in judgement.why) == (Answer.FAILS, True)
    assert [note.number for note in judgement.witnesses] == [1, 2]


def test_a_field_that_a_note_does_not_have_is_told_with_the_note() -> None:
    with pytest.raises(NoField, match="a note without the field 'value': read transaction=1 key='x'"):
        serializable(trace(("read", {"transaction": 1, "key": "x"}), ("commit", {"transaction": 1})))


def test_what_holds_in_fewer_cases_than_were_asked_for_is_no_pass() -> None:
    notes = trace(("asked", ONE), ("done", ONE))
    assert exactly_once(notes, asked="asked", done="done").demand(at_least=1).holds
    with pytest.raises(GaveUp, match="holds in 0 cases, and at least 1 were asked for"):
        exactly_once(notes, asked="asked", done="done", by="nr").demand(at_least=1)


def test_a_total_that_is_not_the_expected_one_is_shown_once() -> None:
    judgement = conserved(trace(("balance", {"sum": 9})), "balance", total="sum", expected=10)
    assert [note.number for note in judgement.witnesses] == [0]


def test_serializable_strictly_keeps_the_order_of_those_that_did_not_overlap() -> None:
    stale = trace(
        ("write", {"transaction": 1, "key": "x", "value": 1}),
        ("commit", {"transaction": 1}),
        ("read", {"transaction": 2, "key": "x", "value": None}),
        ("commit", {"transaction": 2}),
    )
    assert serializable(stale).holds
    assert not serializable(stale, strictly=True).holds


def test_a_transaction_that_was_not_committed_has_not_happened() -> None:
    notes = trace(
        ("write", {"transaction": 1, "key": "x", "value": 1}),
        ("read", {"transaction": 2, "key": "x", "value": None}),
        ("commit", {"transaction": 2}),
    )
    assert serializable(notes).cases == 1


def test_a_search_that_gives_up_is_neither_a_pass_nor_a_failure() -> None:
    calls = [("call", {"op": number, "name": "put", "argument": number}) for number in range(9)]
    backs = [("return", {"op": number}) for number in range(9)]
    reads = [("call", {"op": 99, "name": "get"}), ("return", {"op": 99, "result": "never put"})]
    history = trace(*calls, *backs, *reads)
    judgement = linearizable(history, Queue(), budget=500)
    assert judgement.answer is Answer.INCONCLUSIVE
    assert "500 states" in str(judgement)
    with pytest.raises(GaveUp):
        judgement.demand()
    assert serializable(trace(*many_transactions()), budget=50).answer is Answer.INCONCLUSIVE


def many_transactions() -> list[tuple[str, dict[str, Any]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    for number in range(8):
        events.append(("write", {"transaction": number, "key": number % 3, "value": number}))
        events.append(("commit", {"transaction": number}))
    events.append(("read", {"transaction": 99, "key": 0, "value": "never written"}))
    return [*events, ("commit", {"transaction": 99})]


def explained(operations: Sequence[Operation], model: Any) -> bool:
    """Try every order of every choice of the operations that did not return."""
    count = len(operations)
    certain = {number for number, one in enumerate(operations) if one.back is not None}
    for size in range(len(certain), count + 1):
        for order in permutations(range(count), size):
            if certain <= set(order) and _in_time(operations, order) and _allowed(operations, order, model):
                return True
    return False


def _in_time(operations: Sequence[Operation], order: Sequence[int]) -> bool:
    for place, number in enumerate(order):
        for later in order[place + 1 :]:
            back = operations[later].back
            if back is not None and back.number < operations[number].call.number:
                return False
    return True


def _allowed(operations: Sequence[Operation], order: Iterable[int], model: Any) -> bool:
    states: set[Hashable] = {model.initial()}
    for number in order:
        states = {after for state in states for after in model.follow(state, operations[number])}
    return bool(states)


VALUES = st.integers(0, 1)
REGISTER = st.one_of(
    st.tuples(st.just("write"), VALUES, st.none()),
    st.tuples(st.just("read"), st.none(), VALUES),
    st.tuples(st.just("swap"), st.tuples(VALUES, VALUES), st.booleans()),
)
QUEUE = st.one_of(
    st.tuples(st.just("put"), VALUES, st.none()), st.tuples(st.just("get"), st.none(), st.none() | VALUES)
)


@st.composite
def histories(draw: st.DrawFn, operations: st.SearchStrategy[Any], *, keys: int = 1) -> list[Note]:
    """Draw up to five operations, with calls and returns in any order; some never return."""
    drawn = draw(st.lists(st.tuples(operations, st.integers(0, keys - 1), st.booleans()), min_size=1, max_size=5))
    events: list[tuple[int, str, dict[str, Any]]] = []
    for number, ((name, argument, result), key, returns) in enumerate(drawn):
        call = draw(st.integers(0, 20))
        events.append((call, "call", {"op": number, "name": name, "argument": argument, "key": key}))
        if returns or draw(st.booleans()):
            events.append((call + draw(st.integers(1, 8)), "return", {"op": number, "result": result}))
    events.sort(key=lambda event: event[0])
    return trace(*((kind, fields) for _time, kind, fields in events))


@given(histories(REGISTER))
@settings(max_examples=250)
def test_linearizable_agrees_with_every_order_tried_on_registers(history: list[Note]) -> None:
    assert linearizable(history, Register(0)).holds == explained(operations_of(history), Register(0))


@given(histories(QUEUE))
@settings(max_examples=250)
def test_linearizable_agrees_with_every_order_tried_on_queues(history: list[Note]) -> None:
    assert linearizable(history, Queue()).holds == explained(operations_of(history), Queue())


@given(histories(REGISTER, keys=2))
def test_a_history_is_linearizable_exactly_when_that_of_each_key_is(history: list[Note]) -> None:
    operations = operations_of(history)
    parts = [[one for one in operations if one.key == key] for key in (0, 1)]
    assert linearizable(history, Register(0)).holds == all(explained(part, Register(0)) for part in parts)


@st.composite
def transactions(draw: st.DrawFn) -> list[Note]:
    """Draw up to five transactions on two keys, in any order."""
    step = st.tuples(st.sampled_from(["read", "write"]), st.sampled_from("xy"), st.none() | VALUES)
    drawn = draw(st.lists(st.lists(step, min_size=1, max_size=3), min_size=1, max_size=5))
    left = [
        [
            *((kind, {"transaction": number, "key": key, "value": value}) for kind, key, value in steps),
            ("commit", {"transaction": number}),
        ]
        for number, steps in enumerate(drawn)
    ]
    events = []
    while any(left):
        turn = draw(st.sampled_from([one for one in left if one]))
        events.append(turn.pop(0))
    return trace(*events)


def serial(history: list[Note], *, strictly: bool) -> bool:
    names = {note["transaction"] for note in history}
    notes = {name: [note for note in history if note["transaction"] == name] for name in names}
    for order in permutations(names):
        values: dict[str, Any] = {}
        fits = not strictly or all(
            not notes[later][-1].number < notes[one][0].number
            for place, one in enumerate(order)
            for later in order[place + 1 :]
        )
        for note in (note for name in order for note in notes[name]):
            if note.kind == "write":
                values[note["key"]] = note["value"]
            elif note.kind == "read":
                fits = fits and values.get(note["key"]) == note["value"]
        if fits:
            return True
    return False


@given(transactions(), st.booleans())
@settings(max_examples=250)
def test_serializable_agrees_with_every_order_tried(history: list[Note], strictly: bool) -> None:
    assert serializable(history, strictly=strictly).holds == serial(history, strictly=strictly)


def test_promptness_counts_the_steps_of_who_answers_not_those_of_bystanders() -> None:
    async def main() -> None:
        world = World()
        stop = trio.Event()

        async def bystander() -> None:
            for _ in range(100):
                await trio.lowlevel.checkpoint()

        async def victim() -> None:
            await stop.wait()
            world.note("stopped")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bystander)
            nursery.start_soon(victim)
            await trio.lowlevel.checkpoint()
            world.note("stop")
            stop.set()
        prompt(world.notes, "stop", "stopped", within_steps=2).demand()

    for number in range(30):
        result = run(main, Random(), number)
        assert result.error is None, result.error
