"""A talk that is kept between requests is sent as if it were made anew each time, whatever happens to its history."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings

from kesoku_actors.llm.kept_talk import GRAIN, KeptTalks, write
from kesoku_actors.llm.port import Purpose, StepContent
from kesoku_actors.protocol import Type

from ..draws import examples
from .changing_sessions import OTHER_TOOL, WIRES, followed_by, long_talk, rows_made, seen
from .examples import DATE_TOOL, answered, called, notice, result, said


@pytest.mark.parametrize("name", WIRES)
def test_a_request_that_goes_on_equals_the_one_made_anew(name: str) -> None:
    total: Counter[str] = Counter()

    @given(seen(name))
    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck), deadline=None)
    def play(counts: Counter[str]) -> None:
        total.update(counts)

    play()
    assert total["gone on with"] > total["requests"] / 10, total
    assert total["given up"] > 10, total
    assert total["repaired"] > 20, total


@pytest.mark.parametrize("name", WIRES)
def test_of_a_long_talk_only_what_follows_the_last_answer_is_made(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    assert rows_made(name, request) == 401
    assert rows_made(name, request) == 2, "the last answer may go on, and what was said behind it"
    for number in range(500, 540, 2):
        call = called(number, call_id=f"toolu_{number}")
        request = followed_by(request, call, result(number + 1, call, "Tuesday"))
        assert rows_made(name, request) == 4


@pytest.mark.parametrize("name", WIRES)
def test_a_turn_that_ends_is_all_that_is_made_anew(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    rows_made(name, request)
    bare = tuple(evolve(step, native=None) for step in request.steps)
    ended = followed_by(evolve(request, steps=bare), answered(900, "Tuesday."), said(901, "Thanks."))
    assert rows_made(name, ended) <= 10 + GRAIN, "the turn that ended, its question and what followed"


@pytest.mark.parametrize("name", WIRES)
def test_a_notice_made_again_in_the_same_words_is_no_change(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    summarised = [evolve(request, history=(notice(0, "Summary."), *request.history[200:])) for _ in range(2)]
    assert rows_made(name, summarised[0]) == 202
    assert rows_made(name, summarised[1]) == 2


@pytest.mark.parametrize("name", WIRES)
def test_an_argument_that_equals_another_and_reads_differently_is_a_change(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    rows_made(name, request)
    place = next(place for place, row in enumerate(request.history) if row.type is Type.TOOL_CALL)
    for value in (1, True, 1.0):
        rows = list(request.history)
        rows[place] = evolve(rows[place], metadata={**rows[place].metadata, "tool_arguments": {"zone": value}})
        assert rows_made(name, evolve(request, history=tuple(rows))) > 300


@pytest.mark.parametrize("name", WIRES)
def test_a_result_that_comes_late_or_goes_again_is_read_where_its_call_is(name: str) -> None:
    kept = KeptTalks(compares=True)
    call = called(500, call_id="toolu_500")
    waiting = followed_by(long_talk(name, kept), call, said(501, "Well?"), answered(502, "Wait."), said(503, "Go on."))
    came = followed_by(waiting, answered(504, "I go on."), said(505, "Well?"), result(506, call, "Tuesday"))
    for request in (waiting, came, followed_by(came, answered(507, "Tuesday."), said(508, "Thanks.")), came, waiting):
        rows_made(name, request)


@pytest.mark.parametrize("name", WIRES)
def test_an_answer_that_is_withdrawn_takes_with_it_no_more_than_what_stood_by_it(name: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    rows_made(name, request)
    withdrawn = evolve(request, history=(*request.history[:-2], said(500, "Forget it.")))
    assert rows_made(name, withdrawn) <= 2 * GRAIN, "what is kept is followed by an answer or given up"


@pytest.mark.parametrize("name", WIRES)
def test_a_call_with_the_id_of_one_long_before_gets_another(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    rows_made(name, request)
    for number, id in ((500, "toolu_1"), (503, "toolu_5"), (506, "toolu_500"), (509, "")):
        call = called(number, call_id=id)
        request = followed_by(request, call, result(number + 1, call, "Monday"), said(number + 2, "Again."))
        assert rows_made(name, request) <= 8


@pytest.mark.parametrize("name", WIRES)
def test_a_step_that_is_known_no_more_takes_its_native_content_with_it(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    for steps in (request.steps, (), request.steps, request.steps[:-1]):
        rows_made(name, evolve(request, steps=steps))


@pytest.mark.parametrize("name", WIRES)
def test_a_row_that_stands_twice_is_no_trouble(name: str) -> None:
    kept = KeptTalks(shortest=0, compares=True)
    request = long_talk(name, kept)
    twice = followed_by(
        request, answered(500, "So it is."), request.history[0], answered(501, "As I said."), said(502, "Well.")
    )
    for each in (request, twice, request, twice, evolve(request, history=request.history[:5])):
        rows_made(name, each)


def test_what_a_services_own_tools_did_is_looked_at_each_time() -> None:
    kept = KeptTalks(compares=True)
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    native = {"content": [search, found, {"type": "text", "text": "So it is."}]}
    request = long_talk("claude", kept)
    for number in (500, 502, 504):
        answer = answered(number, "So it is.")
        own = native if number != 502 else None
        step = StepContent(provider="claude", model="claude-haiku-4-5", native=own, message_ids=(answer.id,))
        request = evolve(followed_by(request, answer, said(number + 1, "Go on.")), steps=(*request.steps, step))
        rows_made("claude", request)
    assert write(WIRES["claude"][0](request, "claude-haiku-4-5", {})).repairs, "the same search twice"


@pytest.mark.parametrize("name", WIRES)
def test_without_the_tools_it_was_made_with_a_talk_is_made_anew(name: str) -> None:
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept)
    for tools in ((DATE_TOOL,), (), (DATE_TOOL, OTHER_TOOL)):
        assert rows_made(name, evolve(request, tools=tools)) == 401
        assert rows_made(name, evolve(request, tools=tools)) == 2


@pytest.mark.parametrize(
    ("name", "model"), [("claude", "claude-haiku-4-5"), ("gemini", "gemini-3-pro-preview"), ("openai", "gpt")]
)
def test_a_turn_that_another_model_began_is_gone_on_with(name: str, model: str) -> None:
    kept = KeptTalks()
    request = long_talk(name, kept)
    rows_made(name, request, model)
    for number in range(500, 520, 2):
        call = called(number, call_id=f"toolu_{number}")
        step = StepContent(provider="other", model="m", native={"content": "foreign"}, message_ids=(call.id,))
        request = evolve(followed_by(request, call, result(number + 1, call, "Monday")), steps=(*request.steps, step))
        assert rows_made(name, request, model) == 4
        assert write(WIRES[name][0](request, model, {})).repairs == ()


def test_talks_of_two_models_are_kept_and_no_more() -> None:
    kept = KeptTalks()
    request = long_talk("openai", kept)
    for model in ("a", "b"):
        assert rows_made("openai", request, model) == 401
    for model in ("a", "b"):
        assert rows_made("openai", request, model) == 2
    assert rows_made("openai", request, "c") == 401
    assert kept.rows == 2 * 399
    assert rows_made("openai", request, "a") == 401


def test_nothing_is_kept_of_a_short_talk_nor_of_what_no_turn_asked_for() -> None:
    kept = KeptTalks()
    rows_made("openai", long_talk("openai", kept, turns=15))
    rows_made("openai", evolve(long_talk("openai", kept), purpose=Purpose.SUMMARY))
    assert kept.rows == 0
