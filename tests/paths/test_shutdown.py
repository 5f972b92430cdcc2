"""An orderly stop of the whole: started calls get their time, nothing else starts, the work goes back (C7)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.protocol import Message, Status, Type
from kesoku_actors.tools import ToolOptions
from tests.paths.house import Home, at_home

SERVICE_KILLS_AFTER_S = 210
_ROOTS = """
    SELECT messages.status, turns.attempts FROM turns
    JOIN messages ON messages.session_no = turns.session_no AND messages.seq = turns.root_seq
"""
PATIENT = ToolOptions(deadline_s=1_000_000.0)


@define(eq=False)
class Work:
    """A tool that takes its time and keeps a record of it."""

    began: list[float] = field(factory=list)
    ended: list[float] = field(factory=list)
    entered: trio.Event = field(factory=trio.Event)

    async def work(self, seconds: float) -> str:
        """Work."""
        self.began.append(seconds)
        self.entered.set()
        await trio.sleep(seconds)
        self.ended.append(seconds)
        return "worked"


def calls(*seconds: float) -> tuple[Call, ...]:
    return tuple(Call(name="work", arguments={"seconds": each}) for each in seconds)


def left_behind(folder: Path) -> list[tuple[str, int]]:
    """The status of each turn's root and how often the turn was given up, as the store has them."""
    with closing(apsw.Connection(str(folder / "kesoku.db"))) as store:
        return list(store.execute(_ROOTS))


async def results(home: Home, asked: Message) -> list[tuple[str, str]]:
    rows = await home.rows(asked.session_id)
    return [(row.metadata["outcome"], row.metadata.get("reason", "")) for row in rows if row.type is Type.TOOL_RESULT]


async def goes_on(folder: Path, asked: Message) -> list[tuple[str, str]]:
    """Start again on the folder: the turn is resumed, not begun anew; return its results."""
    async with at_home(folder, [(Say(text="Done."),)]) as home:
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert len(home.prompts()) == 1
        return await results(home, asked)


async def test_a_call_that_never_ends_is_ended_in_time_and_the_turn_goes_on_after_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    work = Work()
    async with at_home(tmp_path, [calls(1e5)], tools=[work.work], tool_options=PATIENT) as home:
        asked = await home.say("Go.")
        await work.entered.wait()
        stop_asked = trio.current_time()
    assert 180 <= trio.current_time() - stop_asked < SERVICE_KILLS_AFTER_S
    assert left_behind(tmp_path) == [(Status.PENDING_AGENT, 0)]
    assert await goes_on(tmp_path, asked) == [("interrupted", "shutdown")]


async def test_a_call_that_ends_within_the_time_counts(tmp_path: Path, autojump_clock: MockClock) -> None:
    work = Work()
    async with at_home(tmp_path, [calls(170.0)], tools=[work.work], tool_options=PATIENT) as home:
        asked = await home.say("Go.")
        await work.entered.wait()
        stop_asked = trio.current_time()
    assert work.ended == [170.0]
    assert trio.current_time() - stop_asked < 175
    assert left_behind(tmp_path) == [(Status.PENDING_AGENT, 0)]
    assert await goes_on(tmp_path, asked) == [("ok", "")]


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_stop_starts_no_further_call(tmp_path: Path, autojump_clock: MockClock, parallel: int) -> None:
    work = Work()
    script = [calls(30.0, 31.0, 32.0, 33.0)]
    async with at_home(tmp_path, script, tools=[work.work], parallel_tools=parallel) as home:
        asked = await home.say("Go.")
        await work.entered.wait()
        await trio.sleep(1)
    assert sorted(work.began) == sorted(work.ended) == [30.0, 31.0][:parallel]
    assert left_behind(tmp_path) == [(Status.PENDING_AGENT, 0)]

    again = Work()
    async with at_home(tmp_path, [(Say(text="Done."),)], tools=[again.work]) as home:
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert await results(home, asked) == [("ok", "")] * 4
    assert sorted((*work.began, *again.began)) == [30.0, 31.0, 32.0, 33.0]


async def test_a_shorter_stop_is_shorter_for_tools_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    work = Work()
    async with at_home(tmp_path, [calls(1e5)], tools=[work.work], tool_options=PATIENT, stop_s=20.0) as home:
        asked = await home.say("Go.")
        await work.entered.wait()
        stop_asked = trio.current_time()
    assert 10 <= trio.current_time() - stop_asked < 20
    assert await goes_on(tmp_path, asked) == [("interrupted", "shutdown")]
