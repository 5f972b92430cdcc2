"""I1 to I10 on the whole path: thought is interruptible, tools are atomic, a stop ends what it covers."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Fail, Say, Stall
from kesoku_actors.protocol import BusyMode, Delta, Message, Outcome, Reason, Status, StepState, Stop, StopEnded, Type
from kesoku_actors.store import NothingToStop, TooEarly
from tests.paths.house import Home, at_home, texts


async def slow(seconds: float) -> str:
    """Wait, then say so."""
    await trio.sleep(seconds)
    return f"waited {seconds:g} s"


LONG = (Say(text="a long answer that takes thirty seconds " * 5, word_delay_s=1.0),)


def reason(row: Message) -> str:
    return str(row.metadata["reason"])


async def test_a_message_closes_the_generation_and_is_read_next(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [LONG, (Say(text="Six."),)]) as home:
        first = await home.say("Tell me a story.")
        await home.hint(lambda event: isinstance(event, Delta))
        await trio.sleep(3)
        begun = trio.current_time()
        second = await home.say("No: what is two times three?")
        assert (await home.ended(second)).status is Status.PROCESSED
        assert trio.current_time() - begun < 1, "at once"
        assert len(home.model.cancelled) == 1
        old = await home.ended(first)
        assert (old.status, reason(old)) == (Status.INTERRUPTED, Reason.INTERRUPTED)
        rows = await home.rows(first.session_id)
        assert [row.type for row in rows] == [Type.TEXT] * 4
        partial = rows[1]
        assert partial.metadata["partial"] is True
        assert partial.content.startswith("a long answer")
        assert texts(home.model.requests[1].history)[-1] == "No: what is two times three?"
        steps = (await home.gateway.history(first.session_id)).steps
        assert [stored.step.state for stored in steps] == [StepState.CANCELLED, StepState.FINISHED]


async def test_a_message_waits_for_a_running_tool_and_the_rest_of_the_batch_is_withdrawn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    calls = (Call(name="slow", arguments={"seconds": 20.0}), Call(name="slow", arguments={"seconds": 5.0}))
    async with at_home(tmp_path, [calls, (Say(text="Fine."),)], tools=[slow], parallel_tools=1) as home:
        first = await home.say("Build it.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(2)
        begun = trio.current_time()
        second = await home.say("How far are you?")
        assert (await home.ended(second)).status is Status.PROCESSED
        assert trio.current_time() - begun >= 17, "the running tool ended by itself"
        results = [row for row in await home.rows(first.session_id) if row.type is Type.TOOL_RESULT]
        assert [row.metadata["outcome"] for row in results] == [Outcome.OK, Outcome.INTERRUPTED]
        assert len(home.model.requests) == 2
        assert texts(home.model.requests[1].history)[-1] == "How far are you?"


async def test_a_message_ends_a_backoff_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [(Fail(kind="overloaded"),)] * 4 + [(Say(text="Here."),)]
    async with at_home(tmp_path, script) as home:
        await home.say("One.")
        with trio.move_on_after(60):
            await home.until_recorded(lambda: len(home.timers()) == 4)
        longest = home.timers()[-1]
        assert longest > 0.1
        begun = trio.current_time()
        await home.ended(await home.say("Two."))
        assert trio.current_time() - begun < longest / 2


async def test_of_several_waiting_messages_the_last_is_the_root_and_all_are_read(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    calls = (Call(name="slow", arguments={"seconds": 20.0}),)
    async with at_home(tmp_path, [calls, (Say(text="All."),)], tools=[slow]) as home:
        await home.say("Zero.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        one, two, three = [await home.say(word) for word in ("One.", "Two.", "Three.")]
        assert (await home.ended(three)).status is Status.PROCESSED
        assert [reason(await home.ended(row)) for row in (one, two)] == [Reason.SUPERSEDED] * 2
        assert texts(home.model.requests[1].history)[-3:] == ["One.", "Two.", "Three."]


async def test_racing_first_messages_make_one_session_and_one_worker(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Hello both."),)] * 2) as home:
        posted: list[Message] = []

        async def post(word: str) -> None:
            posted.append(await home.say(word))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(post, "One.")
            nursery.start_soon(post, "Two.")
        for row in posted:
            await home.ended(row)
        assert len({row.session_id for row in posted}) == 1


async def _stopped(home: Home, session_id: str) -> StopEnded:
    stop = await home.gateway.stop(session_id)
    assert isinstance(stop, Stop)
    return await home.gateway.stop_receipt(stop)


async def test_a_stop_ends_a_hung_provider_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Once upon"), Stall())]) as home:
        asked = await home.say("A story.")
        await trio.sleep(5)
        begun = trio.current_time()
        receipt = await _stopped(home, asked.session_id)
        assert trio.current_time() - begun < 2
        assert receipt.ended == (asked.id,)
        ended = await home.ended(asked)
        assert (ended.status, reason(ended)) == (Status.INTERRUPTED, Reason.STOPPED)
        rows = await home.rows(asked.session_id)
        assert texts(rows) == ["A story.", "Once upon"], "what was streamed is kept"
        assert isinstance(await home.gateway.stop(asked.session_id), NothingToStop)


async def test_a_stop_lets_the_running_tool_end_and_force_does_not(tmp_path: Path, autojump_clock: MockClock) -> None:
    calls = (Call(name="slow", arguments={"seconds": 100.0}),)
    async with at_home(tmp_path, [calls], tools=[slow]) as home:
        asked = await home.say("Build it.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(5)
        stop = await home.gateway.stop(asked.session_id)
        assert isinstance(stop, Stop)
        assert isinstance(await home.gateway.force(asked.session_id), TooEarly)
        await trio.sleep(2)
        assert not (await home.gateway.reader.stops(asked.session_id))[0].done
        begun = trio.current_time()
        assert isinstance(await home.gateway.force(asked.session_id), Stop)
        receipt = await home.gateway.stop_receipt(stop)
        assert receipt.ended == (asked.id,)
        assert trio.current_time() - begun < 20
        [result] = [row for row in await home.rows(asked.session_id) if row.type is Type.TOOL_RESULT]
        assert result.metadata["outcome"] == Outcome.INTERRUPTED
        assert len(home.model.requests) == 1


async def test_what_waited_when_the_stop_was_stored_is_stopped_and_what_came_later_runs(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    calls = (Call(name="slow", arguments={"seconds": 30.0}),)
    async with at_home(tmp_path, [calls, (Say(text="Later."),)], tools=[slow]) as home:
        first = await home.say("Build it.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(1)
        waiting = await home.say("And then this.")
        stop = await home.gateway.stop(first.session_id)
        assert isinstance(stop, Stop)
        later = await home.say("Something else.")
        assert (await home.ended(later)).status is Status.PROCESSED
        assert (await home.ended(waiting)).status is Status.INTERRUPTED
        assert set((await home.gateway.stop_receipt(stop)).ended) == {first.id, waiting.id}


async def test_queued_messages_are_answered_one_after_the_other(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [(Say(text="First answer.", word_delay_s=5.0),), (Say(text="Second."),), (Say(text="Third."),)]
    async with at_home(tmp_path, script) as home:
        await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
        rows = [await home.say("One.")]
        await trio.sleep(2)
        rows += [await home.say(word) for word in ("Two.", "Three.")]
        assert [(await home.ended(row)).status for row in rows] == [Status.PROCESSED] * 3
        told = texts(await home.rows(rows[0].session_id))
        assert told == ["One.", "First answer.", "Two.", "Second.", "Three.", "Third."]
