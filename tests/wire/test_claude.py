"""Claude's real SDK against a strict server on loopback: what it sends is accepted, what it gets is understood."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from anthropic.resources.messages import DEPRECATED_MODELS

from kesoku_actors.actors import ChildSpec
from kesoku_actors.actors.testing import running
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.gate import ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.port import Emit, Finish, Limits, Piece, ProviderError, Remedy, Reply, Request, StepContent
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import DeltaKind, Usage

from ..llm.examples import DATE_TOOL, answered, asking, called, ignore, result, said
from ..llm.pictures import claims, pdf, picture
from ..llm.test_media_files import with_files
from .claude_server import (
    KEY,
    MODEL,
    ClaudeJudge,
    answering,
    error_answer,
    event,
    message_events,
    serving_claude,
    sse,
    text,
    thinking,
    use,
)
from .loopback import Answer, Cut, LoopbackServer, Pause, Stall, dripping

NOW = 1_700_000_000.0
SOURCE = Source(
    provider="claude",
    key="[claude] api_key or ANTHROPIC_API_KEY",
    model="[claude] model_name",
    address="[claude] base_url",
)


@asynccontextmanager
async def talking_to(
    *answers: Answer, judge: dict[str, Any] | None = None, entries: list[Entry] | None = None, **changes: Any
) -> AsyncIterator[tuple[LoopbackServer, ClaudeJudge, ClaudeModel]]:
    async with serving_claude(*answers, **(judge or {})) as (server, judging):
        log = Logger(sink=(entries if entries is not None else []).append, wall=lambda: NOW)
        access = ClaudeAccess(api_key=KEY, base_url=server.origin)
        fields = {"source": SOURCE, "model": MODEL, "access": access, "log": log, "wall": lambda: NOW}
        model = ClaudeModel(**fields | changes)
        try:
            yield server, judging, model
        finally:
            await model.aclose()


async def infer(model: ClaudeModel, request: Request | None = None, emit: Emit = ignore) -> Reply:
    with trio.fail_after(60):
        return await model.infer(request or asking(said(1, "Hi")), emit)


async def refused(*answers: Answer, **changes: Any) -> ProviderError:
    async with talking_to(*answers, **changes) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught:
            await infer(model)
    return caught.value


async def test_an_answer_streams_with_its_thoughts_and_ends_with_its_usage() -> None:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3}
    pieces: list[Piece] = []
    spoken = answering(thinking("I should greet."), text("Good morning"), usage=usage)
    async with talking_to(spoken, thinking_level="low") as (_server, judge, model):
        reply = await infer(model, emit=pieces.append)
    assert (reply.text, reply.thought, reply.finish) == ("Good morning", "I should greet.", Finish.STOP)
    assert reply.usage == Usage(input=30, cached=20, written=3, output=12, thinking=None)
    shown = {kind: "".join(piece.text for piece in pieces if piece.kind is kind) for kind in DeltaKind}
    assert shown == {DeltaKind.TEXT: "Good morning", DeltaKind.THOUGHT: "I should greet."}
    assert judge.bodies[0]["thinking"] == {"type": "enabled", "budget_tokens": 4096}


async def test_thoughts_go_back_unchanged_within_a_loop_of_tools_and_the_second_request_is_found_in_the_cache() -> None:
    spoken = answering(thinking("Look."), text("I look."), use("date", "toolu_1", zone="UTC"))
    async with talking_to(spoken, answering(text("Monday.")), thinking_level="high") as (_server, judge, model):
        first = await infer(model, asking(said(1, "Which day?"), tools=(DATE_TOOL,)))
        call = called(3, call_id="toolu_1", zone="UTC")
        rows = (said(1, "Which day?"), answered(2, "I look."), call, result(4, call, "Mon"))
        step = StepContent(provider="claude", model=MODEL, native=first.native, message_ids=("m2", "m3"))
        second = await infer(model, asking(*rows, steps=(step,), tools=(DATE_TOOL,)))
    assert (first.finish, second.text) == (Finish.CALLS, "Monday.")
    assert judge.bodies[1]["messages"][1]["content"] == [
        thinking("Look."),
        text("I look."),
        use("date", "toolu_1", zone="UTC"),
    ]
    assert judge.cached[0] == 0 < judge.cached[1]


async def test_the_next_turn_finds_the_one_before_in_the_cache() -> None:
    rows = (said(1, "Hi"), answered(2, "Hello."), said(3, "How are you?"), answered(4, "Well."), said(5, "Good."))
    async with talking_to(answering(text("Yes."))) as (_server, judge, model):
        for upto in (1, 3, 5):
            await infer(model, asking(*rows[:upto], tools=(DATE_TOOL,)))
    assert judge.cached[0] == 0
    assert judge.cached[0] < judge.cached[1] < judge.cached[2]


async def test_a_talk_that_began_with_another_model_goes_on() -> None:
    call = called(3, call_id="call 7", zone="UTC")
    rows = (said(1, "Which day?"), answered(2, "I look."), call, result(4, call, "Mon"))
    foreign = StepContent(provider="gemini", model="g", native={"role": "model", "parts": []}, message_ids=("m2", "m3"))
    async with talking_to(answering(text("Monday.")), thinking_level="high") as (_server, judge, model):
        assert (await infer(model, asking(*rows, steps=(foreign,), tools=(DATE_TOOL,)))).text == "Monday."
    assert "thinking" not in judge.bodies[0], "an answer without a thought cannot be gone on with by a budget"


async def test_the_body_is_told_once_per_try_as_it_goes_on_the_wire_without_the_key() -> None:
    told: list[Any] = []
    request = asking(said(1, "Hi ü"), sent=lambda body: told.append(body()), tools=(DATE_TOOL,))
    async with talking_to(error_answer(529, "overloaded_error"), answering(text("Hello"))) as (_server, judge, model):
        with pytest.raises(ProviderError):
            await infer(model, request)
        await infer(model, request)
    assert json.loads(json.dumps(told)) == judge.bodies
    assert KEY not in json.dumps(told)


@pytest.mark.parametrize(
    ("answer", "kind", "remedy"),
    [
        (error_answer(401, "authentication_error", "invalid x-api-key"), "auth", Remedy.TELL),
        (error_answer(403, "permission_error"), "auth", Remedy.TELL),
        (error_answer(404, "not_found_error", "model: claude-9"), "model", Remedy.TELL),
        (error_answer(429, "rate_limit_error"), "rate_limit", Remedy.RETRY),
        (error_answer(500, "api_error"), "server", Remedy.RETRY),
        (error_answer(529, "overloaded_error"), "overloaded", Remedy.RETRY),
        (error_answer(413, "request_too_large"), "context", Remedy.COMPACT),
        (
            error_answer(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            "context",
            Remedy.COMPACT,
        ),
        (
            error_answer(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            "quota",
            Remedy.FAIL_OVER,
        ),
        (
            error_answer(400, "invalid_request_error", "You have reached your specified API usage limits."),
            "quota",
            Remedy.FAIL_OVER,
        ),
        (error_answer(400, "invalid_request_error", "messages: roles must alternate"), "request", Remedy.REPAIR),
        (Answer(status=502, headers=(("content-type", "text/html"),), parts=(b"<html>",)), "server", Remedy.RETRY),
    ],
)
async def test_each_error_of_the_service_has_its_remedy(answer: Answer, kind: str, remedy: Remedy) -> None:
    error = await refused(answer)
    assert (error.kind, error.remedy) == (kind, remedy)
    assert KEY not in str(error)


async def test_a_refused_key_says_where_it_was_looked_for() -> None:
    error = await refused(error_answer(401, "authentication_error"))
    assert "[claude] api_key or ANTHROPIC_API_KEY" in str(error)


async def test_how_long_to_wait_is_taken_from_the_service() -> None:
    error = await refused(error_answer(429, "rate_limit_error", headers=(("retry-after", "17"),)))
    assert error.retry_after_s == 17


async def test_an_error_inside_a_stream_is_the_error_it_names() -> None:
    words = {"type": "overloaded_error", "message": "Overloaded"}
    begun = sse(*message_events(text("Hel"))[:4], event("error", error=words))
    error = await refused(Answer(parts=(begun,)))
    assert (error.kind, error.remedy) == ("overloaded", Remedy.RETRY)


@pytest.mark.parametrize(
    "parts",
    [
        (sse(*message_events(text("Hello"))[:5]), Cut()),
        (sse(*message_events(text("Hello"))[:-2]),),
        (b"event: message_start\ndata: {not json\n\n",),
        (b'event: content_block_delta\ndata: {"type":"content_block_delta","index":5,"delta":{}}\n\n',),
        (),
        (Cut(),),
    ],
    ids=["cut", "no stop reason", "not JSON", "no such block", "nothing", "at once"],
)
async def test_a_stream_that_breaks_is_an_error_to_be_retried(parts: Any) -> None:
    error = await refused(Answer(parts=parts))
    assert error.remedy is Remedy.RETRY
    assert error.kind in ("cut", "garbage")


@pytest.mark.parametrize(
    "rest",
    [
        (Cut(),),
        (b"event: message_delta\ndata: {not json\n\n",),
        (sse(event("error", error={"type": "overloaded_error", "message": "Overloaded"})), Stall()),
    ],
    ids=["cut", "not JSON", "an error"],
)
async def test_what_comes_of_a_connection_behind_the_end_of_a_message_takes_nothing_from_it(rest: Any) -> None:
    whole = answering(text("Hello."))
    async with talking_to(Answer(parts=(*whole.parts, *rest)), whole) as (_server, _judge, model):
        first = await infer(model)
        assert await infer(model) == first
    assert (first.text, first.usage.output) == ("Hello.", 12)


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    error = await refused(answering(text("x")), access=ClaudeAccess(api_key=KEY, base_url="http://127.0.0.1:9"))
    assert (error.kind, error.remedy) == ("connect", Remedy.RETRY)
    assert "[claude] base_url" in str(error)


async def test_a_web_page_is_no_answer_and_the_address_is_wrong() -> None:
    page = Answer(headers=(("content-type", "text/html; charset=utf-8"),), parts=(b"<html>Sign in</html>",))
    error = await refused(page)
    assert (error.kind, error.remedy) == ("address", Remedy.TELL)
    assert "[claude] base_url" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        error_answer(401, "authentication_error", f"Incorrect key provided: {KEY}."),
        Answer(parts=(sse(event("error", error={"message": f"Incorrect key provided: {KEY}."})),)),
        Answer(parts=(f"event: error\ndata: Incorrect key provided: {KEY}.\n\n".encode(),)),
    ],
    ids=["refusal", "error", "error in bare words"],
)
async def test_a_server_that_repeats_the_key_is_not_quoted(answer: Answer) -> None:
    error = await refused(answer)
    assert KEY not in str(error)
    assert "Incorrect key provided: ***" in str(error)


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret-ä", "sk secret"])
async def test_a_key_that_no_header_can_hold_is_told_of_without_repeating_it(key: str) -> None:
    error = await refused(answering(text("x")), access=ClaudeAccess(api_key=key, base_url="http://127.0.0.1:9"))
    assert (error.kind, error.remedy) == ("auth", Remedy.TELL)
    assert "secret" not in str(error)


async def test_bytes_may_come_one_by_one() -> None:
    pieces: list[Piece] = []
    whole = sse(*message_events(text("Grüße 🙂 aus dem Norden")))
    async with talking_to(Answer(parts=dripping(whole))) as (_server, _judge, model):
        reply = await infer(model, emit=pieces.append)
    assert reply.text == "Grüße 🙂 aus dem Norden" == "".join(piece.text for piece in pieces)


async def test_cancelling_closes_the_connection_before_the_next_request() -> None:
    begun = sse(*message_events(text("A long story"))[:5])
    async with talking_to(Answer(parts=(begun, Stall())), answering(text("Yes?"))) as (server, _judge, model):
        with trio.CancelScope() as scope:
            await model.infer(asking(said(1, "Tell me a story")), lambda piece: scope.cancel() if piece.text else None)
        assert scope.cancelled_caught
        await infer(model)
        with trio.fail_after(60):
            await server.left[0].wait()
    assert server.notes == ["request 0", "left 0", "request 1"]


async def test_pings_are_no_silence_and_silence_is_a_stall() -> None:
    ping = sse(event("ping"))
    slow = (sse(*message_events()[:1]), *(part for _ in range(6) for part in (Pause(0.4), ping)))
    ended = sse(*message_events(text("At last."))[1:])
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


async def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This was refused due to policy."}
    async with talking_to(answering(stop="refusal", stop_details=details)) as (_server, _judge, model):
        reply = await infer(model)
    assert (reply.finish, reply.text) == (Finish.REFUSED, "This was refused due to policy.")


async def test_a_call_cut_off_by_the_output_limit_never_runs() -> None:
    events = list(message_events(use("date", "toolu_1", zone="UTC"), stop="max_tokens"))
    cut = [one for one in events if one.get("delta", {}).get("partial_json", "x")[-1:] != "}"]
    async with talking_to(Answer(parts=(sse(*cut),))) as (_server, _judge, model):
        reply = await infer(model, asking(said(1, "Hi"), tools=(DATE_TOOL,)))
    [call] = reply.calls
    assert reply.finish is Finish.LENGTH
    assert call.invalid is not None
    assert "output limit" in call.invalid


async def test_a_message_that_pauses_is_gone_on_with() -> None:
    paused = answering(text("First half, "), stop="pause_turn")
    async with talking_to(paused, answering(text("second half.")), judge={"goes_on": True}) as (
        _server,
        judge,
        model,
    ):
        reply = await infer(model)
    assert (reply.text, reply.finish) == ("First half, second half.", Finish.STOP)
    assert judge.bodies[1]["messages"][-1] == {"role": "assistant", "content": [text("First half, ")]}


async def test_each_part_of_a_message_that_pauses_again_and_again_goes_back_once() -> None:
    paused = [answering(text(f"{number}, "), stop="pause_turn") for number in range(3)]
    async with talking_to(*paused, answering(text("3.")), judge={"goes_on": True}) as (_server, judge, model):
        reply = await infer(model)
    assert (reply.text, reply.usage.output) == ("0, 1, 2, 3.", 4 * 12)
    said_back = [body["messages"][1:] for body in judge.bodies]
    so_far = [[text(f"{number}, ") for number in range(upto)] for upto in range(4)]
    assert said_back == [[{"role": "assistant", "content": content}] if content else [] for content in so_far]


async def test_a_message_that_never_stops_pausing_is_what_it_said_so_far() -> None:
    async with talking_to(answering(text("x"), stop="pause_turn"), judge={"goes_on": True}) as (server, _judge, model):
        reply = await infer(model)
    assert (reply.text, reply.finish, reply.finish_reason) == ("x" * server.requests, Finish.OTHER, "pause_turn")


async def test_a_whole_answer_is_taken_though_the_connection_stays_open() -> None:
    whole = sse(*message_events(text("Hello")))
    async with talking_to(Answer(parts=(whole, Stall())), answering(text("Yes?"))) as (server, _judge, model):
        assert (await infer(model)).text == "Hello"
        with trio.fail_after(60):
            await server.left[0].wait()
        assert (await infer(model)).text == "Yes?"


async def test_a_model_that_ends_soon_is_said_once_and_never_warned_of() -> None:
    entries: list[Entry] = []
    old = next(iter(DEPRECATED_MODELS))
    async with talking_to(answering(text("Hello")), entries=entries, model=old) as (_server, _judge, model):
        for _ in range(2):
            assert (await infer(model)).text == "Hello"
    assert [DEPRECATED_MODELS[old] in entry.event for entry in entries] == [True]


async def test_an_answer_is_whole_with_its_stop_reason() -> None:
    async with talking_to(Answer(parts=(sse(*message_events(text("Hello"))[:-1]),))) as (_server, _judge, model):
        assert (await infer(model)).text == "Hello"


async def test_an_answer_that_is_not_streamed_is_taken_whole() -> None:
    blocks = [thinking("Hm."), text("Yes.")]
    whole = message_events()[0]["message"] | {"content": blocks, "stop_reason": "end_turn"}
    answer = Answer(headers=(("content-type", "application/json"),), parts=(json.dumps(whole).encode(),))
    async with talking_to(answer) as (_server, _judge, model):
        reply = await infer(model)
    assert (reply.text, reply.thought, reply.finish) == ("Yes.", "Hm.", Finish.STOP)
    error = await refused(Answer(headers=(("content-type", "application/json"),), parts=(b'["no", "message"]',)))
    assert (error.kind, error.remedy) == ("garbage", Remedy.RETRY)


async def test_attachments_go_as_blocks_of_their_kind_and_what_cannot_go_is_told(tmp_path: Path) -> None:
    for name, data in (
        ("cat.png", picture(9, 9)),
        ("huge.png", claims(50_000, 50_000)),
        ("paper.pdf", pdf(2)),
        ("long.pdf", pdf(10_000)),
        ("notes.txt", b"Four girls."),
    ):
        (tmp_path / name).write_bytes(data)
    call = called(2, "date", "toolu_1")
    asked = with_files(said(1, "Look"), "cat.png", "huge.png", "paper.pdf", "long.pdf", "notes.txt")
    rows = (asked, call, with_files(result(3, call, "a picture"), "cat.png"))
    async with talking_to(answering(text("I see."))) as (_server, judge, model):
        reply = await infer(model, asking(*rows, tools=(DATE_TOOL,), workspace=tmp_path))
    assert reply.text == "I see."
    assert [file.partition(":")[0] for file in reply.unshown] == ["huge.png", "long.pdf"]
    first, _, found = judge.bodies[0]["messages"]
    kinds = [(block["type"], block.get("source", {}).get("media_type")) for block in first["content"]]
    assert kinds == [
        ("image", "image/png"),
        ("text", None),
        ("document", "application/pdf"),
        ("text", None),
        ("document", "text/plain"),
        ("text", None),
    ]
    assert "50,000 x 50,000 pixels" in first["content"][1]["text"]
    assert "10,000 pages" in first["content"][3]["text"]
    assert [block["type"] for block in found["content"][0]["content"]] == ["text", "image"]
