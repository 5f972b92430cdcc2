"""M7: a clear stops what runs, then nothing of the session is left; later messages open another session."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say, Stall
from kesoku_actors.protocol import Activity, ActivityChanged, Removed, SessionState, Status, Stop, Type
from kesoku_actors.store import NothingToStop
from tests.paths.house import Home, at_home
from tests.paths.test_modes import notice


async def slow(seconds: float) -> str:
    """Wait, then say so."""
    await trio.sleep(seconds)
    return "waited"


async def wiped(home: Home, message_id: str) -> None:
    """Wait until a row is gone."""
    async with aclosing(home.gateway.listen(after=0)) as events:
        async for event in events:
            if isinstance(event, Removed) and event.message_id == message_id:
                return


async def test_a_clear_of_an_idle_session_leaves_nothing_and_the_next_message_begins_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="Hello."),)] * 2) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        folder = tmp_path / "sessions" / asked.session_id
        folder.mkdir(parents=True)
        (folder / "notes").write_text("secret")
        assert isinstance(await home.gateway.clear(asked.session_id), NothingToStop)
        await wiped(home, asked.id)
        assert await home.rows(asked.session_id) == ()
        await trio.testing.wait_all_tasks_blocked()
        assert [path.name for path in (tmp_path / "sessions").iterdir()] == []
        again = await home.say("Hi again.")
        assert again.session_id != asked.session_id
        await home.ended(again)
        assert home.prompts()[-1] == ["Hi again."]


async def test_a_listener_of_the_channel_hears_that_a_clear_begins_and_that_it_is_done(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="Hello."),)]) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        await trio.testing.wait_all_tasks_blocked()
        heard: list[Activity] = []
        listening = home.gateway.listen(channel=home.channel, after=await home.gateway.reader.head())
        async with aclosing(listening) as events, trio.open_nursery() as nursery:
            nursery.start_soon(home.gateway.clear, asked.session_id)
            with trio.fail_after(60):
                async for event in events:
                    if isinstance(event, ActivityChanged) and event.session_id == asked.session_id:
                        heard.append(event.activity)
                        if event.activity is Activity.IDLE:
                            break
        assert heard == [Activity.CLEARING, Activity.IDLE]


async def test_a_clear_during_thought_ends_it_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Once"), Stall())]) as home:
        asked = await home.say("A story.")
        await trio.sleep(5)
        begun = trio.current_time()
        stop = await home.gateway.clear(asked.session_id)
        assert isinstance(stop, Stop)
        await wiped(home, asked.id)
        assert trio.current_time() - begun < 2
        session = await home.gateway.session(asked.session_id)
        assert session is not None
        assert session.state is SessionState.TOMBSTONE
        assert home.gateway.statistics().workers == 0


async def test_a_clear_lets_the_running_tool_end_and_a_message_meanwhile_opens_another_session(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [(Call(name="slow", arguments={"seconds": 30.0}),), (Say(text="In the new one."),)]
    async with at_home(tmp_path, script, tools=[slow]) as home:
        asked = await home.say("Build it.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(5)
        begun = trio.current_time()
        await home.gateway.clear(asked.session_id)
        other = await home.say("Something else.")
        assert other.session_id != asked.session_id
        await home.ended(other)
        assert trio.current_time() - begun < 5, "another session does not wait for this one"
        await wiped(home, asked.id)
        assert trio.current_time() - begun >= 24
        assert home.prompts()[-1] == ["Something else."]


async def test_a_clear_accepted_is_finished_by_the_next_start(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, channels=()) as home:  # nobody works here, so nothing of the clear is done
        asked = await home.say("Hi.")
        await home.gateway.clear(asked.session_id)
    async with at_home(tmp_path) as home:
        await wiped(home, asked.id)
        assert home.model.requests == []


async def test_a_clear_of_a_session_where_only_a_notice_waits_ends_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="Hello."),)]) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        waiting = await notice(home, "A file came late.", wakes=False)
        assert home.gateway.statistics().workers == 0
        assert isinstance(await home.gateway.clear(asked.session_id), Stop)
        with trio.fail_after(60):
            await wiped(home, waiting.id)


async def test_a_folder_that_cannot_be_moved_keeps_its_session_closed_and_everything_else_running(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    class Stuck:
        async def discard(self, session_id: str) -> None:
            raise OSError(f"{session_id} is busy")

        async def sweep(self) -> None:
            raise OSError("the trash is busy")

    async with at_home(tmp_path, [(Say(text="Hello."),)] * 2, folders=Stuck()) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        await home.gateway.clear(asked.session_id)
        again = await home.say("Hi again.")
        assert (await home.ended(again)).status is Status.PROCESSED
        session = await home.gateway.session(asked.session_id)
        assert session is not None
        assert session.state is SessionState.CLOSED
    async with at_home(tmp_path) as home:
        await wiped(home, asked.id)
