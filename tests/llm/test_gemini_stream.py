"""Whatever Gemini's stream holds comes back whole and in order, or as an error; nothing of it crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.gemini_stream import LONGEST, GeminiStream
from kesoku_actors.llm.port import Finish, Piece, ProviderError, Reply
from kesoku_actors.protocol import Usage

from ..wire.gemini_server import content, text, thinking, usage, use


def fed(*chunks: Mapping[str, Any]) -> tuple[Reply, list[Piece]]:
    stream = GeminiStream(Source(provider="gemini"), model="m")
    pieces = [piece for chunk in chunks for piece in stream.feed(chunk)]
    return stream.reply(), pieces


def parts(reply: Reply) -> Any:
    assert reply.native is not None
    return reply.native["parts"]


def test_what_the_services_own_tools_did_stays_in_its_place() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(6*7)"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    searched = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}
    reply, _ = fed(
        content(text("I compute. ")),
        content(code),
        content(ran, searched, picture),
        content(text("42."), finish="STOP", groundingMetadata={"webSearchQueries": ["x"]}),
    )
    assert parts(reply) == [text("I compute. "), code, ran, searched, picture, text("42.")]
    assert (reply.text, reply.finish) == ("I compute. 42.", Finish.STOP)


def test_chunks_without_words_say_nothing_and_their_counts_count() -> None:
    nothing: list[dict[str, Any]] = [
        {"candidates": []},
        {"candidates": [{"index": 0}]},
        {"candidates": [{"content": {}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{}, {"text": ""}]}}]},
        {"usageMetadata": {"promptTokenCount": 3}},
    ]
    reply, pieces = fed(*nothing, content(text("Yes."), finish="STOP"), usage(30, 4, 2, 20))
    assert (reply.text, parts(reply), len(pieces)) == ("Yes.", [text("Yes.")], 1)
    assert reply.usage == Usage(input=30, cached=20, output=6, thinking=2)


def test_of_several_candidates_the_first_answers() -> None:
    both = content(text("One."), finish="STOP")
    both["candidates"].insert(0, {"content": {"parts": [text("Two.")]}, "index": 1, "finishReason": "SAFETY"})
    reply, _ = fed(both)
    assert (reply.text, reply.finish_reason) == ("One.", "STOP")


def test_a_signature_beside_a_text_stays_with_it_and_an_empty_part_that_bears_one_is_kept() -> None:
    signed = text("", thoughtSignature="c2ln")
    reply, _ = fed(
        content(thinking("a"), thinking("b")),
        content(text("One, "), text("two", thoughtSignature="YWJj")),
        content(text(" three")),
        content(signed, finish="STOP"),
    )
    assert parts(reply) == [thinking("ab"), text("One, "), text("two", thoughtSignature="YWJj"), text(" three"), signed]


def piece(path: str, *, goes_on: bool = False, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value} | ({"willContinue": True} if goes_on else {})


def test_a_call_that_comes_in_pieces_is_one_part() -> None:
    def calling(*pieces: Mapping[str, Any], goes_on: bool = True, **call: Any) -> dict[str, Any]:
        given = {"partialArgs": list(pieces)} if pieces else {}
        return {"functionCall": call | given | ({"willContinue": True} if goes_on else {})}

    reply, _ = fed(
        content({**calling(name="order", id="c1"), "thoughtSignature": "c2ln"}),
        content(calling(piece("$.dish", stringValue="ra", goes_on=True))),
        content(calling(piece("$.dish", stringValue="men"), piece("$.count", numberValue=2.0))),
        content(calling(piece("$.to[0].name", stringValue="Ann"), piece("$.to[0].age", nullValue="NULL_VALUE"))),
        content(calling(piece("$['is hot']", boolValue=True))),
        content({"functionCall": {}}),
        content(use("date", None, "c2", zone="UTC")),
        content(text(""), finish="STOP"),
    )
    arguments = {"dish": "ramen", "count": 2, "to": [{"name": "Ann", "age": None}], "is hot": True}
    assert [(call.name, call.id, call.arguments, call.invalid) for call in reply.calls] == [
        ("order", "c1", arguments, None),
        ("date", "c2", {"zone": "UTC"}, None),
    ]
    assert parts(reply)[0] == use("order", "c2ln", "c1", **arguments)


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("$.dish", stringValue="ra", goes_on=True)],
        [piece("dish", stringValue="ramen"), {}],
        [piece("$.list[7]", stringValue="ramen"), {}],
        [piece("$.a", stringValue="x"), piece("$.a.b", stringValue="y"), {}],
        [piece("$.a", stringValue="x", numberValue=1.0), {}],
    ],
    ids=["cut", "no path", "a hole", "beneath a text", "two values"],
)
def test_a_call_of_which_pieces_are_missing_or_wrong_never_runs(pieces: list[dict[str, Any]]) -> None:
    ended = pieces[-1] == {}
    chunks = [{"functionCall": {"partialArgs": [one], "willContinue": True}} for one in pieces if one]
    chunks += [{"functionCall": {}}] if ended else []
    reply, _ = fed(
        content({"functionCall": {"name": "order", "willContinue": True}}),
        *map(content, chunks),
        content(text(""), finish="STOP"),
    )
    [call] = reply.calls
    assert call.invalid is not None


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "MODEL_ARMOR"])
def test_of_a_refused_answer_no_call_is_kept(reason: str) -> None:
    reply, _ = fed(content(text("First I"), use("date", zone="UTC"), finish=reason))
    assert (reply.finish, reply.calls, reply.text) == (Finish.REFUSED, (), "First I")


def test_a_call_tells_the_signature_it_came_with() -> None:
    reply, _ = fed(
        content(use("date", "YWJj", "c1"), use("date", None, "c2"), use("date", "ZGVm", "c3"), finish="STOP")
    )
    assert [call.signature for call in reply.calls] == ["YWJj", None, "ZGVm"]


def test_an_answer_of_endlessly_many_parts_ends() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "A" * (LONGEST // 4)}}
    with pytest.raises(ProviderError, match="longer than"):
        fed(*[content(picture)] * 5)


def test_a_call_sent_twice_is_one_and_calls_without_an_id_are_as_many_as_came() -> None:
    twice = use("date", "c2ln", "c1", zone="UTC")
    reply, _ = fed(
        content(twice, {"functionCall": dict(twice["functionCall"])}, use("date", None, "c1", zone="JST")),
        content(use("date", zone="UTC"), use("date", zone="UTC"), finish="STOP"),
    )
    assert [(call.id, call.arguments["zone"]) for call in reply.calls] == [
        ("c1", "UTC"),
        ("c1", "JST"),
        ("", "UTC"),
        ("", "UTC"),
    ]
    assert len(parts(reply)) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("half \ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["date", ""]) | JSON,
        "args": JSON,
        "willContinue": st.booleans(),
        "partialArgs": st.lists(
            st.fixed_dictionaries(
                {"jsonPath": st.sampled_from(["$.a", "$.a[0]", "$.a.b", "$", ""]) | JSON},
                optional={"stringValue": JSON, "numberValue": JSON, "nullValue": JSON, "willContinue": st.booleans()},
            )
            | JSON,
            max_size=3,
        )
        | JSON,
    },
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=3) | JSON,
        "functionCall": CALLS | JSON,
        "thought": JSON,
        "thoughtSignature": JSON,
        "inlineData": JSON,
    },
)
CANDIDATES = st.fixed_dictionaries(
    {"content": st.fixed_dictionaries({"parts": st.lists(PARTS | JSON, max_size=3) | JSON}) | JSON},
    optional={
        "finishReason": st.sampled_from(["STOP", "SAFETY", "MALFORMED_FUNCTION_CALL", "X"]) | JSON,
        "index": JSON,
    },
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(CANDIDATES | JSON, max_size=2) | JSON,
        "usageMetadata": JSON,
        "promptFeedback": JSON,
        "error": JSON,
    },
)


@given(st.lists(CHUNKS, max_size=6))
@settings(max_examples=400)
def test_no_stream_crashes(chunks: list[dict[str, Any]]) -> None:
    stream = GeminiStream(Source(provider="gemini"), model="m")
    try:
        for chunk in [*chunks, content(text("x"), finish="STOP")]:
            stream.feed(chunk)
        reply = stream.reply()
    except ProviderError:
        return
    assert isinstance(reply.text, str)
    assert all(isinstance(call.name, str) and isinstance(call.arguments, Mapping) for call in reply.calls)
