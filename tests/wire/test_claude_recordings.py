"""Recorded traffic of Claude's: its bytes give the right answer, our request of that talk means the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import Message as ClaudeMessage
from attrs import evolve

from kesoku_actors.llm.claude_body import ClaudeOptions, make_body
from kesoku_actors.llm.claude_repair import repair
from kesoku_actors.llm.port import DeltaKind, Finish, Piece, StepContent
from kesoku_actors.llm.repaired import BEGINNING
from kesoku_actors.protocol import Message, ToolSchema

from ..llm.examples import answered, asking, called, result, said, thought
from .claude_server import message_events, sse
from .loopback import Answer
from .recordings import Exchange, exchanges
from .test_claude import talking_to

EXCHANGES = exchanges("claude")
ANSWERS = [one for one in EXCHANGES if one.values[0] is None or "count_tokens" not in one.values[0].uri]
REQUESTS = [one for one in EXCHANGES if one.values[0] is None or one.values[0].request.get("messages")]


def streamed(exchange: Exchange) -> bytes:
    """The answer as a stream: as it came, or what a stream of the same message would have been."""
    if exchange.is_stream:
        return exchange.body
    whole = json.loads(exchange.body)
    return sse(*message_events(*whole["content"], stop=whole["stop_reason"], usage=whole["usage"]))


def judged_by_the_sdk(stream: bytes) -> ClaudeMessage:
    """What the SDK's own accumulation makes of the bytes."""
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, headers=headers, content=stream))
    client = anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=transport))
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "."}]) as events:
        return events.get_final_message()


@pytest.mark.parametrize("exchange", ANSWERS)
async def test_recorded_bytes_give_what_the_sdk_makes_of_them(exchange: Exchange) -> None:
    stream = streamed(exchange)
    whole = judged_by_the_sdk(stream)
    pieces: list[Piece] = []
    async with talking_to(Answer(parts=(stream,))) as (_server, _judge, model):
        reply = await model.infer(asking(said(1, "Hi")), pieces.append)
    shown = {kind: "".join(piece.text for piece in pieces if piece.kind is kind) for kind in DeltaKind}
    assert shown[DeltaKind.TEXT] == "".join(block.text for block in whole.content if block.type == "text")
    assert shown[DeltaKind.THOUGHT] == "".join(block.thinking for block in whole.content if block.type == "thinking")
    assert reply.text == shown[DeltaKind.TEXT] or reply.finish is Finish.REFUSED
    uses = [block for block in whole.content if block.type == "tool_use"]
    assert [(call.id, call.name) for call in reply.calls] == [(use.id, use.name) for use in uses]
    assert [call.arguments for call in reply.calls if call.invalid is None] == [
        use.input for use, call in zip(uses, reply.calls, strict=True) if call.invalid is None
    ]
    assert reply.finish_reason == whole.stop_reason
    assert reply.usage.output == whole.usage.output_tokens
    assert reply.native is not None
    kept = [block for block in whole.content if block.type != "text" or block.text.strip()]
    sent_back = reply.native["content"]
    assert [block["type"] for block in sent_back] == [block.type for block in kept]
    for block, original in zip(sent_back, kept, strict=True):
        for name in ("signature", "thinking", "data", "text"):
            assert block.get(name) == getattr(original, name, None)


@pytest.mark.parametrize("exchange", REQUESTS)
def test_our_request_of_a_recorded_talk_means_the_recorded_one(exchange: Exchange) -> None:
    recorded = exchange.request
    rows, steps = conversation(recorded)
    tools = tuple(
        ToolSchema(name=tool["name"], description=tool["description"], parameters=tool["input_schema"])
        for tool in recorded.get("tools", ())
    )
    system = recorded.get("system", "")
    system = system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)
    request = asking(*rows, steps=tuple(steps), tools=tools, system=system)
    body = repair(make_body(request, ClaudeOptions(provider="claude", model=recorded["model"]))).body
    assert list(meaning(body["messages"])) == list(meaning(recorded["messages"]))
    assert [block["text"] for block in body.get("system", ())] == ([system] if system else [])
    assert [tool["name"] for tool in body.get("tools", ())] == [tool["name"] for tool in recorded.get("tools", ())]
    assert body["model"] == recorded["model"]


def conversation(recorded: Mapping[str, Any]) -> tuple[list[Message], list[StepContent]]:
    """The rows that a recorded talk would have been stored as."""
    rows: list[Message] = []
    steps: list[StepContent] = []
    calls: dict[str, Message] = {}
    for message in recorded["messages"]:
        made: list[Message] = []
        for block in message["content"]:
            number = len(rows) + len(made) + 1
            match block["type"], message["role"]:
                case "text", "user":
                    made.append(said(number, block["text"]))
                case "text", _:
                    made.append(answered(number, block["text"]))
                case "thinking", _:
                    made.append(thought(number, block["thinking"]))
                case "tool_use", _:
                    plain = called(number, block["name"], block["id"])
                    calls[block["id"]] = evolve(plain, metadata=plain.metadata | {"tool_arguments": block["input"]})
                    made.append(calls[block["id"]])
                case "tool_result", _:
                    made.append(result(number, calls[block["tool_use_id"]], words(block["content"])))
        if message["role"] == "assistant":
            native = {"content": message["content"]}
            ids = tuple(row.id for row in made)
            steps.append(StepContent(provider="claude", model=recorded["model"], native=native, message_ids=ids))
        rows += made
    return rows, steps


def words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def meaning(messages: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the model is told, but for what the rules of a talk ask us to add and what only the cache reads."""
    for message in messages:
        for block in message["content"]:
            match block["type"]:
                case "text" if not block["text"].strip() or block["text"] == BEGINNING:
                    pass
                case "text":
                    yield (message["role"], "text", block["text"])
                case "thinking":
                    yield (message["role"], "thinking", block["thinking"], block["signature"])
                case "tool_use":
                    yield (message["role"], "use", block["id"], block["name"], block["input"])
                case "tool_result":
                    yield (message["role"], "result", block["tool_use_id"], words(block["content"]))
                case _:
                    yield (message["role"], block)
