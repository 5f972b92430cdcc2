"""Whatever a history went through, what is sent keeps the rules (P1)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.openai_rules import broken, repair
from kesoku_actors.llm.talk import EMPTY, NO_RESULT

from ..wire.openai_server import body_problems

IDS = st.sampled_from(["a", "b", "c", "call00000", ""])
TEXTS = st.sampled_from(["Hello", "", " \n", "half \ud83c", "naïve"])
CALLS = st.fixed_dictionaries(
    {
        "id": IDS,
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["date", "", "run it!", "x" * 80]),
                "arguments": st.sampled_from(["{}", '{"zone":"UTC"}', "[1]", "{broken", "", "half \ud83c"]),
            }
        ),
    }
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.just("system"), "content": TEXTS}),
    st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXTS | st.none()}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXTS | st.none(), "tool_calls": st.lists(CALLS, max_size=3)}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": TEXTS}),
)


@settings(max_examples=400)
@given(st.lists(MESSAGES, max_size=10))
def test_any_history_keeps_the_rules_after_the_repair(messages: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(messages)
    repaired = repair(messages)
    assert broken(repaired.messages) == []
    assert list(body_problems({"model": "m", "messages": list(repaired.messages)})) == []
    assert messages == before, "the given history is never changed"
    assert repair(repaired.messages).repairs == ()
    assert bool(repaired.repairs) == bool(broken(messages))


def test_a_history_that_keeps_the_rules_is_returned_as_it_is() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "date", "arguments": "{}"}, "extra": {"signature": "s"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "x", "content": "Monday"},
        {"role": "user", "content": "Thanks"},
    ]
    assert repair(messages).messages == tuple(messages)
    assert repair(messages).repairs == ()


def call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "date", "arguments": "{}"}}


def user(content: str = "Hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content} | ({"tool_calls": list(calls)} if calls else {})


def tool(call_id: str, content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def contents(*messages: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(message["role"], message["content"]) for message in repair(messages).messages]


def test_two_of_four_results_lost_in_a_crash_are_filled_in_call_order() -> None:
    batch = assistant(*map(call, "abcd"))
    repaired = repair([user(), batch, tool("c", "C"), tool("a", "A"), user("on")])
    assert [(one["tool_call_id"], one["content"]) for one in repaired.messages if one["role"] == "tool"] == [
        ("a", "A"),
        ("b", NO_RESULT),
        ("c", "C"),
        ("d", NO_RESULT),
    ]
    assert any("missing result of b" in repair for repair in repaired.repairs)


def test_a_result_without_a_call_is_dropped_and_named() -> None:
    repaired = repair([user(), tool("ghost"), user("on")])
    assert [one["role"] for one in repaired.messages] == ["user"]
    assert any("ghost" in repair for repair in repaired.repairs)


def test_a_late_result_goes_behind_its_call() -> None:
    assert contents(user(), assistant(call("a")), user("and?"), tool("a", "Monday")) == [
        ("user", "Hi"),
        ("assistant", None),
        ("tool", "Monday"),
        ("user", "and?"),
    ]


def test_equal_ids_become_two_pairs() -> None:
    repaired = repair([user(), assistant(call("a"), call("a")), tool("a", "one"), tool("a", "two")])
    ids = [one["id"] for one in repaired.messages[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(one["tool_call_id"], one["content"]) for one in repaired.messages[2:]] == list(
        zip(ids, ["one", "two"], strict=True)
    )


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_empty_contents_are_never_sent(empty: str) -> None:
    assert contents(user(empty), assistant(content=empty), user("Hello")) == [("user", f"{EMPTY}\n\nHello")]


def test_an_empty_history_still_asks_something() -> None:
    assert [role for role, _ in contents()] == ["user"]
