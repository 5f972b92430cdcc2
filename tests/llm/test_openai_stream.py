"""Chunks of a stream, in the shapes servers really use, become pieces and one reply (P3, R12, R28)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.openai_stream import ChatStream
from kesoku_actors.llm.port import Finish, Piece, ProviderError, Reply
from kesoku_actors.protocol import DeltaKind, Usage

from ..wire.openai_server import chunk, saying

SOURCE = Source(provider="openai")


def play(*chunks: Any, done: bool = True, context_tokens: int | None = None) -> tuple[Reply, list[Piece]]:
    stream = ChatStream(SOURCE, model="m", context_tokens=context_tokens)
    events = [json.dumps(one) for one in chunks] + ["[DONE]"] * done
    pieces = [piece for event in events for piece in stream.feed(event)]
    return stream.reply(), pieces


def deltas(*parts: Any, finish: str = "tool_calls") -> Reply:
    return play(*(chunk({"tool_calls": [part]}) for part in parts), chunk({}, finish))[0]


def part(index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {key: value for key, value in (("index", index), ("id", call_id)) if value is not None} | {
        "function": function
    }


def calls_of(reply: Reply) -> list[tuple[str, str, dict[str, Any]]]:
    assert all(call.invalid is None for call in reply.calls)
    return [(call.id, call.name, dict(call.arguments)) for call in reply.calls]


def test_the_stream_of_the_llama_server_is_read_as_recorded() -> None:
    timings = {"prompt_n": 5, "prompt_ms": 12.5, "predicted_n": 2}
    usage = {
        "completion_tokens": 2,
        "prompt_tokens": 36,
        "total_tokens": 38,
        "prompt_tokens_details": {"cached_tokens": 31},
    }
    reply, pieces = play(*saying("Hel", "lo"), chunk(usage=usage, timings=timings, system_fingerprint="b1"))
    assert (reply.text, reply.finish) == ("Hello", Finish.STOP)
    assert reply.usage == Usage(input=36, cached=31, output=2)
    assert [piece.text for piece in pieces] == ["Hel", "lo"]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_thoughts_come_by_either_name(key: str) -> None:
    reply, pieces = play(chunk({key: "Let me "}), chunk({key: "see."}), chunk({"content": "Yes."}, "stop"))
    assert (reply.thought, reply.text) == ("Let me see.", "Yes.")
    assert [piece.kind for piece in pieces] == [DeltaKind.THOUGHT, DeltaKind.THOUGHT, DeltaKind.TEXT]
    assert reply.native is not None
    assert reply.native[key] == "Let me see."


def test_thoughts_sent_under_both_names_are_heard_once() -> None:
    reply, pieces = play(chunk({"reasoning": "Hm.", "reasoning_content": "Hm."}), chunk({"content": "Yes."}, "stop"))
    assert reply.thought == "Hm."
    assert [piece.text for piece in pieces] == ["Hm.", "Yes."]


WANTED = [("a", "date", {"zone": "UTC"}), ("b", "time", {})]


@pytest.mark.parametrize(
    "parts",
    [
        [
            part(0, "a", "date", ""),
            part(1, "b", "time", "{"),
            part(0, arguments='{"zone":"UTC"}'),
            part(1, arguments="}"),
        ],
        [part(0, "a", "date", '{"zone":"UTC"}'), part(1, "b", "time", "{}")],
        [part(0, "a", "date", '{"zone":"UTC"}'), part(0, "b", "time", "{}")],
        [part(None, "a", "date", '{"zone":'), part(None, None, None, '"UTC"}'), part(None, "b", "time", "{}")],
        [part(None, "a", "date", '{"zone":'), part(None, "a", None, '"UTC"}'), part(None, "b", "time", "{}")],
        [part(0, "a", "date", '{"zone":'), part(0, "a", "date", '"UTC"}'), part(1, "b", "time", "{}")],
        [part(0, "a", "date", {"zone": "UTC"}), part(1, "b", "time", {})],
        [part(0, "a", "date", '{"zone":"UTC"}'), part(0, "a", "date", '{"zone":"UTC"}'), part(1, "b", "time")],
    ],
    ids=["by_index", "whole", "one_index", "no_index", "id_repeated", "id_and_name_repeated", "objects", "block_twice"],
)
def test_two_calls_are_understood_from_every_kind_of_server(parts: list[Any]) -> None:
    assert calls_of(deltas(*parts)) == WANTED


def test_calls_without_any_id_or_index_stay_apart() -> None:
    reply = deltas(part(name="date", arguments='{"zone":'), part(arguments='"UTC"}'), part(name="date", arguments="{}"))
    assert calls_of(reply) == [("", "date", {"zone": "UTC"}), ("", "date", {})]


def test_an_equal_id_with_anything_different_is_two_calls() -> None:
    reply = deltas(part(0, "a", "date", "{}"), part(1, "a", "date", '{"zone":"UTC"}'))
    assert calls_of(reply) == [("a", "date", {}), ("a", "date", {"zone": "UTC"})]


@pytest.mark.parametrize("arguments", ['{"zone":', "[1]", '"text"', "null", "3", "[" * 100_000, '{"n":NaN}'])
def test_arguments_that_are_no_object_make_an_invalid_call(arguments: str) -> None:
    (call,) = deltas(part(0, "a", "date", arguments)).calls
    assert (call.name, call.arguments) == ("date", {})
    assert "not a JSON object" in (call.invalid or "")


def test_a_call_without_a_name_is_invalid() -> None:
    (call,) = deltas(part(0, "a", None, "{}")).calls
    assert call.invalid == "the call names no tool"


def test_a_call_cut_off_by_the_output_limit_is_invalid_and_the_whole_one_is_not() -> None:
    reply = deltas(part(0, "a", "date", "{}"), part(1, "b", "write", '{"text":"Once'), finish="length")
    whole, partial = reply.calls
    assert reply.finish is Finish.LENGTH
    assert whole.invalid is None
    assert "output limit" in (partial.invalid or "")


@pytest.mark.parametrize("arguments", ["", '{"zone":"UT'])
def test_a_stream_that_breaks_in_a_call_is_an_error_and_never_a_call(arguments: str) -> None:
    with pytest.raises(ProviderError) as caught:
        play(chunk({"tool_calls": [part(0, "a", "date", arguments)]}), done=False)
    assert caught.value.kind == "cut"


def test_a_stream_that_ends_without_its_marker_is_an_error_and_never_an_empty_success() -> None:
    with pytest.raises(ProviderError):
        play(chunk({"content": "Hello"}), done=False)
    with pytest.raises(ProviderError):
        play(done=False)


def test_a_finish_reason_is_marker_enough() -> None:
    assert play(*saying("Hello"), done=False)[0].text == "Hello"


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("content_filter", Finish.REFUSED),
        ("weird", Finish.OTHER),
    ],
)
def test_finish_reasons_keep_the_servers_own_word(word: str, finish: Finish) -> None:
    reply, _ = play(*saying("Hello", finish=word))
    assert (reply.finish, reply.finish_reason) == (finish, word)


def test_a_refusal_is_shown_and_marked() -> None:
    reply, pieces = play(chunk({"refusal": "I cannot."}), chunk({}, "stop"))
    assert (reply.text, reply.finish) == ("I cannot.", Finish.REFUSED)
    assert [piece.text for piece in pieces] == ["I cannot."]


def test_half_characters_never_leave_the_stream() -> None:
    reply, pieces = play(chunk({"content": "a\ud83c"}), chunk({"content": "\udfb8 \ud83c"}, "stop"))
    assert reply.text == "a🎸 \N{REPLACEMENT CHARACTER}"
    assert [piece.text for piece in pieces] == ["a", "🎸 "]
    json.dumps(reply.native, ensure_ascii=False).encode()


def test_contents_in_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "image_url"}, {"type": "text", "text": "lo"}]
    assert play(chunk({"content": parts}, "stop"))[0].text == "Hello"


def test_nothing_after_the_end_marker_counts() -> None:
    stream = ChatStream(SOURCE, model="m")
    for event in (json.dumps(saying("Hi")[1]), "[DONE]", json.dumps(saying("Ho")[1]), "garbage"):
        stream.feed(event)
    assert stream.reply().text == "Hi"


def test_extras_beside_a_call_are_kept_for_the_replay() -> None:
    signed = part(0, "a", "date", "{}") | {"extra_content": {"google": {"thought_signature": "sig"}}}
    reply = deltas(signed)
    assert reply.native is not None
    assert reply.native["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "sig"}}


ODD = st.sampled_from([None, True, 0, -1, 3.5, "", "a", "{}", '{"a":1}', [], {}, ["x"], {"text": "t"}, [None]])


def record(**fields: Any) -> st.SearchStrategy[Any]:
    """Draw an object with any of these fields, or something odd in its place."""
    return ODD | st.fixed_dictionaries({}, optional=fields)


CALL = record(index=ODD, id=ODD, function=record(name=ODD, arguments=ODD))
DELTA = record(role=ODD, content=ODD, reasoning=ODD, refusal=ODD, tool_calls=ODD | st.lists(CALL, max_size=2))
CHOICE = record(delta=DELTA, message=DELTA, finish_reason=ODD)
CHUNK = record(choices=ODD | st.lists(CHOICE, max_size=1), usage=record(prompt_tokens=ODD, total_tokens=ODD), error=ODD)


@settings(max_examples=300)
@given(st.lists(CHUNK, max_size=4))
def test_no_json_breaks_it(chunks: list[Any]) -> None:
    try:
        reply, _ = play(*chunks)
    except ProviderError:
        return
    assert all(isinstance(call.arguments, dict) for call in reply.calls)


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_no_text_breaks_it(data: str) -> None:
    stream = ChatStream(SOURCE, model="m")
    with suppress(ProviderError):
        stream.feed(data)


def test_counts_that_cannot_be_are_not_believed() -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": 10**10, "total_tokens": 10**30}
    assert play(*saying("Hi"), chunk(usage=usage))[0].usage == Usage()
    assert play(*saying("Hi"), chunk(usage={"prompt_tokens": 10**9, "completion_tokens": -1}))[0].usage.input == 10**9
