"""Gemini's real SDK against a strict server on loopback: what it sends is accepted, what it gets is understood."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kesoku_actors.actors import ChildSpec
from kesoku_actors.actors.testing import running
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.gate import ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel
from kesoku_actors.llm.port import Emit, Finish, Limits, Piece, ProviderError, Remedy, Reply, Request, StepContent
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import DeltaKind, Usage

from ..llm.examples import DATE_TOOL, answered, asking, called, ignore, result, said
from ..llm.pictures import claims, pdf, picture
from ..llm.test_media_files import MP3, with_files
from .gemini_server import (
    KEY,
    MODEL,
    GeminiJudge,
    answering,
    content,
    error_answer,
    serving_gemini,
    signed,
    sse,
    text,
    thinking,
    usage,
    use,
)
from .loopback import Answer, Cut, LoopbackServer, Pause, Stall, dripping

NOW = 1_700_000_000.0
SOURCE = Source(
    provider="gemini",
    key="[gemini] api_key, GEMINI_API_KEY or GOOGLE_API_KEY",
    model="[gemini] model_name",
    address="[gemini] base_url",
)


@asynccontextmanager
async def talking_to(
    *answers: Answer, judge: dict[str, Any] | None = None, entries: list[Entry] | None = None, **changes: Any
) -> AsyncIterator[tuple[LoopbackServer, GeminiJudge, GeminiModel]]:
    async with serving_gemini(*answers, **(judge or {})) as (server, judging):
        log = Logger(sink=(entries if entries is not None else []).append, wall=lambda: NOW)
        access = GeminiAccess(api_key=KEY, base_url=server.origin)
        fields = {"source": SOURCE, "model": MODEL, "access": access, "log": log, "wall": lambda: NOW}
        model = GeminiModel(**fields | changes)
        try:
            yield server, judging, model
        finally:
            await model.aclose()


async def infer(model: GeminiModel, request: Request | None = None, emit: Emit = ignore) -> Reply:
    with trio.fail_after(60):
        return await model.infer(request or asking(said(1, "Hi")), emit)


async def refused(*answers: Answer, **changes: Any) -> ProviderError:
    async with talking_to(*answers, **changes) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught:
            await infer(model)
    return caught.value


async def test_an_answer_streams_with_its_thoughts_and_ends_with_its_usage() -> None:
    pieces: list[Piece] = []
    spoken = answering(thinking("I should "), thinking("greet."), text("Good "), text("morning"), **usage(30, 5, 7, 20))
    async with talking_to(spoken, thinking_level="medium") as (_server, judge, model):
        reply = await infer(model, emit=pieces.append)
    assert (reply.text, reply.thought, reply.finish) == ("Good morning", "I should greet.", Finish.STOP)
    assert reply.usage == Usage(input=30, cached=20, output=12, thinking=7)
    shown = {kind: "".join(piece.text for piece in pieces if piece.kind is kind) for kind in DeltaKind}
    assert shown == {DeltaKind.TEXT: "Good morning", DeltaKind.THOUGHT: "I should greet."}
    assert judge.bodies[0]["generationConfig"]["thinkingConfig"]["thinking_level"] == "MEDIUM"


async def test_parallel_calls_are_answered_in_one_content_in_order_and_signatures_return_on_their_parts() -> None:
    spoken = answering(
        thinking("Two at once."),
        text("I look."),
        signed(use("date", None, "c1", zone="UTC")),
        use("date", None, "c2", zone="JST"),
    )
    async with talking_to(spoken, answering(text("Monday."))) as (_server, judge, model):
        first = await infer(model, asking(said(1, "Which days?"), tools=(DATE_TOOL,)))
        calls = [called(3, call_id="c1", zone="UTC"), called(4, call_id="c2", zone="JST")]
        late = (result(5, calls[1], "Tue"), result(6, calls[0], "Mon"))
        rows = (said(1, "Which days?"), answered(2, "I look."), *calls, *late)
        step = StepContent(provider="gemini", model=MODEL, native=first.native, message_ids=("m2", "m3", "m4"))
        second = await infer(model, asking(*rows, steps=(step,), tools=(DATE_TOOL,)))
    assert [call.id for call in first.calls] == ["c1", "c2"]
    assert second.text == "Monday."
    asked, said_then, answers = judge.bodies[1]["contents"]
    assert [list(part) for part in said_then["parts"]] == [
        ["text", "thought"],
        ["text"],
        ["functionCall", "thoughtSignature"],
        ["functionCall"],
    ]
    assert said_then["parts"][2] == signed(use("date", None, "c1", zone="UTC"))
    responses = [part["functionResponse"] for part in answers["parts"]]
    assert [(one["id"], one["response"]) for one in responses] == [("c1", {"result": "Mon"}), ("c2", {"result": "Tue"})]
    assert asked["role"] == "user"


async def test_a_signature_on_a_text_stays_on_that_text() -> None:
    spoken = answering(text("One, "), text("two", thoughtSignature="YWJj"), text(" three"))
    async with talking_to(spoken) as (_server, _judge, model):
        reply = await infer(model)
    assert reply.text == "One, two three"
    assert reply.native is not None
    assert reply.native["parts"] == [text("One, "), text("two", thoughtSignature="YWJj"), text(" three")]


async def test_a_talk_that_began_with_another_model_goes_on() -> None:
    call = called(3, call_id="toolu_1", zone="UTC")
    rows = (said(1, "Which day?"), answered(2, "I look."), call, result(4, call, "Mon"))
    foreign = StepContent(provider="claude", model="c", native={"content": []}, message_ids=("m2", "m3"))
    async with talking_to(answering(text("Monday."))) as (_server, judge, model):
        assert (await infer(model, asking(*rows, steps=(foreign,), tools=(DATE_TOOL,)))).text == "Monday."
    [made] = [part for part in judge.bodies[0]["contents"][1]["parts"] if "functionCall" in part]
    assert made["thoughtSignature"], "a call of another model is marked as such"


async def test_the_body_is_told_once_per_try_as_it_goes_on_the_wire_without_the_key() -> None:
    told: list[Any] = []
    request = asking(said(1, "Hi ü"), sent=lambda body: told.append(body()), tools=(DATE_TOOL,))
    async with talking_to(error_answer(503, "UNAVAILABLE"), answering(text("Hello"))) as (_server, judge, model):
        with pytest.raises(ProviderError):
            await infer(model, request)
        await infer(model, request)
    assert told == judge.bodies
    assert KEY not in json.dumps(told)
    assert not any(name.startswith("x-kesoku") for headers in judge.headers for name in headers)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("MAX_TOKENS", Finish.LENGTH),
        ("SAFETY", Finish.REFUSED),
        ("PROHIBITED_CONTENT", Finish.REFUSED),
        ("RECITATION", Finish.REFUSED),
        ("A_NEW_WORD", Finish.OTHER),
    ],
)
async def test_each_finish_reason_has_its_outcome(reason: str, finish: Finish) -> None:
    async with talking_to(answering(text("So far"), finish=reason)) as (_server, _judge, model):
        reply = await infer(model)
    assert (reply.text, reply.finish, reply.finish_reason) == ("So far", finish, reason)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
async def test_of_a_malformed_answer_nothing_is_kept(reason: str) -> None:
    async with talking_to(answering(text("call:date{"), finish=reason)) as (_server, _judge, model):
        reply = await infer(model)
    assert (reply.text, reply.calls, reply.finish_reason) == ("", (), reason)


async def test_a_blocked_prompt_is_told_and_not_tried_again() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **usage()}
    error = await refused(Answer(parts=(sse(blocked),)))
    assert (error.kind, error.remedy) == ("filtered", Remedy.TELL)
    assert "PROHIBITED_CONTENT" in str(error)


@pytest.mark.parametrize(
    ("answer", "kind", "remedy"),
    [
        (error_answer(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "auth", Remedy.TELL),
        (error_answer(403, "PERMISSION_DENIED"), "auth", Remedy.TELL),
        (error_answer(404, "NOT_FOUND", "models/gemini-9 is not found"), "model", Remedy.TELL),
        (error_answer(429, "RESOURCE_EXHAUSTED"), "rate_limit", Remedy.RETRY),
        (error_answer(500, "INTERNAL"), "server", Remedy.RETRY),
        (error_answer(503, "UNAVAILABLE", "The model is overloaded."), "overloaded", Remedy.RETRY),
        (
            error_answer(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            "context",
            Remedy.COMPACT,
        ),
        (error_answer(400, "INVALID_ARGUMENT", "contents is not specified"), "request", Remedy.REPAIR),
        (Answer(status=502, headers=(("content-type", "text/html"),), parts=(b"<html>",)), "server", Remedy.RETRY),
    ],
)
async def test_each_error_of_the_service_has_its_remedy(answer: Answer, kind: str, remedy: Remedy) -> None:
    error = await refused(answer)
    assert (error.kind, error.remedy) == (kind, remedy)
    assert KEY not in str(error)


async def test_how_long_to_wait_is_taken_from_the_service() -> None:
    error = await refused(error_answer(429, "RESOURCE_EXHAUSTED", headers=(("retry-after", "17"),)))
    assert error.retry_after_s == 17


@pytest.mark.parametrize(
    "parts",
    [
        (sse(content(text("Hel"))), Cut()),
        (sse(content(text("Hel"))),),
        (b"data: {not json\r\n\r\n",),
        (),
        (Cut(),),
    ],
    ids=["cut", "no end", "not JSON", "nothing", "at once"],
)
async def test_a_stream_that_breaks_is_an_error_to_be_retried(parts: Any) -> None:
    error = await refused(Answer(parts=parts))
    assert error.remedy is Remedy.RETRY
    assert error.kind in ("cut", "garbage")


async def test_the_sdk_says_nothing_of_keys_that_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-other")
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-third")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    async with talking_to(answering(text("Hello."))) as (_server, judge, model):
        assert (await infer(model)).text == "Hello."
    assert judge.headers[0]["x-goog-api-key"] == KEY
    assert "API_KEY" not in caplog.text


async def test_a_model_that_cannot_use_tools_goes_on_without_them() -> None:
    refusal = error_answer(400, "INVALID_ARGUMENT", "Function calling is not enabled for models/gemma-3-27b-it")
    async with talking_to(refusal, answering(text("Hello."))) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught:
            await infer(model, asking(said(1, "Hi"), tools=(DATE_TOOL,)))
        assert (caught.value.kind, caught.value.remedy) == ("tools", Remedy.RETRY)
        assert not model.supports_tools, "who asks again offers none"


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    error = await refused(answering(text("x")), access=GeminiAccess(api_key=KEY, base_url="http://127.0.0.1:9"))
    assert (error.kind, error.remedy) == ("connect", Remedy.RETRY)
    assert "[gemini] base_url" in str(error)


async def test_a_web_page_is_no_answer_and_the_address_is_wrong() -> None:
    page = Answer(headers=(("content-type", "text/html; charset=utf-8"),), parts=(b"<html>Sign in</html>",))
    error = await refused(page)
    assert (error.kind, error.remedy) == ("address", Remedy.TELL)
    assert "[gemini] base_url" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        error_answer(401, "UNAUTHENTICATED", f"Incorrect key provided: {KEY}."),
        Answer(parts=(sse({"error": f"Incorrect key provided: {KEY}."}),)),
        Answer(parts=(sse({"candidates": f"Incorrect key provided: {KEY}."}),)),
        Answer(
            parts=(
                sse(
                    {
                        "promptFeedback": {
                            "blockReason": "SAFETY",
                            "blockReasonMessage": f"Incorrect key provided: {KEY}",
                        }
                    }
                ),
            )
        ),
    ],
    ids=["refusal", "error", "no such shape", "blocked"],
)
async def test_a_server_that_repeats_the_key_is_not_quoted(answer: Answer) -> None:
    error = await refused(answer)
    assert KEY not in str(error)
    assert "Incorrect key provided: ***" in str(error)


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret-ä", "sk secret"])
async def test_a_key_that_no_header_can_hold_is_told_of_without_repeating_it(key: str) -> None:
    error = await refused(answering(text("x")), access=GeminiAccess(api_key=key, base_url="http://127.0.0.1:9"))
    assert (error.kind, error.remedy) == ("auth", Remedy.TELL)
    assert "secret" not in str(error)


async def test_a_whole_answer_is_taken_though_the_connection_stays_open() -> None:
    said_all = sse(content(text("Hello")), content(finish="STOP"))
    late = (said_all, Pause(0.2), sse({"candidates": [], **usage(30, 5)}))
    async with talking_to(Answer(parts=(*late, Stall())), answering(text("Yes?"))) as (server, _judge, model):
        reply = await infer(model)
        assert (reply.text, reply.usage.input) == ("Hello", 30), "counts may follow"
        with trio.fail_after(60):
            await server.left[0].wait()
        assert (await infer(model)).text == "Yes?"


async def test_bytes_may_come_one_by_one() -> None:
    pieces: list[Piece] = []
    whole = sse(content(text("Grüße 🙂")), content(text(" aus dem Norden"), finish="STOP"))
    async with talking_to(Answer(parts=dripping(whole))) as (_server, _judge, model):
        reply = await infer(model, emit=pieces.append)
    assert reply.text == "Grüße 🙂 aus dem Norden" == "".join(piece.text for piece in pieces)


async def test_cancelling_closes_the_connection_before_the_next_request() -> None:
    begun = sse(content(text("A long story")))
    async with talking_to(Answer(parts=(begun, Stall())), answering(text("Yes?"))) as (server, _judge, model):
        with trio.CancelScope() as scope:
            await model.infer(asking(said(1, "Tell me a story")), lambda piece: scope.cancel() if piece.text else None)
        assert scope.cancelled_caught
        await infer(model)
        with trio.fail_after(60):
            await server.left[0].wait()
    assert server.notes == ["request 0", "left 0", "request 1"]


async def test_bytes_without_words_are_no_silence_and_silence_is_a_stall() -> None:
    whole = sse(content(text("At last."), finish="STOP"))
    slow = tuple(part for at in range(6) for part in (Pause(0.4), whole[5 * at : 5 * at + 5]))
    ended = whole[30:]
    limits = Limits(first_byte_s=20.0, idle_s=2.0)
    answers = (Answer(parts=(*slow, ended)), Answer(parts=(*slow[:3], Stall())))
    async with talking_to(*answers, limits=limits) as (_server, _judge, model):
        gate = ProviderGate.of(model)
        spec = ChildSpec(id="gate", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)
        async with running(spec):
            assert (await infer_once(model, gate, asking(said(1, "Hi")), ignore)).text == "At last."
            with pytest.raises(ProviderError) as caught:
                await infer_once(model, gate, asking(said(1, "Hi")), ignore)
    assert caught.value.kind == "stall"


@pytest.mark.parametrize("indent", [None, 2])
async def test_an_answer_that_is_not_streamed_is_taken_whole(indent: int | None) -> None:
    whole = content(thinking("Hm."), text("Yes."), finish="STOP", **usage())
    body = json.dumps(whole, indent=indent).encode()
    answer = Answer(headers=(("content-type", "application/json"),), parts=(body,))
    async with talking_to(answer) as (_server, _judge, model):
        reply = await infer(model)
    assert (reply.text, reply.thought, reply.finish) == ("Yes.", "Hm.", Finish.STOP)


async def test_what_the_services_own_tools_did_goes_back_as_it_came() -> None:
    code = signed({"executableCode": {"language": "PYTHON", "code": "print(6*7)"}})
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
    new = {"aNewThing": {"x": 1}}
    spoken = answering(code, ran, new, text("I look."), signed(use("date", None, "c1")))
    async with talking_to(spoken, answering(text("42."))) as (_server, judge, model):
        first = await infer(model, asking(said(1, "Compute."), tools=(DATE_TOOL,)))
        call = called(3, call_id="c1")
        rows = (said(1, "Compute."), answered(2, "I look."), call, result(4, call, "Mon"))
        step = StepContent(provider="gemini", model=MODEL, native=first.native, message_ids=("m2", "m3"))
        assert (await infer(model, asking(*rows, steps=(step,), tools=(DATE_TOOL,)))).text == "42."
    assert judge.bodies[1]["contents"][1]["parts"][:2] == [code, ran]


async def test_attachments_go_as_data_of_their_kind_and_what_cannot_go_is_told(tmp_path: Path) -> None:
    for name, data in (
        ("cat.png", picture(9, 9)),
        ("huge.png", claims(50_000, 50_000)),
        ("paper.pdf", pdf(2)),
        ("song.mp3", MP3),
        ("notes.txt", b"Four girls."),
    ):
        (tmp_path / name).write_bytes(data)
    call = called(2, "date")
    asked = with_files(said(1, "Look"), "cat.png", "huge.png", "paper.pdf", "song.mp3", "notes.txt")
    rows = (asked, call, with_files(result(3, call, "a picture"), "cat.png"))
    async with talking_to(answering(text("I see."))) as (_server, judge, model):
        reply = await infer(model, asking(*rows, tools=(DATE_TOOL,), workspace=tmp_path))
    assert reply.text == "I see."
    assert [file.partition(":")[0] for file in reply.unshown] == ["huge.png"]
    first, _, found = judge.bodies[0]["contents"]
    data = [part.get("inlineData", {}) for part in first["parts"]]
    kinds = [one.get("mimeType", one.get("mime_type")) for one in data]  # the SDK writes it in its own spelling
    assert kinds == ["image/png", None, "application/pdf", "audio/mpeg", "text/plain", None]
    assert "50,000 x 50,000 pixels" in first["parts"][1]["text"]
    assert [key for part in found["parts"] for key in part] == ["functionResponse", "inlineData"]
