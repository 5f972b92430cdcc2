"""A talk that goes on over real HTTP: what the server gets is what it would have got of a talk made anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from attrs import evolve

from kesoku_actors.llm.kept_talk import KeptTalks

from ..llm.changing_sessions import followed_by, long_talk
from ..llm.examples import answered, called, ignore, result, said
from . import claude_server, gemini_server, test_claude, test_gemini, test_openai
from .openai_server import text_answer

Talking = Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]]


@asynccontextmanager
async def openai() -> AsyncIterator[tuple[Any, Any]]:
    async with test_openai.talking_to(text_answer("Yes."), extensions=["reasoning_content"]) as (server, model):
        yield server, model


@asynccontextmanager
async def claude() -> AsyncIterator[tuple[Any, Any]]:
    async with test_claude.talking_to(claude_server.answering(claude_server.text("Yes."))) as (_, judge, model):
        yield judge, model


@asynccontextmanager
async def gemini() -> AsyncIterator[tuple[Any, Any]]:
    async with test_gemini.talking_to(gemini_server.answering(gemini_server.text("Yes."))) as (_, judge, model):
        yield judge, model


@pytest.mark.parametrize("talking_to", [openai, claude, gemini])
async def test_a_talk_that_goes_on_is_sent_whole_each_time(talking_to: Talking) -> None:
    name = talking_to.__name__
    kept = KeptTalks(compares=True)
    request = long_talk(name, kept, turns=30)
    call = called(500, call_id="toolu_500")
    asked = [request, followed_by(request, call, result(501, call, "Grüße 🙂"))]
    asked.append(followed_by(asked[-1], answered(502, "Tuesday."), said(503, "Thanks. ü")))
    async with talking_to() as (judge, model):
        for each in asked:
            await model.infer(each, ignore)
            await model.infer(evolve(each, kept=None), ignore)
    assert kept.rows > 110
    assert judge.bodies[::2] == judge.bodies[1::2]
