"""Writes a request without keeping anybody waiting: one that brings large files is made in a thread.

Making, checking and writing ten mebibytes of pictures takes longer than the event loop may stand still. Nothing of such
a talk could be kept for the next request either (`kept_talk`), so the thread shares nothing, and an inference that is
cancelled meanwhile leaves it behind.
"""

from __future__ import annotations

from functools import partial
from typing import Final, TypeVar

import trio
from attrs import evolve

from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.kept_talk import write
from kesoku_actors.llm.media import size_of
from kesoku_actors.llm.written import Written

LARGE: Final = 256 << 10
"""Bytes of files: they are written in about three milliseconds."""

W = TypeVar("W", ClaudeRequest, GeminiRequest)


async def written_in_time(wire: W) -> Written:
    """Return the request as it is sent (`kept_talk.write`)."""
    if size_of(wire.media) <= LARGE:
        return write(wire)
    alone = evolve(wire, request=evolve(wire.request, kept=None))
    return await trio.to_thread.run_sync(partial(write, alone), abandon_on_cancel=True)
