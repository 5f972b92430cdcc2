"""The real client against a strict server on loopback: what it sends is accepted, what it gets is understood."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from functools import partial
from typing import Any

import pytest
import trio

from kesoku_actors.actors import ChildSpec
from kesoku_actors.actors.testing import running
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.dialects import openai
from kesoku_actors.llm.gate import ProviderGate, infer_once, provider_actor
from kesoku_actors.llm.openai import OpenAIModel
from kesoku_actors.llm.port import (
    CallRequest,
    Emit,
    Finish,
    Limits,
    Piece,
    ProviderError,
    Remedy,
    Reply,
    Request,
    StepContent,
)
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import ToolSchema, Usage

from ..llm.examples import DATE_TOOL, answered, asking, called, ignore, notice, result, said
from .loopback import Answer, Cut, Pause, Stall, dripping
from .openai_server import (
    KEY,
    MODEL,
    OpenAIServer,
    chunk,
    error_answer,
    saying,
    serving,
    sse,
    text_answer,
)

HALF_A_CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "date", "arguments": '{"zone'}}
NOW = 1_700_000_000.0
SOURCE = Source(
    provider="openai",
    key="[openai] api_key or OPENAI_API_KEY",
    model="[openai] model_name",
    address="[openai] base_url",
)


def model_at(url: str, entries: list[Entry] | None = None, **changes: Any) -> OpenAIModel:
    log = Logger(sink=(entries if entries is not None else []).append, wall=lambda: NOW)
    fields = {"source": SOURCE, "model": MODEL, "base_url": url, "api_key": KEY, "log": log, "wall": lambda: NOW}
    return OpenAIModel(**fields | changes)


@asynccontextmanager
async def talking_to(*answers: Answer, **changes: Any) -> AsyncIterator[tuple[OpenAIServer, OpenAIModel]]:
    extensions = changes.pop("extensions", ())
    async with serving(*answers, extensions=extensions) as server:
        model = model_at(server.url, **changes)
        try:
            yield server, model
        finally:
            await model.aclose()


async def infer(model: OpenAIModel, request: Request | None = None, emit: Emit = ignore) -> Reply:
    with trio.fail_after(60):
        return await model.infer(request or asking(said(1, "Hi")), emit)


async def refused(model: OpenAIModel) -> ProviderError:
    return await refused_of(model, None)


async def refused_of(model: OpenAIModel, request: Request | None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await infer(model, request)
    return caught.value


async def test_a_text_answer_streams_and_ends_with_its_usage() -> None:
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": 5,
        "total_tokens": 35,
        "prompt_tokens_details": {"cached_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    pieces: list[Piece] = []
    async with talking_to(Answer(parts=(sse(*saying("Good ", "morning"), chunk(usage=usage)),))) as (server, model):
        reply = await infer(model, emit=pieces.append)
    assert (reply.text, reply.finish, reply.finish_reason) == ("Good morning", Finish.STOP, "stop")
    assert reply.usage == Usage(input=30, cached=20, output=5, thinking=2)
    assert [piece.text for piece in pieces if piece.text] == ["Good ", "morning"]
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


async def test_the_body_is_told_once_per_try_as_it_goes_on_the_wire_without_the_key() -> None:
    told: list[Any] = []
    call = called(2, call_id="a", zone="UTC")
    request = asking(
        said(1, "Hi ü"), call, result(3, call, "Monday"), tools=(DATE_TOOL,), sent=lambda body: told.append(body())
    )
    async with talking_to(error_answer(503), text_answer("Hello")) as (server, model):
        await refused_of(model, request)
        await infer(model, request)
    assert json.loads(json.dumps(told)) == server.bodies
    assert len(told) == 2
    assert KEY not in json.dumps(told)


async def test_a_whole_talk_with_tools_is_accepted_by_the_strict_server() -> None:
    first, second = called(4, call_id="a", zone="UTC"), called(5, call_id="a", zone="JST")
    history = (
        said(1, "", "Ann\n: evil"),
        notice(2, "A job ended."),
        answered(3, "I will look."),
        first,
        second,
        result(6, first, "Monday"),
        result(7, second, ""),
        answered(8, "It is", partial=True),
        said(9, "Wait"),
        called(10, name="date", call_id=""),
    )
    entries: list[Entry] = []
    request = asking(*history, tools=(DATE_TOOL,), nudge="Please answer.", max_output_tokens=100)
    async with talking_to(text_answer("ok"), entries=entries) as (server, model):
        reply = await infer(model, request)
    assert reply.text == "ok"
    messages = server.bodies[0]["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert [message["content"] for message in messages if message["role"] == "tool"][:2] == [
        "Monday",
        "(ok, no output)",
    ]
    assert messages[-1]["content"] == "Please answer."
    assert [entry.event for entry in entries] == ["history repaired for a request"]
    assert "added the missing result" in str(entries[0].fields["repairs"])


async def test_parallel_calls_come_back_whole_and_their_replay_is_accepted() -> None:
    deltas = [
        {"tool_calls": [{"index": 0, "id": "x1", "type": "function", "function": {"name": "date", "arguments": ""}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "x2", "type": "function", "function": {"name": "date", "arguments": '{"zo'}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"zone":'}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": 'ne":"é"}'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"UTC"}'}}]},
    ]
    thinking = chunk({"role": "assistant", "content": None, "reasoning_content": "Two zones."})
    first = Answer(parts=(sse(thinking, *map(chunk, deltas), chunk({}, "tool_calls")),))
    async with talking_to(first, text_answer("ok"), extensions=["reasoning_content"]) as (server, model):
        reply = await infer(model, asking(said(1, "When?"), tools=(DATE_TOOL,)))
        calls = [called(2 + at, call_id=call.id, **call.arguments) for at, call in enumerate(reply.calls)]
        step = StepContent(provider="openai", model=MODEL, native=reply.native, message_ids=("m2", "m3"))
        results = [result(4 + at, call, "noon") for at, call in enumerate(calls)]
        await infer(model, asking(said(1, "When?"), *calls, *results, steps=(step,)))
    assert [(call.id, call.arguments, call.invalid) for call in reply.calls] == [
        ("x1", {"zone": "UTC"}, None),
        ("x2", {"zone": "é"}, None),
    ]
    assert (reply.finish, reply.thought) == (Finish.CALLS, "Two zones.")
    replayed = server.bodies[1]["messages"][2]
    assert replayed["reasoning_content"] == "Two zones."
    assert [call["id"] for call in replayed["tool_calls"]] == ["x1", "x2"]


async def test_a_name_that_the_service_refuses_goes_out_and_comes_back_as_another() -> None:
    tool = ToolSchema(name="mcp.größe", description="Tells a size.", parameters={"type": "object", "properties": {}})
    outward = openai.NAMES.outward(tool.name)
    delta = {"index": 0, "id": "a", "type": "function", "function": {"name": outward, "arguments": "{}"}}
    asking_for_it = Answer(parts=(sse(chunk({"tool_calls": [delta]}), chunk({}, "tool_calls")),))
    async with talking_to(asking_for_it, text_answer("Done.")) as (server, model):
        first = said(1, "How large?")
        reply = await infer(model, asking(first, tools=(tool,)))
        assert reply.calls == (CallRequest(id="a", name=tool.name, arguments={}),)
        call = called(2, tool.name, "a")
        step = StepContent(provider=model.name, model=model.model, native=reply.native, message_ids=(call.id,))
        await infer(model, asking(first, call, result(3, call, "9"), steps=(step,), tools=(tool,)))
    assert [body["tools"][0]["function"]["name"] for body in server.bodies] == [outward, outward]
    assert server.bodies[1]["messages"][2]["tool_calls"][0]["function"]["name"] == outward


async def test_a_stream_dripped_byte_by_byte_keeps_its_characters() -> None:
    data = sse(*saying("こんにちは", " 🎸", " naïve"))
    lively: list[Piece] = []
    async with talking_to(Answer(parts=dripping(data))) as (_, model):
        reply = await infer(model, emit=lively.append)
    assert reply.text == "こんにちは 🎸 naïve"
    assert sum(not piece.text for piece in lively) > 20, "each packet must show that the stream lives"


async def test_carriage_returns_comments_and_unknown_fields_are_no_trouble() -> None:
    data = b": ping\r\n\r\nevent: message\r\nid: 7\r\n" + sse(*saying("Hi")).replace(b"\n", b"\r\n")
    async with talking_to(Answer(parts=(data,))) as (_, model):
        assert (await infer(model)).text == "Hi"


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    message = {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "date", "arguments": "{}"}}],
    }
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3}}
    answer = Answer(headers=(("content-type", "application/json; charset=utf-8"),), parts=(json.dumps(body).encode(),))
    async with talking_to(answer) as (_, model):
        reply = await infer(model)
    assert (reply.text, [call.name for call in reply.calls], reply.usage.input) == ("Hi", ["date"], 3)


@pytest.mark.parametrize(
    ("answer", "kind", "remedy", "retry_after_s"),
    [
        (error_answer(429, headers=[("retry-after", "7")]), "rate_limit", Remedy.RETRY, 7.0),
        (
            error_answer(429, headers=[("retry-after", formatdate(NOW + 90, usegmt=True))]),
            "rate_limit",
            Remedy.RETRY,
            90.0,
        ),
        (error_answer(429), "rate_limit", Remedy.RETRY, None),
        (error_answer(429, code="insufficient_quota"), "quota", Remedy.FAIL_OVER, None),
        (error_answer(529), "overloaded", Remedy.RETRY, None),
        (error_answer(500), "server", Remedy.RETRY, None),
        (error_answer(599), "server", Remedy.RETRY, None),
        (error_answer(400), "request", Remedy.REPAIR, None),
        (error_answer(400, type="exceed_context_size_error"), "context", Remedy.COMPACT, None),
        (error_answer(400, code="context_length_exceeded"), "context", Remedy.COMPACT, None),
        (error_answer(403), "auth", Remedy.TELL, None),
        (
            Answer(status=502, headers=(("content-type", "text/html"),), parts=(b"<h1>bad",)),
            "server",
            Remedy.RETRY,
            None,
        ),
        (Answer(parts=(sse(chunk({"content": "He"}), done=False), Cut())), "cut", Remedy.RETRY, None),
        (Answer(parts=(sse(chunk({"content": "He"}), done=False),)), "cut", Remedy.RETRY, None),
        (Answer(parts=(sse(chunk({"tool_calls": [HALF_A_CALL]}), done=False), Cut())), "cut", Remedy.RETRY, None),
        (Answer(parts=(b"data: {garbage\n\n",)), "garbage", Remedy.RETRY, None),
        (Answer(parts=(b"data: " + b"x" * (2 << 20),)), "garbage", Remedy.RETRY, None),
        (
            Answer(parts=(sse(*saying("He"), {"error": {"message": "overloaded", "type": "overloaded_error"}}),)),
            "overloaded",
            Remedy.RETRY,
            None,
        ),
        (Answer(headers=(("content-type", "text/html"),), parts=(b"<h1>Log in",)), "address", Remedy.TELL, None),
        (Answer(status=307, headers=(("location", "/elsewhere"),)), "address", Remedy.TELL, None),
    ],
)
async def test_every_failure_is_an_error_of_table_p2(
    answer: Answer, kind: str, remedy: Remedy, retry_after_s: float | None
) -> None:
    async with talking_to(answer) as (_, model):
        error = await refused(model)
    assert (error.kind, error.remedy, error.retry_after_s) == (kind, remedy, retry_after_s)
    assert str(error).startswith("openai: ")


@pytest.mark.parametrize(
    "data",
    [
        f'{{"error": {{"message": "the key {KEY} is none"}}}}',
        f'{{"error": "the key {KEY} is none"}}',
        f"the key {KEY} is none",
        f'["the key {KEY} is none"]',
    ],
)
async def test_a_server_that_repeats_the_key_in_a_stream_is_not_quoted(data: str) -> None:
    async with talking_to(Answer(parts=(f"data: {data}\n\n".encode(),))) as (_, model):
        error = await refused(model)
    assert "the key *** is none" in str(error)


async def test_a_refused_key_is_told_once_with_where_it_is_looked_for_and_never_shown() -> None:
    async with talking_to(text_answer("ok"), api_key="sk-wrong-key") as (server, model):
        error = await refused(model)
    assert error.remedy is Remedy.TELL
    assert "[openai] api_key or OPENAI_API_KEY" in str(error)
    assert "sk-wrong-key" not in str(error)
    assert server.notes.count("request 0") == 1
    assert "request 1" not in server.notes


async def test_a_missing_key_is_told_as_missing() -> None:
    async with talking_to(text_answer("ok"), api_key=None) as (_, model):
        error = await refused(model)
    assert error.remedy is Remedy.TELL
    assert "none is set; it is looked for in [openai] api_key or OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize("key", ["schlüssel", "two words", "new\nline"])
async def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(key: str) -> None:
    async with talking_to(text_answer("ok"), api_key=key) as (server, model):
        error = await refused(model)
    assert (error.kind, server.notes) == ("auth", [])


async def test_an_unknown_model_says_which_setting_to_change() -> None:
    async with talking_to(text_answer("ok"), model="gpt-99") as (_, model):
        error = await refused(model)
    assert error.remedy is Remedy.TELL
    assert "[openai] model_name" in str(error)
    assert "gpt-99" in str(error)


async def test_nobody_at_the_address_is_a_retriable_error_that_names_the_setting() -> None:
    async with serving(text_answer("ok")) as server:
        url = server.url
    model = model_at(url)
    error = await refused(model)
    await model.aclose()
    assert (error.kind, error.remedy) == ("connect", Remedy.RETRY)
    assert "[openai] base_url" in str(error)


@pytest.mark.parametrize("url", ["ftp://example.invalid/v1", "http://localhost:port/v1", "localhost:8080", ""])
async def test_an_address_that_is_none_is_told(url: str) -> None:
    model = model_at(url)
    error = await refused(model)
    await model.aclose()
    assert (error.kind, error.remedy) == ("address", Remedy.TELL)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_cancelled_inference_is_seen_as_a_disconnect_before_the_next_request(begun: bool) -> None:
    stalling = Answer(parts=(sse(chunk({"content": "He"}), done=False), Stall()) if begun else (Stall(),))
    async with talking_to(stalling, text_answer("ok")) as (server, model):
        heard = trio.Event()
        async with trio.open_nursery() as nursery:

            def hear(_piece: Piece) -> None:
                heard.set()

            nursery.start_soon(infer, model, None, hear)
            with trio.fail_after(60):
                if begun:
                    await heard.wait()
                else:
                    await server.came[0].wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(60):
            await server.left[0].wait()
        assert (await infer(model)).text == "ok"
    assert server.notes[:3] == ["request 0", "left 0", "request 1"]


async def test_inferences_run_side_by_side_over_one_client() -> None:
    texts: list[str] = []
    slow = Answer(parts=(sse(chunk({"content": "slow"}), done=False), Pause(0.05), sse(chunk({}, "stop"))))

    async def ask(model: OpenAIModel) -> None:
        texts.append((await infer(model)).text)

    async with talking_to(slow) as (_, model), trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask, model)
    assert texts == ["slow"] * 8


async def test_the_end_of_the_context_is_no_orderly_end() -> None:
    full = Answer(parts=(sse(*saying("and so"), chunk(usage={"total_tokens": 4096})),))
    async with talking_to(full, context_tokens=4096) as (_, model):
        assert (await infer(model)).finish is Finish.LENGTH


@pytest.mark.parametrize(
    "message",
    ["llama3:8b does not support tools", '"auto" tool choice requires --enable-auto-tool-choice and a parser'],
)
async def test_a_model_that_cannot_use_tools_goes_on_without_them(message: str) -> None:
    call = called(2, call_id="x")
    request = asking(said(1, "When?"), call, result(3, call, "Monday"), said(4, "And now?"), tools=(DATE_TOOL,))
    entries: list[Entry] = []
    async with talking_to(error_answer(400, message), text_answer("ok"), entries=entries) as (server, model):
        with pytest.raises(ProviderError) as caught:
            await infer(model, request)
        assert (caught.value.kind, caught.value.remedy) == ("tools", Remedy.RETRY)
        assert (await infer(model, request)).text == "ok"
    assert not model.supports_tools
    assert "tools" not in server.bodies[1]
    assert [one["role"] for one in server.bodies[1]["messages"]] == ["system", "user"]
    assert [entry.event for entry in entries] == ["the model cannot use tools: going on without them"]


@pytest.mark.parametrize("begun", [False, True])
async def test_a_stalling_server_is_left_by_the_watchdog(begun: bool) -> None:
    stalling = Answer(parts=(sse(chunk({"content": "He"}), done=False), Stall()) if begun else (Stall(),))
    async with talking_to(stalling, limits=Limits(first_byte_s=2.0, idle_s=0.5)) as (server, model):
        gate = ProviderGate.of(model)
        actor = ChildSpec(id="gate", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)
        async with running(actor):
            with pytest.raises(ProviderError) as caught:
                await infer_once(model, gate, asking(said(1, "Hi")), ignore)
        with trio.fail_after(60):
            await server.left[0].wait()
    assert (caught.value.kind, caught.value.remedy) == ("stall", Remedy.RETRY)


async def test_a_prompt_too_long_is_refused_with_what_the_server_says_of_its_length() -> None:
    too_long = error_answer(400, type="exceed_context_size_error", n_prompt_tokens=5000, n_ctx=2048)
    async with talking_to(too_long) as (_, model):
        error = await refused(model)
    assert (error.kind, error.remedy) == ("context", Remedy.COMPACT)
    assert (error.prompt_tokens, error.context_tokens) == (5000, 2048)
    assert "longer than the model can read" in str(error)


async def test_broken_text_of_a_person_is_sent_as_valid_json() -> None:
    async with talking_to(text_answer("ok")) as (server, model):
        await infer(model, asking(said(1, "half \ud83c a guitar")))
    assert "half � a guitar" in server.bodies[0]["messages"][-1]["content"]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_an_answer_that_has_finished_is_taken_though_no_end_marker_comes(goes_on: bool) -> None:
    finished = sse(*saying("There you are."), done=False)
    after = (b": ping\n\n", Pause(0.1)) * 100 if goes_on else ()
    async with talking_to(Answer(parts=(finished, *after, Stall()))) as (_, model):
        assert (await infer(model)).text == "There you are."


async def test_usage_that_follows_the_finish_reason_is_waited_for() -> None:
    finished, usage = (
        saying("Yes.", usage={"prompt_tokens": 3, "completion_tokens": 1})[:-1],
        chunk(usage={"prompt_tokens": 3, "completion_tokens": 1}),
    )
    parts = (sse(*finished, done=False), Pause(0.2), sse(usage, done=False), Stall())
    async with talking_to(Answer(parts=parts)) as (_, model):
        assert (await infer(model)).usage == Usage(input=3, output=1)
