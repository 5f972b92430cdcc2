"""A request with large files is the one it would be anyway, and is made while everything else goes on."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from attrs import evolve

from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_request import ClaudeRequest
from kesoku_actors.llm.dialects.claude import declare as for_claude
from kesoku_actors.llm.dialects.gemini import declare as for_gemini
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_request import GeminiRequest
from kesoku_actors.llm.kept_talk import KeptTalks, write
from kesoku_actors.llm.media import Media, size_of
from kesoku_actors.llm.writing import LARGE, written_in_time

from .examples import DATE_TOOL, answered, asking, said

PICTURE = Media(filename="a.png", mime_type="image/png", data=b"\x89PNG" + bytes(LARGE))
REQUEST = asking(said(1, "What is it?"), answered(2, "A cat."), said(3, "Sure?"), tools=(DATE_TOOL,))
WIRES = [
    ClaudeRequest(
        request=REQUEST,
        options=ClaudeOptions(provider="claude", model="claude-haiku-4-5"),
        declared=for_claude(REQUEST.tools),
        media={"m1": [PICTURE]},
    ),
    GeminiRequest(
        request=REQUEST,
        options=GeminiOptions(provider="gemini", model="gemini-3-flash"),
        declared=for_gemini(REQUEST.tools),
        media={"m1": [PICTURE]},
    ),
]


@pytest.mark.parametrize("wire", WIRES, ids=["claude", "gemini"])
@pytest.mark.parametrize("has_files", [True, False])
async def test_what_is_sent_is_the_same_and_is_made_in_a_thread_where_it_is_large(wire: Any, has_files: bool) -> None:
    wire = wire if has_files else evolve(wire, media={})
    went_on = trio.Event()

    async def go_on() -> None:
        went_on.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        written = await written_in_time(wire)
        assert went_on.is_set() is has_files
    assert written == write(wire)


@pytest.mark.parametrize("wire", WIRES, ids=["claude", "gemini"])
async def test_a_thread_left_behind_shares_nothing_with_the_next_request(wire: Any) -> None:
    kept = KeptTalks(shortest=0)
    await written_in_time(evolve(wire, request=evolve(wire.request, kept=kept)))
    assert kept.rows == 0
    await written_in_time(evolve(wire, request=evolve(wire.request, kept=kept), media={}))
    assert kept.rows > 0


def test_only_what_goes_as_such_counts() -> None:
    assert size_of({"m1": [PICTURE, PICTURE]}) == 2 * (LARGE + 4)
    assert size_of({}) == 0
