"""Whatever Claude's stream holds comes back whole and in order, or as an error; nothing of it crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude_stream import LONGEST, ClaudeStream
from kesoku_actors.llm.port import Finish, Piece, ProviderError, Remedy, Reply
from kesoku_actors.protocol import DeltaKind, Usage

from ..wire.claude_server import event, message_events, text, thinking, use

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "kesoku band"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "x"}],
}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a",
    "title": "A",
    "cited_text": "a",
    "encrypted_index": "i",
}


def fed(*events: Mapping[str, Any]) -> tuple[Reply, list[Piece]]:
    stream = ClaudeStream(Source(provider="claude"), model="m")
    pieces = [piece for one in events for piece in stream.feed(one)]
    return stream.reply(), pieces


def begun(index: int, block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        event("content_block_start", index=index, content_block=block),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def test_what_the_services_own_tools_did_stays_in_its_place_and_is_no_call_of_ours() -> None:
    query = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"query": ', '"kesoku band"}')]
    citing = [{"type": "citations_delta", "citation": CITED}, {"type": "text_delta", "text": "Four girls."}]
    reply, _ = fed(
        message_events()[0],
        *begun(0, text(""), {"type": "text_delta", "text": "I search. "}),
        *begun(1, SEARCH | {"input": {}}, *query),
        *begun(2, FOUND),
        *begun(3, text("") | {"citations": []}, *citing),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
        event("message_stop"),
    )
    assert reply.native == {
        "content": [text("I search. "), SEARCH, FOUND, text("Four girls.") | {"citations": [CITED]}]
    }
    assert (reply.text, reply.calls, reply.finish) == ("I search. Four girls.", (), Finish.STOP)


def test_a_block_of_a_kind_not_known_yet_is_kept_as_it_came() -> None:
    block = {"type": "hologram", "light": [1, 2], "content": None}
    grown = {"type": "compaction", "content": None}
    reply, _ = fed(
        *begun(0, block, {"type": "hologram_delta", "light": 3}),
        *begun(1, grown, {"type": "compaction_delta", "content": "In short."}),
        *begun(2, text("Yes.")),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={}),
    )
    assert reply.native == {"content": [block, grown | {"content": "In short."}, text("Yes.")]}


def test_an_answer_that_was_not_streamed_is_the_same_answer() -> None:
    blocks = [thinking("Hm."), text("Yes."), use("date", "toolu_1", zone="UTC")]
    whole = message_events()[0]["message"] | {"content": blocks, "stop_reason": "tool_use", "stop_sequence": None}
    reply, pieces = fed(whole)
    streamed, _ = fed(*message_events(*blocks, stop="tool_use"))
    assert (reply.text, reply.thought, reply.calls, reply.native) == (
        streamed.text,
        streamed.thought,
        streamed.calls,
        streamed.native,
    )
    assert pieces == [Piece(kind=DeltaKind.THOUGHT, text="Hm."), Piece(kind=DeltaKind.TEXT, text="Yes.")]


@pytest.mark.parametrize("written", ['{"zone": "U', "[1]", '"UTC"', "{zone: UTC}", '{"a": NaN}', "nul"])
def test_a_call_whose_input_is_no_whole_object_never_runs(written: str) -> None:
    delta = {"type": "input_json_delta", "partial_json": written}
    reply, _ = fed(
        *begun(0, use("date", "toolu_1"), delta),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={}),
    )
    [call] = reply.calls
    assert call.invalid is not None
    assert call.arguments == {}


LIMITS = ("max_tokens", "model_context_window_exceeded")


@pytest.mark.parametrize("stop", LIMITS)
@pytest.mark.parametrize("deltas", [(), ({"type": "input_json_delta", "partial_json": ""},)], ids=["none", "empty"])
def test_a_call_that_a_limit_cut_off_before_its_input_never_runs(stop: str, deltas: Any) -> None:
    whole = begun(0, use("date", "t1"), {"type": "input_json_delta", "partial_json": '{"zone": "UTC"}'})
    cut = begun(1, use("date", "t2"), *deltas)
    reply, _ = fed(message_events()[0], *whole, *cut, *message_events(stop=stop)[-2:])
    assert [call.invalid is None for call in reply.calls] == [True, False]
    assert "output limit" in str(reply.calls[1].invalid)


def test_a_call_without_arguments_that_nothing_cut_off_runs() -> None:
    reply, _ = fed(message_events()[0], *begun(0, use("date", "t1")), *message_events(stop="tool_use")[-2:])
    assert [(call.name, call.arguments, call.invalid) for call in reply.calls] == [("date", {}, None)]


def test_of_a_refused_answer_no_call_is_kept() -> None:
    reply, _ = fed(*message_events(text("First I"), use("date", "t1", zone="UTC"), stop="refusal"))
    assert (reply.finish, reply.calls, reply.text) == (Finish.REFUSED, (), "First I")


def test_a_window_too_full_for_an_answer_asks_for_a_shorter_history() -> None:
    with pytest.raises(ProviderError) as caught:
        fed(*message_events(stop="model_context_window_exceeded"))
    assert caught.value.remedy is Remedy.COMPACT
    reply, _ = fed(*message_events(text("As far as"), stop="model_context_window_exceeded"))
    assert (reply.finish, reply.text) == (Finish.LENGTH, "As far as")


def test_what_each_part_of_a_paused_message_used_counts() -> None:
    stream = ClaudeStream(Source(provider="claude"), model="m")
    counts = {"input_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3}
    for one in message_events(text("First, "), stop="pause_turn", usage=counts):
        stream.feed(one)
    assert stream.is_paused
    stream.proceed()
    for one in message_events(text("second."), usage=counts):
        stream.feed(one)
    assert stream.reply().usage == Usage(input=60, cached=40, written=6, output=24)


@pytest.mark.parametrize(
    "blocks", [(), (text(" "),), (text("I look."), use("date", "t1"))], ids=["no", "blank", "call"]
)
def test_a_message_that_pauses_with_nothing_or_with_a_call_of_ours_has_ended(blocks: Any) -> None:
    stream = ClaudeStream(Source(provider="claude"), model="m")
    for one in message_events(*blocks, stop="pause_turn"):
        stream.feed(one)
    assert not stream.is_paused
    assert stream.reply().finish is (Finish.CALLS if blocks[1:] else Finish.OTHER)


def test_a_message_of_endlessly_many_blocks_ends() -> None:
    block = text("x" * (LONGEST // 4))
    events = [event("content_block_start", index=index, content_block=block) for index in range(5)]
    with pytest.raises(ProviderError, match="longer than"):
        fed(*events)


def test_a_call_sent_twice_is_one_and_calls_without_an_id_are_as_many_as_came() -> None:
    blocks = [use("date", "a", zone="UTC")] * 2 + [use("date", "a", zone="JST")] + [use("date", "", zone="UTC")] * 2
    reply, _ = fed(*message_events(*blocks, stop="tool_use"))
    assert [(call.id, call.arguments["zone"]) for call in reply.calls] == [
        ("a", "UTC"),
        ("a", "JST"),
        ("", "UTC"),
        ("", "UTC"),
    ]
    assert reply.native == {"content": blocks[1:]}


def test_blocks_that_overlap_are_told_apart_by_their_index() -> None:
    first, second = begun(0, text("")), begun(1, text(""))
    reply, _ = fed(
        first[0],
        second[0],
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": "two"}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "one "}),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={}),
    )
    assert reply.text == "one two"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("half \ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
WORDS = st.sampled_from(
    [
        "text", "thinking", "tool_use", "server_tool_use", "redacted_thinking", "text_delta", "input_json_delta",
        "signature_delta", "citations_delta", "thinking_delta", "compaction_delta", "new",
    ]
)  # fmt: skip
FIELDS = st.sampled_from(
    ["text", "thinking", "partial_json", "signature", "citation", "citations", "id", "name", "input", "content", "data"]
)
THINGS = (
    st.builds(lambda type, fields: {"type": type} | fields, WORDS | JSON, st.dictionaries(FIELDS, JSON, max_size=3))
    | JSON
)
EVENTS = st.one_of(
    st.builds(
        lambda index, block: event("content_block_start", index=index, content_block=block), st.integers(0, 2), THINGS
    ),
    st.builds(lambda index, delta: event("content_block_delta", index=index, delta=delta), st.integers(0, 2), THINGS),
    st.builds(lambda delta, usage: event("message_delta", delta=delta, usage=usage), JSON, JSON),
    st.builds(
        lambda delta: event("message_delta", delta={"stop_reason": delta}), st.sampled_from(["end_turn", "x", None])
    ),
    st.builds(lambda message: event("message_start", message=message), JSON),
    st.builds(lambda content: {"type": "message", "content": content, "stop_reason": "end_turn"}, st.lists(THINGS)),
    st.sampled_from([event("message_stop"), event("ping"), event("error", error={"type": "x"}), {}, event("new")]),
)


@given(st.lists(EVENTS, max_size=8), st.booleans())
@settings(max_examples=400)
def test_no_stream_crashes(events: list[dict[str, Any]], pauses: bool) -> None:
    stream = ClaudeStream(Source(provider="claude"), model="m")
    try:
        for one in events:
            stream.feed(one)
        if pauses:
            stream.proceed()
        reply = stream.reply()
    except ProviderError:
        return
    assert isinstance(reply.text, str)
    assert all(isinstance(call.name, str) and isinstance(call.arguments, Mapping) for call in reply.calls)
