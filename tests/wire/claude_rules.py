"""What Claude's Messages API refuses, for the strict server. Pure.

The shapes are taken from the SDK's own types, with unknown fields refused; what no type can say (roles, pairing,
signatures, breakpoints, sizes, what a model can do) is written from the published reference. `refusals` is all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin

from anthropic.types import message_create_params
from typing_extensions import get_type_hints, is_typeddict

from .signatures import is_signed

_ID: Final = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_MOST_OUTPUT: Final = (
    (re.compile(r"claude-3-(?:opus|sonnet|haiku)"), 4096),
    (re.compile(r"claude-3-5"), 8192),
    (re.compile(r"claude-opus-4(?:-[01]|-2025|@|\Z)"), 32_000),
    (re.compile(r"claude-"), 64_000),
)
"""Tokens that a model can write; the first that fits."""
_THINKS: Final = re.compile(r"claude-(?:3-7|\w+-[4-9])")
_ADAPTS: Final = re.compile(r"claude-\w+-(?:4-[6-9]|[5-9])(?!\d)")


def refusals(body: Mapping[str, Any], model: str) -> list[str]:
    """Return what the service refuses in a request for a model, in its own words where they are known."""
    body = {**body, "model": model}  # as Vertex has it, the model stands in the path
    wrong = shape_problems(body)
    return wrong or [*request_problems(body), *_signature_problems(body)]


@cache
def _hints(type: Any) -> dict[str, Any]:
    return get_type_hints(type, include_extras=True)


def shape_problems(body: Mapping[str, Any]) -> list[str]:
    """Return where a request's body does not have the shape that the SDK's types give it."""
    body = {key: value for key, value in body.items() if key not in ("stream", "anthropic_version")}
    wanted = message_create_params.MessageCreateParamsBase
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
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


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


def _signature_problems(body: Mapping[str, Any]) -> Iterator[str]:
    """The thoughts of a model go back to it as it thought them."""
    for index, message in enumerate(body["messages"]):
        for block in _blocks(message):
            match block["type"]:
                case "thinking" if not is_signed(block["signature"], body["model"], block["thinking"]):
                    yield f"messages.{index}: Invalid `signature` in `thinking` block"
                case "redacted_thinking":
                    hidden, _, signature = block["data"].partition(".")
                    if not is_signed(signature, body["model"], hidden):
                        yield f"messages.{index}: Invalid `data` in `redacted_thinking` block"


def _thinking_problems(body: Mapping[str, Any]) -> Iterator[str]:
    thinking = body.get("thinking", {})
    most = next((tokens for name, tokens in _MOST_OUTPUT if name.match(body["model"])), None)
    if most is not None and body["max_tokens"] > most:
        yield f"max_tokens: {body['max_tokens']} > {most}, which is the maximum allowed number of output tokens"
    if thinking.get("type") in ("enabled", "adaptive") and not _THINKS.match(body["model"]):
        yield f"'{body['model']}' does not support thinking"
    if thinking.get("type") == "adaptive" and not _ADAPTS.match(body["model"]):
        yield "adaptive thinking is not supported on this model"
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
