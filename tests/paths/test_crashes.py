"""Crashes inside the process: a worker, the store, the broadcaster or the dispatcher dies; the turn goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.actors import ActorStopped
from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.protocol import BusyMode, CallState, Outcome, Reason, SessionState, Status, Type
from kesoku_actors.session.vocabulary import CommitStands, ToolStarted
from kesoku_actors.store import Durability, StoreOptions
from tests.paths.house import at_home, texts


@define(eq=False)
class Tool:
    """A slow tool that counts its runs."""

    runs: int = 0
    ends: int = 0

    async def slow(self, seconds: float) -> str:
        """Wait, then say so."""
        self.runs += 1
        await trio.sleep(seconds)
        self.ends += 1
        return "waited"


@define(eq=False)
class Bomb:
    """Raises at chosen points, so many times."""

    times: int
    goes_off: Callable[[object], bool]
    blown: list[object] = field(factory=list)

    def __call__(self, point: object) -> None:
        if len(self.blown) < self.times and self.goes_off(point):
            self.blown.append(point)
            raise RuntimeError("a bug of ours")


async def test_a_worker_that_dies_leaves_its_tool_running_and_the_next_one_waits_for_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tool, bomb = Tool(), Bomb(times=1, goes_off=lambda event: isinstance(event, ToolStarted))
    script = [(Call(name="slow", arguments={"seconds": 30.0}),), (Say(text="Done."),)]
    async with at_home(tmp_path, script, tools=[tool.slow], at_event=bomb) as home:
        begun = trio.current_time()
        asked = await home.say("Build it.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert 30 <= trio.current_time() - begun < 40
        [result] = [row for row in await home.rows(asked.session_id) if row.type is Type.TOOL_RESULT]
        assert result.metadata["outcome"] == Outcome.OK
    assert (tool.runs, tool.ends, len(bomb.blown)) == (1, 1, 1)


async def test_a_worker_that_dies_three_times_ends_the_turn_and_its_tool_and_the_session_goes_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def poisoned(event: object) -> bool:
        if isinstance(event, CommitStands):  # the claim of the turn that comes back
            return any(call.state is CallState.STARTED for call in event.committed.open_calls)
        return isinstance(event, ToolStarted)

    tool, bomb = Tool(), Bomb(times=3, goes_off=poisoned)
    script = [(Call(name="slow", arguments={"seconds": 500.0}),), (Say(text="Better."),)]
    async with at_home(tmp_path, script, tools=[tool.slow], at_event=bomb) as home:
        asked = await home.say("Poison.")
        ended = await home.ended(asked)
        assert (ended.status, ended.metadata["reason"]) == (Status.ERROR, Reason.ATTEMPTS)
        [notice] = await home.gateway.leaving(home.channel)
        assert notice.root_id == asked.id
        again = await home.say("Something else.")
        assert (await home.ended(again)).status is Status.PROCESSED
        await trio.testing.wait_all_tasks_blocked()
        assert home.house.tools.statistics().running == ()
    assert (tool.runs, tool.ends, len(bomb.blown)) == (1, 0, 3)


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
async def test_a_store_that_dies_ends_no_tool_and_loses_nothing(
    tmp_path: Path, autojump_clock: MockClock, point: str
) -> None:
    tool, armed = Tool(), trio.Event()
    bomb = Bomb(times=2, goes_off=lambda reached: armed.is_set() and reached == point)
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=bomb)
    script = [(Call(name="slow", arguments={"seconds": 30.0}),), (Say(text="Done."),)]
    async with at_home(tmp_path, script, tools=[tool.slow], store=store) as home:
        asked = await home.say("Build it.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(5)
        armed.set()
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert texts(await home.rows(asked.session_id))[-1] == "Done."
    assert (tool.runs, tool.ends, len(bomb.blown)) == (1, 1, 2)


async def test_a_clear_that_the_store_took_to_its_grave_is_finished_by_this_run(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    bomb = Bomb(times=1, goes_off=lambda reached: reached == "store.after_commit/CloseSession")
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=bomb)
    async with at_home(tmp_path, [(Say(text="Hello."),)], store=store) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        with pytest.raises(ActorStopped):
            await home.gateway.clear(asked.session_id)
        await trio.sleep(1)
        session = await home.gateway.session(asked.session_id)
        assert session is not None
        assert session.state is SessionState.TOMBSTONE
        assert await home.rows(asked.session_id) == ()
    assert len(bomb.blown) == 1


async def test_a_mode_that_the_store_took_to_its_grave_holds_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    armed = trio.Event()
    bomb = Bomb(times=1, goes_off=lambda reached: armed.is_set() and reached == "store.after_commit/SetMode")
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=bomb)
    long = (Say(text="a long answer " * 20, word_delay_s=1.0),)
    async with at_home(tmp_path, [long, (Say(text="Now."),)], store=store) as home:
        await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
        first = await home.say("A story.")
        await trio.sleep(3)
        second = await home.say("Never mind.")
        await trio.sleep(3)
        armed.set()
        with pytest.raises(ActorStopped):
            await home.gateway.set_mode(home.channel, BusyMode.INTERRUPT)
        assert (await home.ended(second)).status is Status.PROCESSED
        assert (await home.ended(first)).status is Status.INTERRUPTED
    assert len(bomb.blown) == 1
