"""I5, I6, B4 on the whole path: busy modes, notices that wake or wait, budgets and bounds."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Say, Scenario
from kesoku_actors.protocol import BusyMode, Inbound, Message, Reason, Role, Status, Stop, Type
from kesoku_actors.session import Remit, TurnLimits
from kesoku_actors.store import Durability, Posted, PostRefused, Rules, StoreOptions
from tests.paths.house import ROOM, Home, at_home, texts


async def slow(seconds: float) -> str:
    """Wait, then say so."""
    await trio.sleep(seconds)
    return "waited"


WORK = (Call(name="slow", arguments={"seconds": 20.0}),)


async def notice(home: Home, content: str, *, wakes: bool) -> Message:
    inbound = Inbound(
        chatbot_id=ROOM.chatbot_id,
        channel_id=ROOM.channel_id,
        content=content,
        sender="System",
        role=Role.SYSTEM,
        metadata={"wakes": wakes},
    )
    reply = await home.gateway.post(inbound)
    assert isinstance(reply, Posted)
    return reply.message


async def busy(home: Home, mode: BusyMode) -> Message:
    """Set the mode and begin a turn whose tool runs for a while."""
    await home.gateway.set_mode(home.channel, mode)
    first = await home.say("Build it.")
    await home.until(lambda row: row.type is Type.TOOL_CALL)
    await trio.sleep(2)
    return first


async def test_collected_messages_are_one_turn_in_order(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [WORK, (Say(text="Built."),), (Say(text="Both."),)], tools=[slow]) as home:
        first = await busy(home, BusyMode.COLLECT)
        two, three = await home.say("Two."), await home.say("Three.")
        ended = [await home.ended(row) for row in (first, two, three)]
        assert [row.status for row in ended] == [Status.PROCESSED] * 3
        assert {row.root_id for row in ended[1:]} == {two.id}
        assert texts(await home.rows(first.session_id))[-3:] == ["Two.", "Three.", "Both."]
        assert len(home.model.requests) == 3


async def test_a_steering_message_is_read_after_the_batch_by_the_running_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [WORK, (Say(text="As you say."),)], tools=[slow]) as home:
        first = await busy(home, BusyMode.STEER)
        two = await home.say("In blue, please.")
        ended = await home.ended(two)
        assert (ended.status, ended.root_id) == (Status.PROCESSED, first.id)
        assert ended.metadata["reason"] == Reason.STEERED
        assert texts(home.model.requests[1].history)[-2:] == ["waited", "In blue, please."]
        assert (await home.ended(first)).status is Status.PROCESSED


async def test_a_change_to_interrupt_makes_what_waits_interrupt(tmp_path: Path, autojump_clock: MockClock) -> None:
    long = (Say(text="a long answer " * 20, word_delay_s=1.0),)
    async with at_home(tmp_path, [long, (Say(text="Now."),)]) as home:
        await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
        first = await home.say("A story.")
        await trio.sleep(3)
        second = await home.say("Never mind.")
        await trio.sleep(3)
        begun = trio.current_time()
        await home.gateway.set_mode(home.channel, BusyMode.INTERRUPT)
        assert (await home.ended(second)).status is Status.PROCESSED
        assert trio.current_time() - begun < 1
        assert (await home.ended(first)).status is Status.INTERRUPTED


async def test_a_mode_survives_a_restart(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path) as home:
        await home.gateway.set_mode(home.channel, BusyMode.STEER)
    async with at_home(tmp_path) as home:
        assert await home.gateway.reader.mode(home.channel) is BusyMode.STEER


async def test_a_waking_notice_is_a_turn_and_another_waits_for_a_person(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="Noted."),), (Say(text="Hello."),)]) as home:
        woken = await notice(home, "The job ended.", wakes=True)
        assert (await home.ended(woken)).status is Status.PROCESSED
        silent = await notice(home, "A file came late.", wakes=False)
        await trio.sleep(60)
        assert len(home.model.requests) == 1
        asked = await home.say("Hi.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        adopted = await home.ended(silent)
        assert adopted.root_id == asked.id
        assert set(texts(home.model.requests[1].history)[-2:]) == {"A file came late.", "Hi."}


async def test_a_notice_never_interrupts_thought(tmp_path: Path, autojump_clock: MockClock) -> None:
    long = (Say(text="a long answer " * 5, word_delay_s=1.0),)
    async with at_home(tmp_path, [long, (Say(text="Noted."),)]) as home:
        asked = await home.say("A story.")
        await trio.sleep(3)
        told = await notice(home, "The job ended.", wakes=True)
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert (await home.ended(told)).status is Status.PROCESSED
        assert home.model.cancelled == []


async def test_self_started_turns_in_a_row_are_bounded_until_a_person_speaks(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    always = Scenario(inferences=((Say(text="Noted."),),), repeat=True)
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, rules=Rules(max_self_started=3))
    limits = TurnLimits(max_self_started=3)
    async with at_home(tmp_path, scenario=always, store=store, limits=limits) as home:
        for number in range(5):
            await notice(home, f"Job {number} ended.", wakes=True)
            await trio.sleep(10)
        assert len(home.model.requests) == 3
        asked = await home.say("Hi.")
        await home.ended(asked)
        assert texts(home.model.requests[3].history)[-3:] == ["Hi.", "Job 3 ended.", "Job 4 ended."]
        await home.ended(await notice(home, "Job 5 ended.", wakes=True))


async def test_one_message_beyond_the_bound_is_refused_and_told_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, rules=Rules(max_waiting=2))
    async with at_home(tmp_path, [WORK, (Say(text="All."),)], tools=[slow], store=store) as home:
        await busy(home, BusyMode.QUEUE)
        await home.say("Two.")
        await home.say("Three.")
        for word in ("Four.", "Five."):
            inbound = Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content=word)
            assert isinstance(await home.gateway.post(inbound), PostRefused)
        assert len(await home.gateway.leaving(home.channel)) == 1


async def test_a_turn_that_takes_too_many_steps_ends_with_the_reason(tmp_path: Path, autojump_clock: MockClock) -> None:
    loop = Scenario(inferences=(WORK,), repeat=True)
    async with at_home(tmp_path, scenario=loop, tools=[slow], limits=TurnLimits(max_steps=3)) as home:
        asked = await home.say("Loop.")
        ended = await home.ended(asked)
        assert (ended.status, ended.metadata["reason"]) == (Status.ERROR, Reason.BUDGET)
        assert len(home.model.requests) == 3
        [told] = await home.gateway.leaving(home.channel)
        assert told.role is Role.SYSTEM


async def test_a_turn_that_takes_too_long_ends_after_its_tool(tmp_path: Path, autojump_clock: MockClock) -> None:
    loop = Scenario(inferences=(WORK,), repeat=True)
    async with at_home(tmp_path, scenario=loop, tools=[slow], limits=TurnLimits(max_turn_s=30.0)) as home:
        begun = trio.current_time()
        ended = await home.ended(await home.say("Loop."))
        assert ended.metadata["reason"] == Reason.BUDGET
        assert 30 <= trio.current_time() - begun <= 41


async def test_a_withdrawn_message_is_never_read_and_an_edited_one_as_it_is(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [WORK, (Say(text="Built."),), (Say(text="Fine."),)], tools=[slow]) as home:
        await busy(home, BusyMode.QUEUE)
        two, three = await home.say("Two."), await home.say("Three.")
        assert await home.gateway.withdraw(two.id)
        assert not await home.gateway.withdraw(two.id)
        edited = await home.gateway.edit(three.id, "Three, but better.")
        assert edited is not None
        assert (await home.ended(three)).content == "Three, but better."
        assert home.prompts()[-1][-1] == "Three, but better."
        assert await home.gateway.edit(three.id, "Too late.") is None


async def test_a_notice_that_does_not_wake_starts_no_worker_and_its_stop_is_obeyed_all_the_same(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="Hello."),)]) as home:
        asked = await home.say("Hi.")
        await home.ended(asked)
        await trio.testing.wait_all_tasks_blocked()
        workers = {recorded.key.worker for recorded in home.record}
        waiting = await notice(home, "A file came late.", wakes=False)
        await trio.sleep(60)
        assert {recorded.key.worker for recorded in home.record} == workers
        stop = await home.gateway.stop(waiting.session_id, waiting.id)
        assert isinstance(stop, Stop)
        with trio.fail_after(60):
            assert (await home.gateway.stop_receipt(stop)).ended == (waiting.id,)


async def test_a_message_posted_again_while_it_waits_is_announced_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    remit = Remit(())
    async with at_home(tmp_path, [(Say(text="Hello."),)], channels=remit) as home:
        first = await home.say("Hi.", external_id="x1")
        again = await home.say("Hi.", external_id="x1")
        assert again.id == first.id
        await trio.testing.wait_all_tasks_blocked()
        assert home.record == [], "not ours"
        remit.add(home.channel)
        assert (await home.ended(first)).status is Status.PROCESSED
        await home.say("Hi.", external_id="x1")
        await trio.sleep(5)
        assert len(home.model.requests) == 1
