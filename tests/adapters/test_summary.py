"""The last line."""

from __future__ import annotations

import pytest

from kesoku_actors.adapters.terminal import ChatState, TurnSummary, summary_line
from kesoku_actors.adapters.terminal.summary import summarize
from kesoku_actors.protocol import Step, StepState, StoredStep, Usage
from tests.adapters.world import answer, call, person


def stored(root_id, index, usage):
    step = Step(inference_id=f"i{index}", provider="p", model="m", state=StepState.FINISHED, usage=usage)
    return StoredStep(root_id=root_id, index=index, step=step)


def test_a_summary_counts_one_turn_alone():
    rows = [person(1), call(2, "m1", "f", {}), call(3, "m1", "f", {}), answer(4, "m1", "x"), call(5, "m9", "f", {})]
    steps = [
        stored("m1", 1, Usage(input=1000, output=20, thinking=5, cost=0.5)),
        stored("m1", 2, Usage(input=1500, cached=900, output=30, cost=0.25)),
        stored("m1", 3, Usage()),
        stored("m9", 1, Usage(input=7)),
    ]
    assert summarize(rows, steps, "m1", ChatState.ANSWERED, 2.5) == TurnSummary(
        turns=3,
        context_tokens=1500,
        tools=2,
        tokens=2550,
        cached=900,
        thinking=5,
        cost=0.75,
        seconds=2.5,
        state=ChatState.ANSWERED,
    )


def test_what_no_provider_counted_is_unknown():
    summary = summarize([], [], "m1", ChatState.ERROR, 0.04)
    assert (summary.context_tokens, summary.tokens) == (None, None)
    assert summary_line(summary) == "0 turns · context ? · 0 tools · tokens ? · 0.0 s 🛑"


@pytest.mark.parametrize(("state", "sign"), [(state, "⚡" if state == "answered" else "🛑") for state in ChatState])
def test_the_last_line_names_everything(state, sign):
    summary = TurnSummary(turns=1, context_tokens=12_340, tools=2, tokens=45_678, seconds=3.21, state=state)
    assert summary_line(summary) == f"1 turn · context 12.3K · 2 tools · tokens 45.7K · 3.2 s {sign}"


def test_the_last_line_tells_what_was_cached_what_was_thought_and_what_it_cost_where_that_is_known():
    summary = TurnSummary(
        turns=1,
        context_tokens=12_340,
        tools=0,
        tokens=45_678,
        cached=8_000,
        thinking=400,
        cost=0.0123,
        seconds=1.0,
        state=ChatState.ANSWERED,
    )
    words = "1 turn · context 12.3K · 0 tools · tokens 45.7K (8.0K cached, 0.4K thinking) · $0.0123 · 1.0 s ⚡"
    assert summary_line(summary) == words
