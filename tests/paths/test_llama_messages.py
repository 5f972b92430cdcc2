"""Claude's client against the genuine llama server, which speaks its wire too: parsing and cancelling, not validity."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel
from kesoku_actors.llm.port import Finish, Piece
from kesoku_actors.log import Logger

from ..llm.examples import asking, said
from .llama import KEY, llama


@asynccontextmanager
async def claude_at(address: str) -> AsyncIterator[ClaudeModel]:
    """Give a client of it."""
    model = ClaudeModel(
        source=Source(provider="claude"),
        model="claude-like-smollm2",
        access=ClaudeAccess(api_key=KEY, base_url=address),
        log=Logger(sink=lambda _entry: None, wall=lambda: 0.0),
        wall=lambda: 0.0,
    )
    try:
        yield model
    finally:
        await model.aclose()


async def test_the_genuine_server_streams_and_sees_who_leaves() -> None:
    short = asking(said(1, "Say hello."), max_output_tokens=8)
    long = asking(said(1, "Count from one to one thousand, each number in words."), max_output_tokens=3500)
    with llama(most_tokens=4000) as address:
        async with claude_at(address) as model:
            pieces: list[Piece] = []
            with trio.fail_after(60):
                reply = await model.infer(short, pieces.append)
            assert reply.text.strip()
            assert "".join(piece.text for piece in pieces) == reply.text
            assert len([piece for piece in pieces if piece.text]) > 1
            assert reply.finish in (Finish.STOP, Finish.LENGTH)
            assert reply.usage.output
        async with claude_at(address) as model:  # this server may close a connection just when it is used again
            with trio.CancelScope() as scope:
                await model.infer(long, lambda piece: scope.cancel() if piece.text else None)
            assert scope.cancelled_caught
            # The only slot is free for the next request long before three thousand tokens could have been written.
            with trio.fail_after(60):
                assert (await model.infer(short, pieces.append)).text == reply.text
