"""A strict loopback server that speaks the chat completions wire.

Its rules are those of the published API: required and unknown fields, roles, tool names, and the pairing of calls and
results, answered with 400 as the service does. What it answers is data: a status, headers, and parts that are bytes,
pauses, a stall for ever or a cut. It writes down what it was sent and, in one list, when requests came and clients
left.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import h11
import trio
from attrs import define, field, frozen

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


@frozen
class Pause:
    """Say nothing for so long."""

    seconds: float


@frozen
class Stall:
    """Say nothing for ever."""


@frozen
class Cut:
    """Close the connection without ending the message."""


Part = bytes | Pause | Stall | Cut


@frozen(kw_only=True)
class Answer:
    """What is sent for one request."""

    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)


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


def dripping(data: bytes) -> tuple[Part, ...]:
    """Return the same bytes one by one, each in a packet of its own."""
    return tuple(part for index in range(len(data)) for part in (data[index : index + 1], Pause(0.0)))


@define
class OpenAIServer:
    """The server's script and its notes."""

    answers: list[Answer]
    """Played in order; the last one again and again."""
    extensions: frozenset[str] = frozenset()
    """Fields of assistant messages beyond the published ones that it takes."""
    bodies: list[dict[str, Any]] = field(factory=list)
    notes: list[str] = field(factory=list)
    """`request N` and `left N`, in the order they happened."""
    came: list[trio.Event] = field(factory=lambda: [trio.Event() for _ in range(20)])
    """Set when request N came."""
    left: list[trio.Event] = field(factory=lambda: [trio.Event() for _ in range(20)])
    """Set when client N closed its connection before it had its answer."""
    url: str = ""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one connection, then close it."""
        wire = h11.Connection(h11.SERVER)
        async with stream:
            request, body = await _receive(stream, wire)
            if request is None:
                return
            number = sum(note.startswith("request") for note in self.notes)
            self.notes.append(f"request {number}")
            self.came[number].set()
            answer = self._judge(request, body) or self.answers[min(number, len(self.answers) - 1)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, stream, number)
                await _send(stream, wire, answer)
                nursery.cancel_scope.cancel()

    async def _watch(self, stream: trio.SocketStream, number: int) -> None:
        """Note when the client leaves, and end the answer then."""
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass
        self.notes.append(f"left {number}")
        self.left[number].set()
        raise _Left

    def _judge(self, request: h11.Request, body: bytes) -> Answer | None:
        headers = {name.decode(): value.decode() for name, value in request.headers}
        if request.target != b"/v1/chat/completions":
            return error_answer(404, f"Invalid URL ({request.target.decode()})")
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


class _Left(Exception):
    """The client is gone."""


@asynccontextmanager
async def serving(*answers: Answer, extensions: Sequence[str] = ()) -> AsyncIterator[OpenAIServer]:
    """Run a server on a free loopback port."""
    server = OpenAIServer(answers=list(answers), extensions=frozenset(extensions))

    async def handle(stream: trio.SocketStream) -> None:
        try:
            await server.serve(stream)
        except* (_Left, trio.BrokenResourceError):
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        server.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/v1"
        yield server
        nursery.cancel_scope.cancel()


async def _receive(stream: trio.SocketStream, wire: h11.Connection) -> tuple[h11.Request | None, bytes]:
    request, body = None, b""
    while True:
        match wire.next_event():
            case h11.NEED_DATA:
                wire.receive_data(await stream.receive_some())
            case h11.Request() as event:
                request = event
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage():
                return request, body
            case _:
                return None, b""


async def _send(stream: trio.SocketStream, wire: h11.Connection, answer: Answer) -> None:
    async def put(event: h11.Event) -> None:
        await stream.send_all(wire.send(event) or b"")

    headers = [*answer.headers, ("transfer-encoding", "chunked"), ("connection", "close")]
    await put(h11.Response(status_code=answer.status, headers=headers))
    for part in answer.parts:
        match part:
            case bytes():
                await put(h11.Data(data=part))
            case Pause(seconds):
                await trio.sleep(seconds)
            case Stall():
                await trio.sleep_forever()
            case Cut():
                return
    await put(h11.EndOfMessage())


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
