"""Whatever a server answers, on either wire, is an answer or a `ProviderError`: nothing of it ends a worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from kesoku_actors.llm.heard import LONGEST_LINE
from kesoku_actors.llm.port import ProviderError, Remedy, StepContent

from ..llm.examples import answered, asking, ignore, said
from . import claude_server, gemini_server, test_claude, test_gemini
from .claude_server import event
from .loopback import Answer, Stall

JSON = (("content-type", "application/json"),)
SHAPES: Mapping[str, bytes] = {
    "number": b"5",
    "null": b"null",
    "list": b"[1]",
    "text": b'"x"',
    "deep": b"[" * 100_000,
    "empty": b"{}",
    "nothing": b"",
    "cut": b'{"candidates": [{"con',
    "bytes": b'{"a": \xff\xfe}',
    "digits": b'{"usageMetadata": {"promptTokenCount": ' + b"9" * 5000 + b"}}",
}
CLAUDE_EVENTS = ("message_start", "content_block_start", "content_block_delta", "message_delta", "error", "new_kind")
GEMINI_CHUNKS: Mapping[str, Any] = {
    "reason": {"candidates": [{"finishReason": 5}]},
    "parts": {"candidates": [{"content": {"parts": ["x"]}, "finishReason": "STOP"}]},
    "content": {"candidates": [{"content": "x", "finishReason": "STOP"}]},
    "candidates": {"candidates": "x"},
    "call": {"candidates": [{"content": {"parts": [{"functionCall": "x"}]}, "finishReason": "STOP"}]},
    "error text": {"error": "boom"},
    "error null": {"error": None},
    "error list": {"error": [1]},
    "error empty": {"error": {}},
    "error code": {"error": {"code": "x"}},
}


async def each_is_an_error(wire: Any, answers: Mapping[str, Answer], *, key: str) -> dict[str, ProviderError]:
    """Have one model answered by all of them in turn."""
    errors: dict[str, ProviderError] = {}
    async with wire.talking_to(*answers.values()) as (_server, _judge, model):
        for name in answers:
            with pytest.raises(ProviderError) as caught, trio.fail_after(60):
                await model.infer(asking(said(1, "Hi")), ignore)
            errors[name] = caught.value
            assert key not in str(caught.value), name
    return errors


async def test_no_shape_of_claudes_answer_is_more_than_an_error() -> None:
    answers = {f"whole {name}": Answer(headers=JSON, parts=(data,)) for name, data in SHAPES.items()}
    for kind in CLAUDE_EVENTS:
        for name, data in SHAPES.items():
            answers[f"{kind} {name}"] = Answer(parts=(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n",))
    errors = await each_is_an_error(test_claude, answers, key=claude_server.KEY)
    assert {error.remedy for error in errors.values()} == {Remedy.RETRY}


async def test_no_shape_of_geminis_answer_is_more_than_an_error() -> None:
    answers = {f"whole {name}": Answer(headers=JSON, parts=(data,)) for name, data in SHAPES.items()}
    answers |= {name: Answer(parts=(b"data: " + data + b"\r\n\r\n",)) for name, data in SHAPES.items()}
    for name, chunk in GEMINI_CHUNKS.items():
        answers[f"chunk {name}"] = Answer(parts=(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n",))
        compact = json.dumps(chunk, separators=(",", ":")).encode()
        answers[f"compact {name}"] = Answer(parts=(b"data: " + compact + b"\r\n\r\n",))
    errors = await each_is_an_error(test_gemini, answers, key=gemini_server.KEY)
    assert {error.remedy for error in errors.values()} == {Remedy.RETRY}


@pytest.mark.parametrize("wire", [test_claude, test_gemini])
async def test_a_refusal_that_cannot_be_read_is_known_by_its_status(wire: Any) -> None:
    statuses = {400: Remedy.REPAIR, 401: Remedy.TELL, 403: Remedy.TELL, 404: Remedy.TELL, 413: Remedy.COMPACT}
    statuses |= {429: Remedy.RETRY, 500: Remedy.RETRY, 503: Remedy.RETRY, 529: Remedy.RETRY}
    answers = {
        f"{status} {name}": Answer(status=status, headers=JSON, parts=(data,) if data else ())
        for status in statuses
        for name, data in {**SHAPES, "page": b"<html>", "cut in a character": b"\xff\xfe\x00{}"}.items()
    }
    errors = await each_is_an_error(wire, answers, key=claude_server.KEY)
    found = {name: error.remedy for name, error in errors.items()}
    assert found == {name: statuses[int(name.partition(" ")[0])] for name in answers}


@pytest.mark.parametrize("wire", [test_claude, test_gemini])
@pytest.mark.parametrize("rest", [(Stall(),), (b"x" * (1 << 20),) * 8], ids=["stalls", "never ends"])
async def test_a_refusal_is_read_no_longer_than_it_says_why(wire: Any, rest: Any) -> None:
    page = Answer(status=401, headers=JSON, parts=(b"<html>", *rest))
    async with wire.talking_to(page, wire.answering(wire.text("Yes?"))) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught, trio.fail_after(60):
            await model.infer(asking(said(1, "Hi")), ignore)
        assert caught.value.kind == "auth"
        assert (await wire.infer(model)).text == "Yes?"


async def test_a_request_that_geminis_sdk_takes_for_wrong_is_no_garbage_of_the_server() -> None:
    step = StepContent(
        provider="gemini",
        model=gemini_server.MODEL,
        native={"role": "model", "parts": [{"text": "Hello.", "videoMetadata": "x"}]},
        message_ids=("m2",),
    )
    rows = (said(1, "Hi"), answered(2, "Hello."), said(3, "Go on."))
    async with test_gemini.talking_to(gemini_server.answering(gemini_server.text("Yes?"))) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught:
            await test_gemini.infer(model, asking(*rows, steps=(step,)))
        assert caught.value.remedy is Remedy.REPAIR


async def test_a_key_repeated_inside_a_stream_is_not_quoted() -> None:
    words = {"type": "authentication_error", "message": f"no such key: {claude_server.KEY}"}
    begun = claude_server.message_events(claude_server.text("Hel"))[:4]
    error = await test_claude.refused(Answer(parts=(claude_server.sse(*begun, event("error", error=words)),)))
    assert (error.kind, error.remedy) == ("auth", Remedy.TELL)
    assert "***" in str(error)
    assert claude_server.KEY not in str(error)


async def test_a_line_that_never_ends_is_no_stream() -> None:
    piece = b"x" * (1 << 20)
    endless = Answer(parts=(b"data: ", *[piece] * (LONGEST_LINE // len(piece) + 2)))
    error = await test_gemini.refused(endless)
    assert (error.kind, error.remedy) == ("garbage", Remedy.RETRY)
    assert "line" in str(error)


async def test_a_blocked_prompt_is_told_whatever_comes_behind_it_in_the_same_packet() -> None:
    blocked = gemini_server.sse({"promptFeedback": {"blockReason": "SAFETY"}})
    error = await test_gemini.refused(Answer(parts=(blocked + b"data: {not json\r\n\r\n",)))
    assert (error.kind, error.remedy) == ("filtered", Remedy.TELL)


async def test_a_list_of_chunks_is_an_answer_and_one_of_an_error_is_that_error() -> None:
    chunks = [gemini_server.content({"text": "Good "}), gemini_server.content({"text": "morning"}, finish="STOP")]
    refusal = [{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]
    answers = [Answer(headers=JSON, parts=(json.dumps(each, indent=2).encode(),)) for each in (chunks, refusal)]
    async with test_gemini.talking_to(*answers) as (_server, _judge, model):
        assert (await test_gemini.infer(model)).text == "Good morning"
        with pytest.raises(ProviderError) as caught:
            await test_gemini.infer(model)
    assert (caught.value.kind, caught.value.remedy) == ("rate_limit", Remedy.RETRY)


async def test_what_keeps_a_connection_alive_is_no_part_of_geminis_answer() -> None:
    answer = gemini_server.sse(gemini_server.content({"text": "Good "}), gemini_server.content({"text": "morning"}))
    ended = gemini_server.sse(gemini_server.content({"text": "."}, finish="STOP"))
    parts = (b": ping\r\n\r\nevent: message\nid: 1\n", answer, b":\n\n", ended.replace(b"data: ", b"data:"))
    async with test_gemini.talking_to(Answer(parts=(*parts, b"data: [DONE]\n\n"))) as (_server, _judge, model):
        assert (await test_gemini.infer(model)).text == "Good morning."
