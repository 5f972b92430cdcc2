"""Recorded answers come however a network and what stands in it send them, and stay the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from kesoku_actors.llm.port import ProviderError, Reply

from . import test_claude, test_gemini
from .loopback import Answer, Pause
from .recordings import Exchange, exchanges

_PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'
STREAMS: Final = [
    pytest.param(wire, one.values[0], id=f"{name}-{one.id}")
    for name, wire in (("claude", test_claude), ("gemini", test_gemini))
    for one in exchanges(name)
    if isinstance(one.values[0], Exchange) and one.values[0].is_stream and one.values[0].status == 200
]


def ways(body: bytes, *, may_ping: bool) -> Iterator[Answer]:
    """Yield the same events as they may come."""
    plain = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for end in (b"\n", b"\r\n", b"\r"):
        yield Answer(parts=(plain.replace(b"\n", end),))
    events = plain.replace(b"\n\n", b"\n\n: a comment\n\n")
    yield Answer(parts=(b"\xef\xbb\xbf: hello\n\n", events))
    if may_ping:
        yield Answer(parts=(_PING, plain.replace(b"\n\n", b"\n\n" + _PING)))
    for size in (1, 7, 4099):
        cut = [body[start : start + size] for start in range(0, min(len(body), 2000), size)]
        rest = body[len(b"".join(cut)) :]
        yield Answer(parts=(*(part for each in cut for part in (each, Pause(0.0))), rest))


def in_words(reply: Reply) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in ("text", "thought", "calls", "native", "finish_reason", "usage")}


@pytest.mark.skipif(not STREAMS, reason="there are no recordings")
@pytest.mark.parametrize(("wire", "exchange"), STREAMS)
async def test_a_recorded_stream_is_the_same_however_its_bytes_come(wire: Any, exchange: Exchange) -> None:
    answers = [exchange.answer, *ways(exchange.body, may_ping=wire is test_claude)]
    got: list[Any] = []
    async with wire.talking_to(*answers, judge={"goes_on": True} if wire is test_claude else {}) as (_, _judge, model):
        for _ in answers:
            try:
                got.append(in_words(await wire.infer(model)))
            except ProviderError as error:
                got.append((error.kind, error.remedy))
    assert got == [got[0]] * len(answers)
