"""A session taken out of a store in the middle of its work goes on in another: nothing of it is live or odd."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.clock import seeded_world
from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.protocol import Status, Type
from kesoku_actors.store import Durability
from kesoku_actors.store.alone import importing_into
from kesoku_actors.store.archive import SessionArchive
from tests.paths.house import at_home


async def quick(text: str) -> str:
    """Say it at once."""
    return text


async def slow(seconds: float) -> str:
    """Wait, then say so."""
    await trio.sleep(seconds)
    return "waited"


async def test_a_batch_cut_in_the_middle_has_its_results_and_the_next_message_is_answered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    calls = (Call(name="quick", arguments={"text": "heron"}), Call(name="slow", arguments={"seconds": 9.0}))
    async with at_home(tmp_path / "one", [calls, (Say(text="done"),)], tools=[quick, slow]) as home:
        asked = await home.say("Do both.")
        called = await home.until(lambda row: row.type is Type.TOOL_CALL)
        await home.say("Are you there?")
        await trio.sleep(1)
        archive = await home.gateway.reader.archive(called.session_id)
        assert isinstance(archive, SessionArchive)
        await home.ended(asked)
    other = tmp_path / "two"
    other.mkdir()
    world = seeded_world(5, home.house.gateway.world.clock)
    with importing_into(other / "kesoku.db", durability=Durability.NORMAL, world=world, warn=print) as take:
        done = take([archive])
    assert (done.interrupted, done.undeliverable) == (2, 0)
    async with at_home(other, [(Say(text="I am here."),)], tools=[quick, slow], seed=2) as home:
        asked = await home.say("And now?")
        await home.ended(asked)
        rows = await home.rows(archive.head.id)
        assert [row.content for row in rows if row.type is Type.TOOL_RESULT] == [
            "heron",
            "The call had started; how it ended is not known.",
        ]
        ended = [row for row in rows if row.is_person]
        assert [(row.content, row.status) for row in ended] == [
            ("Do both.", Status.INTERRUPTED),
            ("Are you there?", Status.INTERRUPTED),
            ("And now?", Status.PROCESSED),
        ]
        assert home.prompts()[-1][-1] == "And now?"
        assert "heron" in home.prompts()[-1]
