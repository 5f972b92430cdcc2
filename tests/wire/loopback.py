"""A loopback server that plays answers and takes notes, for servers that speak the wires of providers.

What it answers is data: a status, headers, and parts that are bytes, pauses, a stall for ever or a cut. It writes down
what it was sent and, in one list, when requests came and clients left. Whoever speaks a wire gives it a judge.

A connection whose answer came to its end serves the next request, as with the services themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import h11
import trio
from attrs import define, field, frozen


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
    hangs_up: bool = False
    """Whether the connection is closed behind it without a word, as one that was kept too long."""


def dripping(data: bytes) -> tuple[Part, ...]:
    """Return the same bytes one by one, each in a packet of its own."""
    return tuple(part for index in range(len(data)) for part in (data[index : index + 1], Pause(0.0)))


Judge = Callable[[str, dict[str, str], bytes], "Answer | None"]
"""Told the target, the headers and the body of a request; returns the refusal, or none for one that is right."""


@define
class LoopbackServer:
    """The server's script and its notes."""

    judge: Judge
    answers: list[Answer]
    """Played in order; the last one again and again."""
    notes: list[str] = field(factory=list)
    """`request N` and `left N`, in the order they happened."""
    came: list[trio.Event] = field(factory=lambda: [trio.Event() for _ in range(50)])
    """Set when request N came."""
    left: list[trio.Event] = field(factory=lambda: [trio.Event() for _ in range(50)])
    """Set when client N closed its connection before it had its answer."""
    requests: int = 0
    connections: int = 0
    """That came."""
    open: int = 0
    """That are open."""
    answering: set[int] = field(factory=set)
    """The requests that are being answered."""
    origin: str = ""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of a connection."""
        self.connections += 1
        self.open += 1
        wire = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while await self._serve_one(stream, wire):
                    wire.start_next_cycle()
        finally:
            self.open -= 1

    async def _serve_one(self, stream: trio.SocketStream, wire: h11.Connection) -> bool:
        """Answer a request; return whether another one may follow."""
        request, body = await _receive(stream, wire)
        if request is None:
            return False
        number, self.requests = self.requests, self.requests + 1
        self.notes.append(f"request {number}")
        self.answering.add(number)
        try:
            _set(self.came, number)
            headers = {name.decode().lower(): value.decode() for name, value in request.headers}
            answer = self.judge(request.target.decode(), headers, body)
            answer = answer or self.answers[min(number, len(self.answers) - 1)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, stream, wire, number)
                await _send(stream, wire, answer)
                nursery.cancel_scope.cancel()
        finally:
            self.answering.discard(number)
        return wire.our_state is h11.DONE and not answer.hangs_up

    async def _watch(self, stream: trio.SocketStream, wire: h11.Connection, number: int) -> None:
        """Note when the client leaves, and end the answer then."""
        try:
            while data := await stream.receive_some():
                wire.receive_data(data)  # the next request, sent when the answer's end was read
        except trio.BrokenResourceError:
            pass
        self.notes.append(f"left {number}")
        _set(self.left, number)
        raise _Left


class _Left(Exception):
    """The client is gone."""


def _set(events: list[trio.Event], number: int) -> None:
    if number < len(events):
        events[number].set()


@asynccontextmanager
async def serving(judge: Judge, *answers: Answer) -> AsyncIterator[LoopbackServer]:
    """Run a server on a free loopback port."""
    server = LoopbackServer(judge=judge, answers=list(answers))

    async def handle(stream: trio.SocketStream) -> None:
        try:
            await server.serve(stream)
        except* (_Left, trio.BrokenResourceError, h11.RemoteProtocolError):
            pass  # the last is raised for one that left in the middle of its request

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        server.origin = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
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

    headers = [*answer.headers, ("transfer-encoding", "chunked")]
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
