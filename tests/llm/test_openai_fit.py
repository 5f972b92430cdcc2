"""A session that outgrew its model goes on with what fits (P1)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.openai_fit import Reach, fit, size
from kesoku_actors.llm.openai_rules import BEGINNING, broken

SYSTEM = {"role": "system", "content": "Be brief."}


def turn(number: int, length: int = 100, results: int = 0) -> list[dict[str, Any]]:
    """Return a turn of known size, with so many calls."""
    calls = [
        {"id": f"{number}.{at}", "type": "function", "function": {"name": "date", "arguments": "{}"}}
        for at in range(results)
    ]
    step = [{"role": "assistant", "content": None, "tool_calls": calls}] if calls else []
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": "r" * length} for call in calls]
    return [
        {"role": "user", "content": f"question {number} " + "q" * length},
        *step,
        *answers,
        {"role": "assistant", "content": f"answer {number}"},
    ]


def talk(turns: int, **shape: Any) -> list[dict[str, Any]]:
    return [
        SYSTEM,
        *(one for number in range(turns) for one in turn(number, **shape)),
        {"role": "user", "content": "now?"},
    ]


def test_what_fits_is_left_as_it_is() -> None:
    messages = talk(3)
    assert fit(messages, size(messages)).messages == tuple(messages)


def test_the_oldest_turns_go_first_and_the_model_is_told() -> None:
    fitted = fit(talk(20, results=2), 3000)
    assert size(fitted.messages) <= 3000
    assert fitted.messages[0] == SYSTEM
    assert fitted.messages[1]["content"].startswith(BEGINNING)
    assert fitted.messages[-1]["content"] == "now?"
    assert broken(fitted.messages) == []
    assert "left out the oldest" in fitted.repairs[0]


def test_long_results_of_the_newest_turn_are_shortened_in_the_middle() -> None:
    messages = [SYSTEM, *turn(0, length=10_000, results=3), {"role": "user", "content": "now?"}][:-2]
    fitted = fit(messages, 25_000)
    lengths = [len(message["content"]) for message in fitted.messages if message["role"] == "tool"]
    assert size(fitted.messages) <= 25_000
    assert lengths[0] < 1000
    assert lengths[2] == 10_000


def test_what_cannot_be_cut_is_sent_as_it_is() -> None:
    messages = [SYSTEM, {"role": "user", "content": "q" * 5000}]
    assert fit(messages, 100).messages == tuple(messages)


def test_the_cut_stays_in_place_while_a_session_grows() -> None:
    cuts = [fit(talk(turns), 8000).messages[1]["content"] for turns in range(60, 120)]
    assert len(set(cuts)) <= 60 // 4


@given(st.integers(1, 30), st.integers(0, 3), st.integers(1, 3000), st.integers(0, 20_000))
def test_a_cut_history_keeps_the_rules_and_never_grows_beyond_a_remark(
    turns: int, results: int, length: int, most: int
) -> None:
    messages = talk(turns, results=results, length=length)
    fitted = fit(messages, most)
    assert broken(fitted.messages) == []
    assert fitted.messages[-1]["content"].endswith("now?")
    assert size(fitted.messages) <= max(size(messages), most)
    if not fitted.repairs:
        assert fitted.messages == tuple(messages)


def test_a_refusal_with_numbers_teaches_the_ratio_and_the_context() -> None:
    reach = Reach(context_tokens=None)
    assert reach.most_bytes() is None
    reach.refused(10_000, {"n_prompt_tokens": 10_000, "n_ctx": 4096})
    assert reach.most_bytes() == 4096 - 1024


def test_refusals_without_numbers_lower_the_ceiling_each_time() -> None:
    reach = Reach()
    reach.refused(10_000, {})
    assert reach.most_bytes() == 7000
    reach.refused(7000, {"n_ctx": "many"})
    assert reach.most_bytes() == 4900
