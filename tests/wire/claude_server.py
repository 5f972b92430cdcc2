"""A strict server that speaks Claude's Messages wire.

Its rules are those of the published API (`claude_rules`). It counts what it would have found in its cache by the
prefixes that were marked before, and signs what it thinks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from attrs import define, field

from .claude_rules import refusals
from .loopback import Answer, LoopbackServer, serving
from .signatures import sign

KEY: Final = "sk-ant-test"
MODEL: Final = "claude-haiku-4-5"
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/:]+):")


def event(type: str, **fields: Any) -> dict[str, Any]:
    """Return an event of a stream."""
    return {"type": type, **fields}


def sse(*events: Mapping[str, Any]) -> bytes:
    """Return events as they go over the wire."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in events).encode()


def message_events(
    *blocks: Mapping[str, Any], stop: str = "end_turn", usage: Mapping[str, Any] | None = None, **end: Any
) -> tuple[dict[str, Any], ...]:
    """Return the events of a whole message; each block is given as it stands in a message that was not streamed."""
    begun = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": MODEL,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": begun | dict(usage or {}),
    }
    events = [event("message_start", message=message), event("ping")]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    delta = {"stop_reason": stop, "stop_sequence": None, **end}
    events.append(event("message_delta", delta=delta, usage={"output_tokens": 12}))
    return (*events, event("message_stop"))


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    match block["type"]:
        case "text":
            citations = block.get("citations") or ()
            begun = {"type": "text", "text": ""} | ({"citations": []} if citations else {})
            deltas = [{"type": "citations_delta", "citation": one} for one in citations]
            deltas += [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "thinking":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "tool_use" | "server_tool_use":
            begun = {**block, "input": {}}
            written = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(written))]
        case _:
            begun = dict(block)
    yield event("content_block_start", index=index, content_block=begun)
    yield from (event("content_block_delta", index=index, delta=delta) for delta in deltas)
    yield event("content_block_stop", index=index)


def _pieces(text: str, size: int = 7) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def thinking(words: str, signature: str | None = None, *, model: str = MODEL) -> dict[str, Any]:
    """Return a thought of a model's."""
    return {"type": "thinking", "thinking": words, "signature": sign(model, words) if signature is None else signature}


def redacted(words: str, *, model: str = MODEL) -> dict[str, Any]:
    """Return a thought that is not shown."""
    hidden = sign(words)
    return {"type": "redacted_thinking", "data": f"{hidden}.{sign(model, hidden)}"}


def use(name: str, id: str, **input: Any) -> dict[str, Any]:
    """Return a call."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def answering(*blocks: Mapping[str, Any], stop: str | None = None, **more: Any) -> Answer:
    """Return a whole answer."""
    is_call = any(block["type"] == "tool_use" for block in blocks)
    return Answer(parts=(sse(*message_events(*blocks, stop=stop or ("tool_use" if is_call else "end_turn"), **more)),))


def error_answer(status: int, type: str, message: str = "no", *, headers: Iterable[tuple[str, str]] = ()) -> Answer:
    """Return an error as the service words it."""
    body = json.dumps({"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}).encode()
    return Answer(status=status, headers=(("content-type", "application/json"), *headers), parts=(body,))


@define
class ClaudeJudge:
    """Judges requests, and keeps what they were and what of each was in the cache."""

    path: str = "/v1/messages"
    header: tuple[str, str] = ("authorization", f"Bearer {KEY}")
    goes_on: bool = False
    """Whether a request may end with an answer, to go on with it."""
    more_rules: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _body: ()
    """What it refuses beside, in the words it is told with."""
    bodies: list[dict[str, Any]] = field(factory=list)
    cached: list[int] = field(factory=list)
    """Characters of each request that an earlier one had marked for the cache."""
    _marked: dict[str, int] = field(factory=dict)

    def __call__(self, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        name, value = self.header
        if target.partition("?")[0] != self.path:
            return error_answer(404, "not_found_error", f"Not Found: {target}")
        if headers.get(name) != value:
            return error_answer(401, "authentication_error", "invalid x-api-key")
        if self.path == "/v1/messages" and not headers.get("anthropic-version"):
            return error_answer(400, "invalid_request_error", "anthropic-version: header is required")
        try:
            data = json.loads(body.decode("utf-8"))
        except ValueError as problem:
            return error_answer(400, "invalid_request_error", f"The request body is not valid JSON: {problem}")
        self.bodies.append(data)
        judged = data
        if self.goes_on and data["messages"][-1]["role"] == "assistant":
            judged = {**data, "messages": [*data["messages"], {"role": "user", "content": [text("(go on)")]}]}
        in_path = _MODEL_IN_PATH.search(target)
        model = str(data.get("model", in_path[1] if in_path else ""))
        problems = [*refusals(judged, model), *self.more_rules(data)]
        if problems:
            return error_answer(400, "invalid_request_error", "; ".join(problems))
        if not model.startswith("claude"):
            return error_answer(404, "not_found_error", f"model: {model}")
        self._count(data)
        return None

    def _count(self, body: Mapping[str, Any]) -> None:
        found, prefix, now = 0, hashlib.sha256(), {}
        size = 0
        for block in _in_cache_order(body):
            plain = json.dumps({key: value for key, value in block.items() if key != "cache_control"}, sort_keys=True)
            prefix.update(plain.encode())
            size += len(plain)
            if prefix.hexdigest() in self._marked:
                found = size
            if block.get("cache_control"):
                now[prefix.hexdigest()] = size
        self._marked |= now
        self.cached.append(found)


def _in_cache_order(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from body.get("tools", ())
    yield from body.get("system", ())
    for message in body["messages"]:
        yield from message["content"]


@asynccontextmanager
async def serving_claude(*answers: Answer, **judge: Any) -> AsyncIterator[tuple[LoopbackServer, ClaudeJudge]]:
    """Run a strict server on a free loopback port."""
    judging = ClaudeJudge(**judge)
    async with serving(judging, *answers) as server:
        yield server, judging
