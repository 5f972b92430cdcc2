"""Recorded traffic of Claude's: its bytes give the right answer, our request of that talk means the recorded one."""

from __future__ import annotations

import base64
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
from kesoku_actors.llm.media import Media
from kesoku_actors.llm.port import Finish, Piece, ProviderError, Reply, StepContent
from kesoku_actors.llm.repaired import BEGINNING, GO_ON
from kesoku_actors.llm.talk import EMPTY
from kesoku_actors.protocol import DeltaKind, Message, ToolSchema, Type

from ..llm.examples import answered, asking, called, ignore, result, said, thought
from .claude_server import message_events, sse
from .loopback import Answer
from .recordings import Exchange, Unheld, exchanges, with_requests
from .test_claude import talking_to

EXCHANGES = exchanges("claude")
ADDED = {"", EMPTY, BEGINNING, GO_ON, "(ok, no output)"}
"""Texts that say nothing: the rules of a talk ask for some text there."""


def judged_by_the_sdk(answer: Answer) -> ClaudeMessage | None:
    """What the SDK itself makes of an answer; none when it is no message."""
    [body] = answer.parts
    assert isinstance(body, bytes)
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, headers=list(answer.headers), content=body))
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "."}]}
    with anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=transport)) as client:
        if answer.headers[0][1].startswith("text/event-stream"):
            with client.messages.stream(**asked) as events:
                return events.get_final_message()
        whole = client.messages.create(**asked)
        return whole if whole.type == "message" else None


async def replayed(answer: Answer) -> tuple[Reply, str, str]:
    """What our client makes of an answer, with the text and the thoughts it showed meanwhile."""
    pieces: list[Piece] = []
    async with talking_to(answer) as (_server, _judge, model):
        reply = await model.infer(asking(said(1, "Hi")), pieces.append)
    text, thoughts = (
        "".join(piece.text for piece in pieces if piece.kind is kind) for kind in (DeltaKind.TEXT, DeltaKind.THOUGHT)
    )
    return reply, text, thoughts


async def refused(answer: Answer) -> None:
    """See to it that an answer is an error to our client."""
    async with talking_to(answer) as (_server, _judge, model):
        with pytest.raises(ProviderError):
            await model.infer(asking(said(1, "Hi")), ignore)


def check(whole: ClaudeMessage, reply: Reply, text: str, thoughts: str) -> None:
    """Hold our reply against the SDK's message."""
    assert text == "".join(block.text for block in whole.content if block.type == "text")
    assert thoughts == "".join(block.thinking for block in whole.content if block.type == "thinking")
    assert reply.text == text or reply.finish is Finish.REFUSED
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
        data = original.to_dict(mode="json", exclude_unset=True, warnings=False)
        data = {key: value for key, value in data.items() if key not in ("input", "parsed_output")}
        assert {key: value for key, value in block.items() if key in data} == data


@pytest.mark.parametrize("exchange", EXCHANGES)
async def test_recorded_bytes_give_what_the_sdk_makes_of_them(exchange: Exchange) -> None:
    if exchange.status >= 400:
        await refused(exchange.answer)
        return
    whole = judged_by_the_sdk(exchange.answer)
    if whole is None or whole.stop_reason is None:
        await refused(exchange.answer)
    elif whole.stop_reason != "pause_turn":  # which is gone on with: of that there is no recording
        check(whole, *await replayed(exchange.answer))


@pytest.mark.parametrize("exchange", [one for one in EXCHANGES if one.values[0] and not one.values[0].is_stream])
async def test_a_recorded_message_gives_the_same_when_it_is_streamed(exchange: Exchange) -> None:
    data = json.loads(exchange.body)
    if exchange.status >= 400 or not data.get("content") or data["stop_reason"] == "pause_turn":
        pytest.skip("no message that ended")
    whole = judged_by_the_sdk(exchange.answer)
    assert whole is not None
    stream = sse(*message_events(*data["content"], stop=data["stop_reason"], usage=data["usage"]))
    reply, text, thoughts = await replayed(Answer(parts=(stream,)))
    output = whole.usage.output_tokens
    check(whole, evolve(reply, usage=evolve(reply.usage, output=output)), text, thoughts)


@pytest.mark.parametrize("exchange", with_requests(EXCHANGES, "messages"))
def test_our_request_of_a_recorded_talk_means_the_recorded_one(exchange: Exchange) -> None:
    recorded = exchange.request
    try:
        talk = Conversation(exchange.model).of(recorded["messages"])
    except Unheld as what:
        pytest.skip(str(what))
    named = [tool for tool in recorded.get("tools") or () if "name" in tool]
    names = list(dict.fromkeys([*(tool["name"] for tool in named), *talk.names]))
    tools = tuple(ToolSchema(name=name, description="", parameters={"type": "object"}) for name in names)
    system = recorded.get("system") or ""
    system = system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)
    request = asking(*talk.rows, steps=tuple(talk.steps), tools=tools, system=system)
    options = ClaudeOptions(provider="claude", model=exchange.model)
    body = repair(make_body(request, options, media=talk.media)).body
    assert list(meaning(body["messages"])) == list(meaning(recorded["messages"]))
    assert [block["text"] for block in body.get("system", ())] == ([system] if system else [])
    assert [tool["name"] for tool in body.get("tools", ())] == names
    assert body["model"] == exchange.model


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class Conversation:
    """The rows that a recorded talk would have been stored as."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.rows: list[Message] = []
        self.steps: list[StepContent] = []
        self.media: dict[str, list[Media]] = {}
        self._calls: dict[str, Message] = {}

    @property
    def names(self) -> list[str]:
        """The tools that were called."""
        return [row.metadata["tool_name"] for row in self.rows if row.type is Type.TOOL_CALL]

    def of(self, messages: list[dict[str, Any]]) -> Conversation:
        for message in messages:
            match message["role"]:
                case "user":
                    self._hear(blocks_of(message))
                case "assistant":
                    self._answer(blocks_of(message))
                case role:
                    raise Unheld(f"a message of role {role}")
        return self

    def _hear(self, blocks: list[dict[str, Any]]) -> None:
        waiting: list[Media] = []
        for block in blocks:
            number = len(self.rows) + 1
            match block["type"]:
                case "text":
                    self._add(said(number, block["text"]), waiting)
                    waiting = []
                case "image" | "document":
                    waiting.append(media_of(block))
                case "tool_result" if block["tool_use_id"] in self._calls:
                    content = block.get("content")
                    seen = [media_of(part) for part in content or () if isinstance(part, dict) and "source" in part]
                    self._add(result(number, self._calls[block["tool_use_id"]], words(content)), seen)
                case kind:
                    raise Unheld(f"a {kind} from the user")
        if waiting:
            self._add(said(len(self.rows) + 1, ""), waiting)

    def _add(self, row: Message, media: list[Media]) -> None:
        self.rows.append(row)
        self.media[row.id] = media

    def _answer(self, blocks: list[dict[str, Any]]) -> None:
        made: list[Message] = []
        for block in blocks:
            number = len(self.rows) + len(made) + 1
            match block["type"]:
                case "text":
                    made.append(answered(number, block["text"]))
                case "thinking":
                    made.append(thought(number, block["thinking"]))
                case "tool_use":
                    plain = called(number, block["name"], block["id"])
                    call = evolve(plain, metadata=plain.metadata | {"tool_arguments": block["input"]})
                    self._calls[block["id"]] = call
                    made.append(call)
        if all(row.type is Type.THOUGHT for row in made) and any(map(says, blocks)):
            raise Unheld("an answer without a text and a call, which is none to us")
        ids = tuple(row.id for row in made)
        self.steps.append(StepContent(provider="claude", model=self.model, native={"content": blocks}, message_ids=ids))
        self.rows += made


def says(block: Mapping[str, Any]) -> bool:
    return block["type"] != "text" or bool(block["text"].strip())


def media_of(block: Mapping[str, Any]) -> Media:
    source = block["source"]
    match source["type"]:
        case "base64":
            data = base64.b64decode(source["data"])
        case "text":
            data = source["data"].encode()
        case kind:
            raise Unheld(f"a file by its {kind}: ours are files of the session")
    return Media(filename=str(block.get("title")), mime_type=source["media_type"], data=data)


def words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def meaning(messages: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the model is told, but for what the rules of a talk ask us to add and what only the cache reads."""
    for message in messages:
        for block in blocks_of(message):
            match block["type"]:
                case "text" if block["text"].strip() in ADDED:
                    pass
                case "text":
                    yield (message["role"], "text", block["text"], block.get("citations") or [])
                case "thinking":
                    yield (message["role"], "thinking", block["thinking"], block["signature"])
                case "tool_use":
                    yield (message["role"], "use", block["id"], block["name"], block["input"])
                case "image" | "document":
                    yield (message["role"], block["type"], block["source"])
                case "tool_result":
                    content = block.get("content")
                    text = "" if words(content) in ADDED else words(content)
                    seen = [part["source"] for part in content or () if isinstance(part, dict) and "source" in part]
                    yield (message["role"], "result", block["tool_use_id"], text, seen, bool(block.get("is_error")))
                case _:
                    yield (message["role"], {key: value for key, value in block.items() if key != "cache_control"})
