"""What Claude's and Gemini's clients cost, against strict loopback servers that speak their wires.

Goal 21: a generation that is cancelled is seen as left by the server within 0.3 s, the median of twenty. Goal 22: one
inference through our client, with the check of its history, over the SDK's own bare call with the same body; what it
costs more stands in the name. The servers are those of the tests.

    scripts/bench/run --only cloud
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx2
import trio
from attrs import frozen

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kesoku_actors.llm.port import Piece, Provider, Request
from scripts.bench.report import Row, row, show
from tests.llm.examples import DATE_TOOL, answered, asking, called, ignore, result, said
from tests.wire import claude_server, gemini_server, test_claude, test_gemini
from tests.wire.loopback import Answer, LoopbackServer, Stall

CANCELS: Final = 20
BOUND_S: Final = 0.3
ROUNDS: Final = 5
TURNS: Final = 20


@frozen(kw_only=True)
class Wire:
    """One provider's wire: its server with our client, an answer, one that never ends, and the bare call."""

    name: str
    talking_to: Any
    answer: Answer
    endless: Answer
    bare: Callable[[str, dict[str, Any]], Any]


def talk() -> Request:
    """Return a request of some turns with tools, as a session would send it."""
    rows = []
    for number in range(1, 60, 4):
        call = called(number + 1, call_id=f"toolu_{number}", zone="UTC")
        rows += [
            said(number, "Which day is it?"),
            call,
            result(number + 2, call, "Monday"),
            answered(number + 3, "Mon"),
        ]
    return asking(*rows, said(99, "And now?"), tools=(DATE_TOOL,))


@asynccontextmanager
async def claude_bare(origin: str, body: dict[str, Any]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give the SDK's own call, its answer read to the end."""
    import anthropic

    async with httpx2.AsyncClient(timeout=None) as http:
        sdk = anthropic.AsyncAnthropic(api_key=claude_server.KEY, base_url=origin, http_client=http, max_retries=0)

        async def call() -> None:
            async for _event in await sdk.messages.create(**body):
                pass

        yield call


@asynccontextmanager
async def gemini_bare(origin: str, body: dict[str, Any]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give the SDK's own call, its answer read to the end."""
    from google import genai
    from google.genai import types

    async with httpx2.AsyncClient(timeout=None) as http:
        options = types.HttpOptions(base_url=origin, httpx_async_client=http)
        sdk = genai.Client(api_key=gemini_server.KEY, vertexai=False, http_options=options)
        config: Any = {**body["generationConfig"], "tools": body["tools"]}
        config |= {"system_instruction": body["systemInstruction"], "automatic_function_calling": {"disable": True}}

        async def call() -> None:
            contents: Any = body["contents"]
            async for _chunk in await sdk.aio.models.generate_content_stream(
                model=gemini_server.MODEL, contents=contents, config=config
            ):
                pass

        yield call


def _endless(words: bytes) -> Answer:
    return Answer(parts=(words, Stall()))


WIRES: Final = (
    Wire(
        name="claude",
        talking_to=test_claude.talking_to,
        answer=claude_server.answering(claude_server.text("Monday.")),
        endless=_endless(claude_server.sse(*claude_server.message_events(claude_server.text("A long story"))[:5])),
        bare=claude_bare,
    ),
    Wire(
        name="gemini",
        talking_to=test_gemini.talking_to,
        answer=gemini_server.answering(gemini_server.text("Monday.")),
        endless=_endless(gemini_server.sse(gemini_server.content(gemini_server.text("A long story")))),
        bare=gemini_bare,
    ),
)


async def cancelled(wire: Wire) -> list[float]:
    """Return the seconds from each cancel until the server saw the client leave."""
    took: list[float] = []
    async with wire.talking_to(wire.endless) as (server, _judge, model):
        for number in range(CANCELS):
            took.append(await _cancelled_once(server, model, number))
    return took


async def _cancelled_once(server: LoopbackServer, model: Provider, number: int) -> float:
    began = 0.0
    with trio.CancelScope() as scope:

        def leave(piece: Piece) -> None:
            nonlocal began
            if piece.text:
                began = time.perf_counter()
                scope.cancel()

        await model.infer(talk(), leave)
    with trio.fail_after(30):
        await server.left[number].wait()
    return time.perf_counter() - began


async def turns(wire: Wire) -> tuple[list[float], list[float]]:
    """Return the seconds of an inference through our client, and of the bare call, by rounds that take turns."""
    sent: list[Any] = []
    ours: list[float] = []
    bare: list[float] = []
    async with wire.talking_to(wire.answer) as (server, judge, model):
        await model.infer(talk(), ignore)
        sent = judge.bodies[-1:]
        async with wire.bare(server.origin, sent[0]) as call:
            await call()
            for _ in range(ROUNDS):
                ours.append(await _timed(partial(model.infer, talk(), ignore)))
                bare.append(await _timed(call))
    return ours, bare


async def _timed(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    for _ in range(TURNS):
        await call()
    return (time.perf_counter() - began) / TURNS


def rows() -> list[Row]:
    """Measure both wires."""
    found: list[Row] = []
    for wire in WIRES:
        took = trio.run(cancelled, wire)
        name = f"{wire.name}: cancel seen ({median(took) * 1000:.0f} ms) / 0.3 s"
        found.append(row(21, name, limit=1.0, ours=[median(took)], floor=[BOUND_S]))
        ours, bare = trio.run(turns, wire)
        more_ms = (median(ours) - median(bare)) * 1000
        found.append(row(22, f"{wire.name}: turn / bare SDK ({more_ms:+.1f} ms)", limit=1.5, ours=ours, floor=bare))
    return found


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
