"""A strict server that speaks Claude's Messages wire.

Its rules are those of the published API. The shapes are taken from the SDK's own types, with unknown fields refused;
what no type can say (roles, pairing, signatures, breakpoints, sizes) is one pure function, `request_problems`. It
counts what it would have found in its cache by the prefixes that were marked before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin

from anthropic.types import message_create_params
from attrs import define, field
from typing_extensions import get_type_hints, is_typeddict

from .loopback import Answer, LoopbackServer, serving

KEY: Final = "sk-ant-test"
MODEL: Final = "claude-haiku-4-5"
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")


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


def thinking(words: str, signature: str = "c2lnbmVk") -> dict[str, Any]:
    """Return a thought."""
    return {"type": "thinking", "thinking": words, "signature": signature}


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
        problems = [*shape_problems(data), *request_problems(judged), *self.more_rules(data)]
        if problems:
            return error_answer(400, "invalid_request_error", "; ".join(problems))
        if not data.get("model", MODEL).startswith("claude"):
            return error_answer(404, "not_found_error", f"model: {data['model']}")
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


# The shapes: what the SDK's own types say, with nothing else allowed.


@cache
def _hints(type: Any) -> dict[str, Any]:
    return get_type_hints(type, include_extras=True)


def shape_problems(body: Mapping[str, Any]) -> list[str]:
    """Return where a request's body does not have the shape that the SDK's types give it."""
    body = {key: value for key, value in body.items() if key not in ("stream", "anthropic_version")}
    wanted = message_create_params.MessageCreateParamsBase
    if "model" not in body:
        body = {**body, "model": "in the path"}  # as Vertex has it
    return list(_against(body, wanted, "body"))


def _against(value: Any, wanted: Any, at: str) -> Iterator[str]:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if wanted is Any or wanted is object:
        return
    if origin in (Required, NotRequired, Annotated):
        yield from _against(value, arguments[0], at)
    elif is_typeddict(wanted):
        yield from _against_fields(value, wanted, at)
    elif origin in (Union, UnionType):
        yield from _against_union(value, arguments, at)
    elif origin is Literal:
        if value not in arguments:
            yield f"{at}: {value!r} is none of {arguments}"
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            yield f"{at}: no object"
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(value, list):
            yield f"{at}: no list"
            return
        for index, item in enumerate(value):
            yield from _against(item, arguments[0], f"{at}.{index}")
    elif isinstance(wanted, type):
        wanted = (int, float) if wanted is float else wanted
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            yield f"{at}: {value!r:.40} is no {wanted}"


def _against_fields(value: Any, wanted: Any, at: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{at}: no object"
        return
    hints = _hints(wanted)
    open_ended = wanted.__name__ in ("InputSchema", "InputSchemaTyped")
    for key in value:
        if key not in hints and not open_ended:
            yield f"{at}.{key}: Extra inputs are not permitted"
    for key, hint in hints.items():
        if key in value:
            yield from _against(value[key], hint, f"{at}.{key}")
        elif get_origin(hint) is Required:
            yield f"{at}.{key}: Field required"


def _against_union(value: Any, arguments: Sequence[Any], at: str) -> Iterator[str]:
    for member in arguments:
        if is_typeddict(member) and isinstance(value, Mapping) and value.get("type") in _kinds(member):
            yield from _against(value, member, at)
            return
    tried = [list(_against(value, member, at)) for member in arguments]
    yield from min(tried, key=len)


@cache
def _kinds(type: Any) -> tuple[Any, ...]:
    return get_args(_unwrapped(_hints(type).get("type")))


def _unwrapped(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint


# What no type says.


def request_problems(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the service refuses in a body of the right shape, in its own words where they are known."""
    messages = body.get("messages", [])
    if not messages:
        yield "messages: at least one message is required"
        return
    if messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
    if messages[-1]["role"] == "assistant":
        yield "This model does not support assistant message prefill"
    if body["max_tokens"] < 1:
        yield "max_tokens: must be at least 1"
    yield from _block_problems(messages)
    yield from _pair_problems(messages)
    yield from _server_tool_problems(messages)
    yield from _thinking_problems(body)
    names = [tool["name"] for tool in body.get("tools", ())]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    yield from (f"tools: {name!r} should match the pattern" for name in names if not _NAME.match(name))
    blocks = [block for message in messages for block in _blocks(message)]
    if not names and any(block["type"] in ("tool_use", "tool_result") for block in blocks):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    marked = [
        block for block in [*body.get("tools", ()), *body.get("system", ()), *blocks] if block.get("cache_control")
    ]
    if len(marked) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    if len(json.dumps(body)) > 32 << 20:
        yield "Request exceeds the maximum size"


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [text(content)] if isinstance(content, str) else content


_SERVER_RESULT: Final = re.compile(r"(?:web_search|web_fetch|tool_search|(?:\w+_)?code_execution)_tool_result\Z")
_MISPLACED: Final = {
    "user": ("tool_use", "server_tool_use", "thinking", "redacted_thinking"),
    "assistant": ("tool_result", "image", "document", "search_result"),
}


def _block_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    images = 0
    before = ""
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        if message["role"] == before:
            yield f"messages.{index}: roles must alternate"
        before = message["role"]
        if not blocks:
            yield f"messages.{index}: all messages must have non-empty content"
        for block in blocks:
            if block["type"] in _MISPLACED[before] or (before == "user" and _SERVER_RESULT.match(block["type"])):
                yield f"messages.{index}: `{block['type']}` blocks are not allowed in {before} messages"
            inner = block.get("content") if block["type"] == "tool_result" else None
            for one in [block, *(inner if isinstance(inner, list) else ())]:
                if one["type"] == "text" and not one["text"].strip():
                    yield f"messages.{index}: text content blocks must contain non-whitespace text"
                if one["type"] == "image":
                    images += 1
                    if one["source"]["type"] == "base64" and len(one["source"]["data"]) > 5 << 20:
                        yield f"messages.{index}: image exceeds 5 MB maximum"
                if one.get("cache_control") and one["type"] in ("thinking", "redacted_thinking"):
                    yield f"messages.{index}: cache_control cannot be set for thinking blocks"
            if block["type"] == "thinking" and not block["signature"]:
                yield f"messages.{index}: Invalid `signature` in `thinking` block"
    if images > 100:
        yield "Too many images"


def _pair_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    due: list[str] = []
    for index, message in enumerate(messages):
        blocks = _blocks(message)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        leading = [block.get("tool_use_id") for block in blocks[: len(due)]]
        if due and sorted(map(str, leading)) != sorted(due):
            yield f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {due}"
        if extra := [id for id in results if id not in due]:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {extra}"
        if len(results) != len(set(results)):
            yield f"messages.{index}: each tool_use must have a single result"
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for block in blocks:
            if block["type"] == "tool_use":
                if block["id"] in seen:
                    yield f"messages.{index}: `tool_use` ids must be unique"
                if not _ID.match(block["id"]) or not _NAME.match(block["name"]):
                    yield f"messages.{index}: String should match pattern"
                if not isinstance(block["input"], dict):
                    yield f"messages.{index}: Input should be a valid dictionary"
                seen.add(block["id"])


def _server_tool_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    blocks = [block for message in messages for block in _blocks(message)]
    uses = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
    results = [block["tool_use_id"] for block in blocks if _SERVER_RESULT.match(block["type"])]
    calling = [(block.get("caller") or {}).get("tool_id") for block in blocks if block["type"] == "tool_use"]
    for use in uses:
        if use not in results and use not in calling:
            yield f"server tool use with id `{use}` was found without a corresponding result block"
    if len(uses) != len(set(uses)):
        yield "`server_tool_use` ids must be unique"
    for place, block in enumerate(blocks):
        if _SERVER_RESULT.match(block["type"]):
            before = [one["id"] for one in blocks[:place] if one["type"] == "server_tool_use"]
            if block["tool_use_id"] not in before:
                yield f"unexpected `tool_use_id` found in `{block['type']}` blocks: {block['tool_use_id']}"
    if len(results) != len(set(results)):
        yield "each server_tool_use must have a single result"


def _thinking_problems(body: Mapping[str, Any]) -> Iterator[str]:
    thinking = body.get("thinking", {})
    if thinking.get("type") != "enabled":
        return
    if thinking["budget_tokens"] < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if thinking["budget_tokens"] >= body["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"
    messages = body["messages"]
    people = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and all(block["type"] != "tool_result" for block in _blocks(message))
    ]
    for message in messages[people[-1] if people else 0 :]:
        if message["role"] == "assistant" and any(block["type"] == "tool_use" for block in _blocks(message)):
            first = _blocks(message)[0]["type"]
            if first not in ("thinking", "redacted_thinking"):
                yield f"Expected `thinking` or `redacted_thinking`, but found `{first}`"
