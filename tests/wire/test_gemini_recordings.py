"""Recorded traffic of Gemini's: its bytes give the right answer, our request of that talk means the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from attrs import evolve
from google import genai
from google.genai import types

from kesoku_actors.llm.gemini_body import GeminiOptions, make_body
from kesoku_actors.llm.gemini_repair import repair
from kesoku_actors.llm.port import DeltaKind, Piece, ProviderError, StepContent
from kesoku_actors.llm.talk import EMPTY
from kesoku_actors.protocol import Message, ToolSchema

from ..llm.examples import answered, asking, called, result, said
from .loopback import Answer
from .recordings import Exchange, exchanges
from .test_gemini import talking_to

EXCHANGES = exchanges("gemini")


def streamed(exchange: Exchange) -> bytes:
    """The answer as a stream: as it came, or as the one chunk that it would have been."""
    return (
        exchange.body
        if exchange.is_stream
        else b"data: " + json.dumps(json.loads(exchange.body)).encode() + b"\r\n\r\n"
    )


def judged_by_the_sdk(stream: bytes) -> list[types.GenerateContentResponse]:
    """What the SDK makes of the bytes."""
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, headers=headers, content=stream))
    options = types.HttpOptions(httpx_client=httpx2.Client(transport=transport))
    client = genai.Client(api_key="none", vertexai=False, http_options=options)
    return list(client.models.generate_content_stream(model="m", contents="."))


@pytest.mark.parametrize("exchange", EXCHANGES)
async def test_recorded_bytes_give_what_the_sdk_makes_of_them(exchange: Exchange) -> None:
    stream = streamed(exchange)
    chunks = judged_by_the_sdk(stream)
    parts = [
        part
        for chunk in chunks
        for candidate in (chunk.candidates or [])[:1]
        for part in (candidate.content.parts if candidate.content else None) or []
    ]
    pieces: list[Piece] = []
    async with talking_to(Answer(parts=(stream,))) as (_server, _judge, model):
        if any(chunk.prompt_feedback and chunk.prompt_feedback.block_reason for chunk in chunks):
            with pytest.raises(ProviderError) as caught:
                await model.infer(asking(said(1, "Hi")), pieces.append)
            assert caught.value.kind == "filtered"
            return
        reply = await model.infer(asking(said(1, "Hi")), pieces.append)
    shown = {kind: "".join(piece.text for piece in pieces if piece.kind is kind) for kind in DeltaKind}
    assert shown[DeltaKind.TEXT] == "".join(part.text or "" for part in parts if not part.thought)
    assert shown[DeltaKind.THOUGHT] == "".join(part.text or "" for part in parts if part.thought)
    assert [(call.name, call.arguments) for call in reply.calls] == [
        (part.function_call.name, part.function_call.args or {}) for part in parts if part.function_call
    ]
    last = chunks[-1]
    assert last.candidates
    assert reply.finish_reason == str(
        last.candidates[0].finish_reason.value if last.candidates[0].finish_reason else ""
    )
    assert last.usage_metadata is not None
    assert reply.usage.input == last.usage_metadata.prompt_token_count
    assert reply.native is not None
    signatures = [part.thought_signature for part in parts if part.thought_signature]
    kept = [types.Part.model_validate(part) for part in reply.native["parts"]]
    assert [part.thought_signature for part in kept if part.thought_signature] == signatures
    assert "".join(part.text or "" for part in kept) == "".join(part.text or "" for part in parts)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_our_request_of_a_recorded_talk_means_the_recorded_one(exchange: Exchange) -> None:
    recorded, model = exchange.request, exchange.uri.rpartition("/")[2].partition(":")[0]
    rows, steps = conversation(recorded, model)
    declared = [one for tool in recorded.get("tools", ()) for one in tool["functionDeclarations"]]
    tools = tuple(
        ToolSchema(
            name=tool["name"],
            description=tool["description"],
            parameters=tool.get("parameters_json_schema", {"type": "object", "properties": {}}),
        )
        for tool in declared
    )
    system = "".join(part["text"] for part in recorded.get("systemInstruction", {}).get("parts", ()))
    request = asking(*rows, steps=tuple(steps), tools=tools, system=system)
    body = repair(make_body(request, GeminiOptions(provider="gemini", model=model)), model=model).body
    assert list(meaning(body["contents"])) == list(meaning(recorded["contents"]))
    told = body.get("systemInstruction", {}).get("parts", ())
    assert "".join(part["text"] for part in told) == system
    names = [one["name"] for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
    assert names == [tool["name"] for tool in declared]


def conversation(recorded: Mapping[str, Any], model: str) -> tuple[list[Message], list[StepContent]]:
    """The rows that a recorded talk would have been stored as."""
    rows: list[Message] = []
    steps: list[StepContent] = []
    open_calls: list[Message] = []
    for content in recorded["contents"]:
        made: list[Message] = []
        for part in content["parts"]:
            number = len(rows) + len(made) + 1
            if "functionCall" in part:
                call = part["functionCall"]
                plain = called(number, call["name"], call.get("id", ""))
                open_calls.append(evolve(plain, metadata=plain.metadata | {"tool_arguments": call.get("args", {})}))
                made.append(open_calls[-1])
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                made.append(result(number, open_calls.pop(0), "".join(map(str, response.values()))))
            elif content["role"] == "model":
                made.append(answered(number, part["text"]))
            else:
                made.append(said(number, part["text"]))
        if content["role"] == "model":
            ids = tuple(row.id for row in made)
            native = {"role": "model", "parts": content["parts"]}
            steps.append(StepContent(provider="gemini", model=model, native=native, message_ids=ids))
        rows += made
    return rows, steps


def meaning(contents: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the model is told, but for empty texts, which a talk of ours has none of."""
    for content in contents:
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                yield (
                    content["role"],
                    "call",
                    call["name"],
                    call.get("args", {}),
                    _bytes(part.get("thoughtSignature")),
                )
            elif "functionResponse" in part:
                response = part["functionResponse"]
                yield (content["role"], "response", response["name"], "".join(map(str, response["response"].values())))
            elif part["text"] not in ("", EMPTY):
                yield (content["role"], part["text"])


def _bytes(signature: str | None) -> bytes | None:
    return types.Part.model_validate({"thoughtSignature": signature}).thought_signature if signature else None
