"""What a trace tells of a session: times, ends, reasons, requests and replies, and nothing that is secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Fail, Say, Spend
from kesoku_actors.log import mask_secrets
from kesoku_actors.protocol import CallState, Job, JobState, Message, Outcome
from kesoku_actors.session import TurnLimits
from kesoku_actors.trace import Trace, trace_data
from kesoku_actors.trace.model import Kind, Source, State
from tests.paths.house import Home
from tests.trace.stories import SECRET, Played, busy_day, played


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return trio.run(busy_day, tmp_path_factory.mktemp("day"), clock=MockClock(autojump_threshold=0))


def kinds(trace: Trace, turn: int) -> list[tuple[Kind, State]]:
    return [(item.kind, item.state) for item in trace.turns[turn - 1].items]


def request_of(trace: Trace, number: int) -> list[str]:
    """Return the messages of an exchange, as the page puts them together."""
    exchange = trace.exchanges[number]
    before = [] if exchange.base is None else request_of(trace, exchange.base)[: exchange.same]
    return [*before, *(trace.pool[index] for index in exchange.messages)]


def test_items_stand_in_the_order_in_which_the_model_read_them(day: Played) -> None:
    trace = day.trace()
    assert kinds(trace, 1) == [
        (Kind.PERSON, State.DONE),
        (Kind.INFERENCE, State.DONE),
        (Kind.THOUGHT, State.DONE),
        (Kind.TEXT, State.DONE),
        (Kind.CALL, State.DONE),
        (Kind.CALL, State.FAILED),
        (Kind.CALL, State.DONE),
        (Kind.INFERENCE, State.DONE),
        (Kind.THOUGHT, State.DONE),
        (Kind.CALL, State.DONE),
        (Kind.INFERENCE, State.DONE),
        (Kind.ANSWER, State.DONE),
    ]
    assert kinds(trace, 5) == [
        (Kind.PERSON, State.FAILED),
        (Kind.INFERENCE, State.FAILED),
        (Kind.NOTICE, State.DONE),
    ]


@pytest.mark.parametrize("with_log", [True, False])
def test_times_follow_from_the_log_or_from_the_rows(day: Played, with_log: bool) -> None:
    trace = day.trace(**({} if with_log else {"logs": ()}))
    turn = trace.turns[0]
    spans = [(item.kind, item.begin - turn.began, item.end and item.end - item.begin) for item in turn.items]
    assert [(kind, pytest.approx(begin), pytest.approx(took)) for kind, begin, took in spans if took] == [
        (Kind.INFERENCE, 0.0, 0.6),
        (Kind.CALL, 0.6, 0.4),
        (Kind.CALL, 0.6, 0.4),
        (Kind.CALL, 0.6, 1.2),
        (Kind.CALL, 1.8, 0.4),
        (Kind.INFERENCE, 2.2, 1.12),
    ]
    assert turn.ended - turn.began == pytest.approx(3.32)


def test_tokens_are_summed_and_the_cost_is_known_only_when_all_prices_are(day: Played) -> None:
    trace = day.trace()
    assert (trace.turns[0].tokens.input, trace.turns[0].tokens.output) == (6440, 171)
    cancelled = trace.turns[1].tokens
    assert cancelled.is_known, "by our own count"
    assert trace.tokens.input == 6440 + 2600 + 2700 + cancelled.input
    assert trace.turns[0].cost is None
    priced = day.trace(price=lambda _model, tokens: tokens.output / 100 if tokens.is_known else None)
    assert priced.turns[0].cost == pytest.approx(1.71)
    assert priced.turns[1].cost == pytest.approx(cancelled.output / 100)
    assert [turn.cost is None for turn in priced.turns] == [False, False, False, False, True], "the last was refused"


def test_each_inference_has_its_exact_request_and_reply(day: Played) -> None:
    trace = day.trace()
    assert [exchange.source for exchange in trace.exchanges] == [Source.LOG] * 7
    # A finished turn's thoughts are not sent again.
    assert [len(request_of(trace, number)) for number in range(7)] == [1, 9, 12, 12, 14, 16, 19]
    assert "Two sentences are enough." in request_of(trace, 0)[0]
    assert all(request_of(trace, number)[0] == request_of(trace, 0)[0] for number in range(7))
    assert "the light stayed on" in trace.pool[trace.exchanges[4].response]
    assert "401" in trace.pool[trace.exchanges[6].response]


def test_without_the_log_they_are_rebuilt_from_the_rows_before_them(day: Played) -> None:
    trace = day.trace(logs=())
    assert [exchange.source for exchange in trace.exchanges] == [Source.ROWS] * 7
    assert [len(request_of(trace, number)) for number in range(7)] == [1, 9, 12, 14, 16, 18, 21]
    logged = day.trace()
    assert request_of(trace, 1) == request_of(logged, 1)
    assert trace.pool[trace.exchanges[0].request].startswith("# Rebuilt from the stored rows")
    assert "name: run_command" in trace.pool[trace.exchanges[0].response]
    for path in day.workspace.glob("llm-turn-[1-4].log.yaml"):
        path.rename(path.with_suffix(".gone"))
    try:
        partly = day.trace()
    finally:
        for path in day.workspace.glob("*.gone"):
            path.rename(path.with_suffix(".yaml"))
    assert [exchange.source for exchange in partly.exchanges] == [Source.ROWS] * 4 + [Source.LOG] * 3
    assert [len(request_of(partly, number)) for number in range(7)] == [1, 9, 12, 14, 14, 16, 19]


def test_one_turn_alone_brings_only_its_own_exchanges(day: Played) -> None:
    for logs, messages in (({}, 14), ({"logs": ()}, 16)):
        trace = day.trace(3, **logs)
        assert [turn.number for turn in trace.turns] == [3]
        assert (len(trace.exchanges), trace.turns_in_all) == (1, 5)
        assert len(request_of(trace, 0)) == messages
        assert not [text for text in trace.pool if "And now publish it." in text]
    for number in (0, -1, 6):
        with pytest.raises(IndexError, match="the session has 5"):
            day.trace(number)


def test_known_secrets_are_masked_everywhere(tmp_path: Path) -> None:
    async def leak(key: str) -> str:
        """Leak.

        Args:
            key: any
        """
        await trio.lowlevel.checkpoint()
        return f"{key} is {SECRET}"

    async def talk(home: Home) -> Message:
        message = await home.say(f"My key is {SECRET}.", sender=SECRET)
        await home.ended(message)
        await home.ended(await home.say(f"{SECRET}"))
        return message

    call = Call(name="leak", arguments={"key": SECRET}, id=SECRET)
    inferences: list[Any] = [
        (call,),
        (Say(text=f"Thanks for {SECRET}"),),
        (Fail(kind="auth", message=f"{SECRET} refused"),),
    ]
    for with_log in (True, False):
        (folder := tmp_path / str(with_log)).mkdir()
        session = trio.run(_play, folder, inferences, talk, [leak], clock=MockClock(autojump_threshold=0))
        trace = session.trace(mask=mask_secrets([SECRET]), **({} if with_log else {"logs": ()}))
        text = json.dumps(trace_data(trace))
        assert SECRET not in text
        assert "***" in text


async def _play(folder: Path, inferences: list[Any], talk: Any, tools: list[Any]) -> Played:
    return await played(folder, inferences, talk, tools=tools)


async def test_why_there_is_no_answer_names_the_reason_and_the_last_error(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async def talk(home: Home) -> Message:
        return await home.ended(await home.say("Hello"))

    endless: list[Any] = [(Call(name="run_command", arguments={"command": "x"}), Spend(input=1)) for _ in range(3)]
    session = await played(tmp_path, endless, talk, limits=TurnLimits(max_steps=2))
    (turn,) = session.trace().turns
    assert (turn.status, turn.reason) == ("error", "budget")
    assert turn.failure is not None
    assert turn.failure.startswith("The turn used up its budget: ")


def test_stops_and_interruptions_are_items_of_their_turn(day: Played) -> None:
    trace = day.trace()
    assert [item.title for item in trace.turns[1].items if item.kind is Kind.INTERRUPTION] == [
        "A newer message took over: Shorter, please!"
    ]
    stop, end = trace.turns[3].items[-2:]
    assert (stop.kind, stop.begin - trace.turns[3].began) == (Kind.STOP, pytest.approx(1.5))
    assert (end.kind, end.title) == (Kind.INTERRUPTION, "Stopped by a person")


def test_a_call_that_waited_for_a_person_and_one_that_became_a_job_show_how_long(day: Played) -> None:
    calls = list(day.record.calls)
    first, second = calls[0], calls[1]
    calls[:2] = [
        evolve(first, expires=1.0, decided_by="Ada"),
        evolve(second, state=CallState.WAITING, outcome=None, expires=2.0),
    ]
    job = Job(
        number=7,
        session_id=day.record.session.id,
        call_id=calls[2].call_id,
        title="ls",
        state=JobState.RUNNING,
        began=1_700_000_002.0,
    )
    record = evolve(day.record, calls=tuple(calls), jobs=(job,))
    items = [item for item in day.trace(record=record).turns[0].items if item.kind is Kind.CALL]
    assert [[wait.name for wait in item.waits] for item in items] == [
        ["approval by Ada"],
        ["waits for approval"],
        ["job7 in the background"],
        [],
    ]
    assert items[0].waits[0].end == items[0].begin
    assert (items[1].waits[0].end, items[2].waits[0].end) == (None, None)


def test_every_outcome_of_a_call_has_a_state_of_its_own(day: Played) -> None:
    (position, result) = next(
        (position, row) for position, row in enumerate(day.record.messages) if row.metadata.get("outcome") == "ok"
    )
    seen = set()
    for outcome in Outcome:
        changed = evolve(result, metadata={**result.metadata, "outcome": outcome.value})
        rows = (*day.record.messages[:position], changed, *day.record.messages[position + 1 :])
        items = day.trace(record=evolve(day.record, messages=rows)).turns[0].items
        seen.add(next(item.state for item in items if item.kind is Kind.CALL))
    assert len(seen) == len(Outcome)


async def test_an_inference_that_no_turn_asked_for_stands_outside_with_its_exchange(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    session = await _titled(tmp_path)
    trace = session.trace()
    (aside,) = trace.outside
    assert (aside.kind, aside.state, aside.title) == (Kind.INFERENCE, State.DONE, "scenario → title")
    assert aside.exchange is not None
    assert len(request_of(trace, aside.exchange)) == 2
    assert "state: finished" in trace.pool[trace.exchanges[aside.exchange].response]
    assert session.trace(1).outside == ()


async def test_what_is_not_over_is_open_and_what_waits_stands_outside(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async def talk(home: Home) -> Message:
        first = await home.say("Build.")
        await home.until(lambda row: row.metadata.get("tool_name") == "run_command")
        await home.say("And now?")
        return first

    session = await _unfinished(tmp_path, talk)
    trace = session.trace()
    assert (Kind.CALL, State.OPEN) in kinds(trace, 1)
    assert [item.title for item in trace.outside] == ["And now?"]
    assert json.loads(json.dumps(trace_data(trace)))["outside"][0]["state"] == "open"


async def _titled(folder: Path) -> Played:
    """Play a session whose model is asked for a title."""

    async def talk(home: Home) -> Message:
        asked = await home.ended(await home.say("What is a keeper?"))
        while len(home.model.requests) < 2:
            await trio.testing.wait_all_tasks_blocked()
        return asked

    answer = (Say(text="Somebody who keeps."),)
    return await played(folder, [answer], talk, may_title=lambda _brain: True)


async def _unfinished(folder: Path, talk: Any) -> Played:
    """Read the record while the session is at work."""
    from tests.paths.house import at_home
    from tests.trace.stories import run_command

    async with at_home(
        folder, [(Call(name="run_command", arguments={"command": "make"}),)], tools=[run_command]
    ) as home:
        message = await talk(home)
        record = await home.gateway.reader.record(message.session_id)
        assert record is not None
        return Played(folder, record)
