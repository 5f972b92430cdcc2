"""A strict server that speaks the chat completions wire.

Its rules are those of the published API: required and unknown fields, roles, tool names, and the pairing of calls and
results, answered with 400 as the service does.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from attrs import define, field, frozen

from . import loopback
from .loopback import Answer, LoopbackServer

KEY: Final = "sk-test"
MODEL: Final = "test-model"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_TOP: Final = {"model": str, "messages": list, "stream": bool, "stream_options": dict, "tools": list}
_NUMBERS: Final = frozenset({"max_tokens", "max_completion_tokens", "temperature", "seed"})
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "name", "tool_calls"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}


def sse(*chunks: Mapping[str, Any], done: bool = True) -> bytes:
    """Return chunks as events, with the end marker."""
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ["[DONE]"] * done
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one chunk of a completion; without a delta one that carries no choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices} | fields


def saying(*texts: str, finish: str = "stop", usage: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
    """Return the chunks of a text answer as llama.cpp and OpenAI send them."""
    chunks = [chunk({"role": "assistant", "content": None}), *(chunk({"content": text}) for text in texts)]
    chunks.append(chunk({}, finish))
    if usage is not None:
        chunks.append(chunk(usage=usage))
    return tuple(chunks)


def text_answer(*texts: str) -> Answer:
    """Return a whole text answer."""
    return Answer(parts=(sse(*saying(*texts)),))


def error_answer(status: int, message: str = "no", *, headers: Iterable[tuple[str, str]] = (), **fields: Any) -> Answer:
    """Return an error as the service words it."""
    body = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": None} | fields}).encode()
    return Answer(status=status, headers=(("content-type", "application/json"), *headers), parts=(body,))


@define
class OpenAIJudge:
    """Judges requests, and keeps what they were."""

    extensions: frozenset[str] = frozenset()
    """Fields of assistant messages beyond the published ones that it takes."""
    bodies: list[dict[str, Any]] = field(factory=list)

    def __call__(self, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        if target != "/v1/chat/completions":
            return error_answer(404, f"Invalid URL ({target})")
        if headers.get("authorization") != f"Bearer {KEY}":
            return error_answer(
                401, f"Incorrect API key provided: {headers.get('authorization')}", code="invalid_api_key"
            )
        try:
            data = json.loads(body.decode("utf-8"))
        except ValueError as error:
            return error_answer(400, f"We could not parse the JSON body: {error}", type="invalid_request_error")
        self.bodies.append(data)
        problems = list(body_problems(data, self.extensions))
        if problems:
            return error_answer(400, "; ".join(problems), type="invalid_request_error")
        if data["model"] != MODEL:
            return error_answer(404, f"The model `{data['model']}` does not exist", code="model_not_found")
        return None


@frozen
class OpenAIServer:
    """A running server, and what it noted."""

    loopback: LoopbackServer
    judge: OpenAIJudge

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"{self.loopback.origin}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests."""
        return self.judge.bodies

    @property
    def notes(self) -> list[str]:
        """`request N` and `left N`, in the order they happened."""
        return self.loopback.notes

    @property
    def came(self) -> list[trio.Event]:
        """Set when request N came."""
        return self.loopback.came

    @property
    def left(self) -> list[trio.Event]:
        """Set when client N closed its connection before it had its answer."""
        return self.loopback.left


@asynccontextmanager
async def serving(*answers: Answer, extensions: Sequence[str] = ()) -> AsyncIterator[OpenAIServer]:
    """Run a server on a free loopback port."""
    judge = OpenAIJudge(extensions=frozenset(extensions))
    async with loopback.serving(judge, *answers) as server:
        yield OpenAIServer(server, judge)


def body_problems(data: Any, extensions: frozenset[str] = frozenset()) -> Iterable[str]:
    """Yield what the published API would refuse in a request body."""
    if not isinstance(data, dict):
        yield "the body is not an object"
        return
    for key, value in data.items():
        if key in _NUMBERS:
            if not isinstance(value, (int, float)):
                yield f"{key} is not a number"
        elif key not in _TOP:
            yield f"Unrecognized request argument supplied: {key}"
        elif not isinstance(value, _TOP[key]):
            yield f"{key} is of the wrong type"
    if "stream_options" in data and not data.get("stream"):
        yield "stream_options without stream"
    for tool in data.get("tools", ()):
        function = tool.get("function", {})
        if tool.get("type") != "function" or not _NAME.match(function.get("name", "")):
            yield f"a tool without a proper name: {tool}"
        if function.get("parameters", {}).get("type") != "object":
            yield "parameters that are no object schema"
    messages = data.get("messages")
    if not messages:
        yield "messages is empty"
        return
    yield from _message_problems(messages, extensions)


def _message_problems(messages: list[dict[str, Any]], extensions: frozenset[str]) -> Iterable[str]:
    awaited: set[str] = set()
    for message in messages:
        role = message.get("role", "")
        known = _FIELDS.get(role, frozenset()) | (extensions if role == "assistant" else frozenset())
        if unknown := set(message) - known:
            yield f"a message of role {role!r} with the fields {sorted(unknown)}"
        if role == "tool":
            if message.get("tool_call_id") not in awaited:
                yield "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            awaited.discard(message.get("tool_call_id", ""))
        elif awaited:
            yield f"tool_call_ids did not have response messages: {', '.join(sorted(awaited))}"
            awaited = set()
        calls = message.get("tool_calls")
        content = message.get("content")
        if not (isinstance(content, str) and content.strip()) and not (content is None and calls):
            yield f"a {role} message without content"
        if calls == []:
            yield "empty tool_calls"
        for call in calls or ():
            yield from _call_problems(call)
            if call.get("id") in awaited:
                yield "a call id twice"
            awaited.add(call.get("id"))
    if awaited:
        yield f"tool_call_ids did not have response messages: {', '.join(sorted(awaited))}"


def _call_problems(call: dict[str, Any]) -> Iterable[str]:
    function = call.get("function", {})
    if not isinstance(call.get("id"), str) or not call["id"] or call.get("type") != "function":
        yield "a call without id or type"
    if not _NAME.match(function.get("name", "")):
        yield f"a call of {function.get('name')!r}"
    try:
        if not isinstance(json.loads(function.get("arguments")), dict):
            yield "arguments that are no object"
    except (TypeError, ValueError):
        yield "arguments that are not JSON"
