"""The whole path through the `openai` provider, over real connections to a strict loopback server."""

from __future__ import annotations

from pathlib import Path

import trio

from kesoku_actors.clock import real_world
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.openai import OpenAIModel
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Delta, Outcome, Status, Type
from kesoku_actors.session import Brain
from tests.paths.house import at_home, texts
from tests.wire.loopback import Answer, Stall
from tests.wire.openai_server import (
    KEY,
    MODEL,
    OpenAIServer,
    chunk,
    error_answer,
    serving,
    sse,
    text_answer,
)


def brain_of(server: OpenAIServer) -> Brain:
    model = OpenAIModel(
        source=Source(provider="openai"),
        model=MODEL,
        base_url=server.url,
        api_key=KEY,
        log=Logger(sink=lambda _entry: None, wall=trio.current_time),
        wall=trio.current_time,
    )
    return Brain(provider=model, gate=ProviderGate.of(model))


def echo(text: str) -> str:
    """Return the text."""
    return text


async def test_the_server_sees_the_disconnect_before_the_next_request(tmp_path: Path) -> None:
    stalling = Answer(parts=(sse(chunk({"content": "Once upon"}), done=False), Stall()))
    async with serving(stalling, text_answer("Six.")) as server:
        brain = brain_of(server)
        async with at_home(tmp_path, brains=(brain,), brain_for=lambda _: brain, world=real_world()) as home:
            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(home.hint, lambda event: isinstance(event, Delta))
                    first = await home.say("Tell me a story.")
                second = await home.say("No: what is two times three?")
                assert (await home.ended(second)).status is Status.PROCESSED
            assert server.notes == ["request 0", "left 0", "request 1"]
            assert texts(await home.rows(first.session_id)) == [
                "Tell me a story.",
                "Once upon",
                "No: what is two times three?",
                "Six.",
            ]
            assert isinstance(brain.provider, OpenAIModel)
            await brain.provider.aclose()


async def test_parallel_calls_go_the_whole_way_and_come_back_paired(tmp_path: Path) -> None:
    calls = [
        {"index": n, "id": f"call_{n}", "function": {"name": "echo", "arguments": f'{{"text": "{word}"}}'}}
        for n, word in enumerate(("one", "two"))
    ]
    asking = Answer(parts=(sse(chunk({"tool_calls": calls}), chunk(finish="tool_calls")),))
    async with serving(asking, error_answer(429, headers=(("Retry-After", "0"),)), text_answer("Both.")) as server:
        brain = brain_of(server)
        async with at_home(
            tmp_path, tools=[echo], brains=(brain,), brain_for=lambda _: brain, world=real_world()
        ) as home:
            with trio.fail_after(60):
                asked = await home.say("Echo twice.")
                assert (await home.ended(asked)).status is Status.PROCESSED
            rows = await home.rows(asked.session_id)
            results = [row for row in rows if row.type is Type.TOOL_RESULT]
            assert [(row.content, row.metadata["outcome"]) for row in results] == [
                ("one", Outcome.OK),
                ("two", Outcome.OK),
            ]
            sent = server.bodies[-1]["messages"]
            assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ["call_0", "call_1"]
            assert isinstance(brain.provider, OpenAIModel)
            await brain.provider.aclose()
