"""A process takes up a channel while it runs, and works on it as if it had from the start (C2)."""

from __future__ import annotations

import shutil
from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say, Wait
from kesoku_actors.protocol import Channel, Inbound, Message, Outcome, Status, Type
from kesoku_actors.session import Remit
from kesoku_actors.store import Posted
from tests.paths.house import ROOM, Home, at_home, texts

ELSEWHERE = Channel(chatbot_id="test", channel_id="elsewhere")


async def say_there(home: Home, content: str) -> Message:
    posted = await home.gateway.post(Inbound(chatbot_id="test", channel_id="elsewhere", content=content))
    assert isinstance(posted, Posted)
    return posted.message


async def test_a_turn_that_a_crash_broke_off_goes_on_when_its_channel_is_taken_up(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runs, begun = [], trio.Event()

    async def slow() -> str:
        """Take long."""
        runs.append(1)
        begun.set()
        await trio.sleep(60)
        return "done"

    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    async with at_home(before, [(Call(name="slow"),), (Say(text="bye"),)], tools=[slow]) as home:
        message = await say_there(home, "there")
        await begun.wait()
        shutil.copytree(before, after)  # what a crash would leave at this moment
    remit = Remit((ROOM,))
    async with at_home(after, [(Say(text="I looked again"),)], tools=[slow], channels=remit) as home:
        await trio.sleep(10)
        assert (await home.gateway.reader.message(message.id)).status is Status.PROCESSING
        remit.add(ELSEWHERE)
        assert (await home.ended(message)).status is Status.PROCESSED
        rows = await home.rows(message.session_id)
        results = [row for row in rows if row.type is Type.TOOL_RESULT]
        assert [row.metadata["outcome"] for row in results] == [Outcome.UNKNOWN]
        assert runs == [1]


async def test_the_turn_of_another_channel_is_not_disturbed(tmp_path: Path, autojump_clock: MockClock) -> None:
    remit = Remit((ROOM,))
    async with at_home(tmp_path, [(Wait(seconds=50), Say(text="old")), (Say(text="new"),)], channels=remit) as home:
        first = await home.say("here")
        other = await say_there(home, "there")
        await trio.sleep(10)
        assert (await home.gateway.reader.message(first.id)).status is Status.PROCESSING
        assert (await home.gateway.reader.message(other.id)).status is Status.PENDING_AGENT
        remit.add(ELSEWHERE)
        assert (await home.ended(other)).status is Status.PROCESSED
        assert (await home.ended(first)).status is Status.PROCESSED
        assert len(home.model.requests) == 2
        assert home.model.cancelled == []
        assert texts(await home.rows(first.session_id)) == ["here", "old"]
