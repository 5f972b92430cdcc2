"""Connections to a service: kept for the next request, closed by whoever leaves early, in whatever way (I2).

Nothing here may be owed to the garbage collector.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from attrs import evolve, frozen
from google.genai import types
from trio.abc import Instrument
from trio.lowlevel import Task

from kesoku_actors.llm.port import ProviderError, Request

from ..llm.examples import DATE_TOOL, asking, ignore, said
from . import claude_server, gemini_server, test_claude, test_gemini
from .loopback import Answer, Pause, Stall

HTML = (("content-type", "text/html"),)
JSON = (("content-type", "application/json"),)
PACKED = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
WIRES = pytest.mark.parametrize("wire", [test_claude, test_gemini], ids=["claude", "gemini"])


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@frozen
class Ended:
    """What ends an inference while the connection stays open, on one of the wires."""

    wire: Any
    parts: tuple[bytes, ...]
    kind: str
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)
    status: int = 200


_OVERLOADED = claude_server.event("error", error={"type": "overloaded_error", "message": "x"})
_ASTRAY = claude_server.event("content_block_delta", index=5, delta={})
_BEGUN = claude_server.sse(*claude_server.message_events(claude_server.text("Well"))[:-3])
_BLOCKED = gemini_server.sse({"promptFeedback": {"blockReason": "SAFETY"}})
_REFUSED = gemini_server.sse({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}})
_WELL = gemini_server.sse(gemini_server.content(gemini_server.text("Well")))
ENDINGS = {
    "claude error": Ended(test_claude, (claude_server.sse(_OVERLOADED),), "overloaded"),
    "claude error behind words": Ended(test_claude, (_BEGUN, claude_server.sse(_OVERLOADED)), "overloaded"),
    "claude block astray": Ended(test_claude, (claude_server.sse(_ASTRAY),), "garbage"),
    "claude garbage": Ended(test_claude, (_BEGUN, b"event: message_delta\ndata: {not json\n\n"), "garbage"),
    "claude page": Ended(test_claude, (b"<html>",), "address", HTML),
    "gemini error": Ended(test_gemini, (_REFUSED,), "overloaded"),
    "gemini error behind words": Ended(test_gemini, (_WELL, _REFUSED), "overloaded"),
    "gemini blocked": Ended(test_gemini, (_BLOCKED,), "filtered"),
    "gemini garbage": Ended(test_gemini, (_WELL, b"data: {not json\r\n\r\n"), "garbage"),
    "gemini page": Ended(test_gemini, (b"<html>",), "address", HTML),
    "claude badly packed": Ended(test_claude, (_BEGUN,), "garbage", PACKED),
    "gemini badly packed": Ended(test_gemini, (_WELL,), "garbage", PACKED),
    "claude refusal": Ended(test_claude, (b"{",), "server", JSON, 500),
    "gemini refusal": Ended(test_gemini, (b"{",), "server", JSON, 500),
    "gemini refusal, no text": Ended(test_gemini, (b"\xff\xfe",), "server", JSON, 500),
}


@pytest.mark.parametrize("ended", ENDINGS.values(), ids=ENDINGS)
async def test_an_error_closes_the_connection_at_once(ended: Ended) -> None:
    answer = Answer(parts=(*ended.parts, Stall()), headers=ended.headers, status=ended.status)
    async with ended.wire.talking_to(answer) as (server, _judge, model):
        with pytest.raises(ProviderError) as caught, trio.fail_after(30):
            await model.infer(asking(said(1, "Hi")), ignore)
        assert caught.value.kind == ended.kind
        with trio.fail_after(5):
            await server.left[0].wait()


@WIRES
async def test_a_whole_answer_leaves_its_connection_to_the_next_request(wire: Any) -> None:
    async with wire.talking_to(wire.answering(wire.text("Yes?"))) as (server, _judge, model):
        for _ in range(5):
            await wire.infer(model)
    assert (server.requests, server.connections) == (5, 1)


@WIRES
async def test_a_kept_connection_that_the_server_closed_is_opened_again(wire: Any) -> None:
    answers = (evolve(wire.answering(wire.text("Yes?")), hangs_up=True), wire.answering(wire.text("Once more?")))
    async with wire.talking_to(*answers) as (server, _judge, model):
        assert (await wire.infer(model)).text == "Yes?"
        with trio.fail_after(5):
            while server.open:
                await trio.lowlevel.checkpoint()
        assert (await wire.infer(model)).text == "Once more?"
    assert server.connections == 2


class _CancelAt(Instrument):
    """Cancels a task where it waits for the n-th time."""

    def __init__(self, nth: int) -> None:
        self.left = nth
        self.task: Task | None = None
        self.scope = trio.CancelScope()

    def after_task_step(self, task: Task) -> None:
        if task is self.task:
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()


async def _cancelled(model: Any, request: Request, nth: int) -> bool:
    """Cancel an inference where it waits for the n-th time; return whether it came so far."""
    canceller = _CancelAt(nth)

    async def run() -> None:
        canceller.task = trio.lowlevel.current_task()
        with canceller.scope:
            await model.infer(request, ignore)
        canceller.task = None

    trio.lowlevel.add_instrument(canceller)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
    finally:
        trio.lowlevel.remove_instrument(canceller)
    return canceller.scope.cancelled_caught


@WIRES
async def test_wherever_an_inference_is_cancelled_its_connection_is_closed_and_the_next_one_answered(wire: Any) -> None:
    whole = b"".join(part for part in wire.answering(wire.text("Yes?"), wire.text("Go on.")).parts)
    parts = [part for begin in range(0, len(whole), 200) for part in (whole[begin : begin + 200], Pause(0.0))]
    # Long enough that it does not leave in one go.
    request = asking(said(1, "Hi" * 1_000_000), tools=(DATE_TOOL,))
    async with wire.talking_to(Answer(parts=tuple(parts))) as (server, _judge, model):
        await wire.infer(model)
        nth = 1
        while await _cancelled(model, request, nth):
            nth += 1
            with trio.fail_after(5):
                while server.answering:
                    await trio.lowlevel.checkpoint()
        before = server.connections
        assert nth > 10
        for _ in range(2):
            assert (await wire.infer(model)).text == "Yes?Go on."
        assert server.connections <= before + 1, "no connection of theirs is waited for"


async def test_what_googles_sdk_stumbles_over_itself_closes_the_connection_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(**_arguments: Any) -> None:
        raise TypeError("a shape that nobody thought of")

    async with test_gemini.talking_to(Answer(parts=(_WELL, Stall()))) as (server, _judge, model):
        await model.warm()
        monkeypatch.setattr(types.GenerateContentResponse, "_from_response", stumble)
        with pytest.raises(ProviderError, match="an answer that is none"), trio.fail_after(30):
            await model.infer(asking(said(1, "Hi")), ignore)
        with trio.fail_after(5):
            await server.left[0].wait()
