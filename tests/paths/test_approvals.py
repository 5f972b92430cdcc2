"""Calls that wait for a person, on the whole path (T7, C2, C3, C7, I2 to I7, B4; cases 34, 35, 91)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.actors import ActorStopped
from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    Approval,
    BusyMode,
    Message,
    Reason,
    Status,
    Stop,
    Type,
)
from kesoku_actors.session import TurnLimits
from kesoku_actors.session.vocabulary import ToolWaiting
from kesoku_actors.store import Durability, NothingToStop, StoreOptions
from kesoku_actors.tools import ApprovalRules, ToolOptions
from tests.paths.house import Home, at_home
from tests.paths.test_crashes import Bomb

ASKS = {
    "tool_options": ToolOptions(approval=ApprovalRules(approve="always", rules={"look": "never"}, within_s=3_600.0))
}
CALL = (Call(name="work", arguments={}),)
DONE = (Say(text="Done."),)


@define(eq=False)
class Tool:
    """Counts its runs."""

    runs: list[str] = field(factory=list)

    async def work(self, seconds: float = 1.0) -> str:
        """Work."""
        self.runs.append("work")
        await trio.sleep(seconds)
        return "worked"

    async def look(self) -> str:
        """Look."""
        self.runs.append("look")
        await trio.sleep(1)
        return "seen"

    @property
    def both(self) -> list[object]:
        return [self.work, self.look]


async def until(home: Home, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds; looked at whenever something happens."""
    async with aclosing(home.gateway.listen(after=0)) as events:
        while not await holds():
            await anext(events)


async def asked(home: Home, session_id: str, count: int = 1) -> tuple[Approval, ...]:
    """Wait until so many calls wait for a person."""

    async def enough() -> bool:
        return len(await home.gateway.reader.approvals(session_id)) >= count

    await until(home, enough)
    return await home.gateway.reader.approvals(session_id)


async def results(home: Home, session_id: str) -> list[tuple[str, str]]:
    rows = await home.rows(session_id)
    return [(row.metadata["outcome"], row.metadata.get("reason", "")) for row in rows if row.type is Type.TOOL_RESULT]


async def test_a_turn_waits_for_its_yes_and_goes_on_with_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.")
        hint = await home.hint(lambda event: isinstance(event, ActivityChanged) and event.activity is Activity.ASKING)
        assert isinstance(hint, ActivityChanged)
        (approval,) = await asked(home, message.session_id)
        await trio.sleep(1_800)
        assert tool.runs == []
        assert (await home.gateway.answer_approval(approval.call_id, True, "Ada")).accepted
        assert (await home.ended(message)).status is Status.PROCESSED
        assert await results(home, message.session_id) == [("ok", "")]
    assert tool.runs == ["work"]


@pytest.mark.parametrize("way", ["deny", "expire"])
async def test_a_no_or_silence_is_one_error_and_the_turn_goes_on(
    tmp_path: Path, autojump_clock: MockClock, way: str
) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        if way == "deny":
            await home.gateway.answer_approval(approval.call_id, False, "Ada")
        assert (await home.ended(message)).status is Status.PROCESSED
        reason = {"deny": "denied", "expire": "expired"}[way]
        assert await results(home, message.session_id) == [("error", reason)]
        later = await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert not later.accepted
    assert tool.runs == []


async def test_the_time_of_a_person_is_not_the_turn_s(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [(*CALL, Call(name="look", arguments={})), DONE]
    limits = TurnLimits(max_turn_s=60.0)
    async with at_home(tmp_path, script, tools=Tool().both, limits=limits, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await trio.sleep(3_000)
        await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert (await home.ended(message)).status is Status.PROCESSED


async def test_a_turn_that_works_too_long_after_the_yes_has_used_its_time(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [(Call(name="work", arguments={"seconds": 100.0}),), DONE]
    async with at_home(tmp_path, script, tools=Tool().both, limits=TurnLimits(max_turn_s=60.0), **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await trio.sleep(3_000)
        await home.gateway.answer_approval(approval.call_id, True, "Ada")
        ended = await home.ended(message)
        assert (ended.status, ended.metadata["reason"]) == (Status.ERROR, Reason.BUDGET)


async def test_case_34_a_message_withdraws_what_waits_and_is_answered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, (Say(text="Hello."),)], tools=tool.both, **ASKS) as home:
        first = await home.say("Work.")
        (approval,) = await asked(home, first.session_id)
        second = await home.say("Never mind. Hello?")
        assert (await home.ended(second)).status is Status.PROCESSED
        assert (await home.ended(first)).status is Status.INTERRUPTED
        assert await results(home, first.session_id) == [("interrupted", "withdrawn")]
        assert not (await home.gateway.answer_approval(approval.call_id, True, "Ada")).accepted
        assert await home.gateway.reader.approvals(first.session_id) == ()
    assert tool.runs == []


@pytest.mark.parametrize("mode", [BusyMode.QUEUE, BusyMode.COLLECT, BusyMode.STEER])
async def test_in_the_other_modes_a_message_waits_for_the_answer(
    tmp_path: Path, autojump_clock: MockClock, mode: BusyMode
) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, DONE, DONE], tools=tool.both, **ASKS) as home:
        await home.gateway.set_mode(home.channel, mode)
        first = await home.say("Work.")
        (approval,) = await asked(home, first.session_id)
        second = await home.say("And then?")
        await trio.sleep(60)
        assert await home.gateway.reader.approvals(first.session_id) == (approval,)
        await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert (await home.ended(second)).status is Status.PROCESSED
        assert await results(home, first.session_id) == [("ok", "")]


async def test_a_stop_withdraws_what_waits_and_needs_no_force(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [CALL], tools=Tool().both, **ASKS) as home:
        message = await home.say("Work.")
        await asked(home, message.session_id)
        stop = await home.gateway.stop(message.session_id)
        assert isinstance(stop, Stop)
        receipt = await home.gateway.stop_receipt(stop)
        assert receipt.ended == (message.id,)
        assert await results(home, message.session_id) == [("interrupted", "withdrawn")]
        assert isinstance(await home.gateway.force(message.session_id), NothingToStop)


async def test_a_stop_beside_a_running_call_ends_what_waits_at_once_and_force_the_rest(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [(Call(name="work", arguments={"seconds": 1e5}), Call(name="work", arguments={}))]
    async with at_home(tmp_path, script, tools=Tool().both, **ASKS) as home:
        message = await home.say("Work.")
        first, second = await asked(home, message.session_id, 2)
        await home.gateway.answer_approval(first.call_id, True, "Ada")
        await home.until_recorded(lambda: bool(home.house.tools.statistics().running))
        stop = await home.gateway.stop(message.session_id)
        assert isinstance(stop, Stop)

        async def withdrawn() -> bool:
            return await home.gateway.reader.approvals(message.session_id) == ()

        await until(home, withdrawn)
        assert not (await home.gateway.answer_approval(second.call_id, True, "Ada")).accepted
        await trio.sleep(2)
        assert isinstance(await home.gateway.force(message.session_id), Stop)
        await home.gateway.stop_receipt(stop)
        assert await results(home, message.session_id) == [("interrupted", "forced"), ("interrupted", "withdrawn")]


async def test_a_clear_denies_what_waits_and_leaves_nothing(tmp_path: Path, autojump_clock: MockClock) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await home.gateway.clear(message.session_id)

        async def cleared() -> bool:
            return await home.gateway.reader.closed_sessions() == ()

        await until(home, cleared)
        answer = await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert (answer.accepted, answer.state) == (False, None)
        assert (await home.ended(await home.say("Hello."))).status is Status.PROCESSED
    assert tool.runs == []


async def test_case_35_a_restart_offers_what_waits_again_until_its_old_expiry(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.")
        (before,) = await asked(home, message.session_id)
    await trio.sleep(1_000)
    async with at_home(tmp_path, [DONE], tools=tool.both, seed=2, **ASKS) as home:
        assert await asked(home, message.session_id) == (before,)
        began = trio.current_time()
        assert (await home.ended(message)).status is Status.PROCESSED
        assert trio.current_time() - began < 2_700
        assert await results(home, message.session_id) == [("error", "expired")]
    assert tool.runs == []


async def test_an_answer_given_while_nobody_worked_on_it_counts_and_is_not_asked_for_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tool, bomb = Tool(), Bomb(times=1, goes_off=lambda event: isinstance(event, ToolWaiting))
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, at_event=bomb, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert await results(home, message.session_id) == [("ok", "")]
    assert (tool.runs, len(bomb.blown)) == (["work"], 1)


async def test_a_worker_that_dies_leaves_the_question_to_the_next(tmp_path: Path, autojump_clock: MockClock) -> None:
    tool, bomb = Tool(), Bomb(times=1, goes_off=lambda event: isinstance(event, ToolWaiting))
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, at_event=bomb, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await trio.sleep(60)
        await home.gateway.answer_approval(approval.call_id, True, "Ada")
        assert (await home.ended(message)).status is Status.PROCESSED
    assert (tool.runs, len(bomb.blown)) == (["work"], 1)


@pytest.mark.parametrize("approved_before", [True, False])
async def test_an_approved_call_that_had_no_slot_starts_after_a_restart_without_asking(
    tmp_path: Path, autojump_clock: MockClock, approved_before: bool
) -> None:
    tool = Tool()
    script = [(Call(name="work", arguments={"seconds": 1e5}), Call(name="work", arguments={}))]
    options = {**ASKS, "parallel_tools": 1}
    async with at_home(tmp_path, script, tools=tool.both, stop_s=4.0, **options) as home:
        message = await home.say("Work.")
        first, second = await asked(home, message.session_id, 2)
        await home.gateway.answer_approval(first.call_id, True, "Ada")
        await home.until_recorded(lambda: bool(home.house.tools.statistics().running))
        if approved_before:
            await home.gateway.answer_approval(second.call_id, True, "Ada")
            await trio.sleep(1)
    async with at_home(tmp_path, [DONE], tools=tool.both, seed=2, **options) as home:
        if not approved_before:
            assert await asked(home, message.session_id) == (second,)
            await home.gateway.answer_approval(second.call_id, True, "Ada")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert await results(home, message.session_id) == [("interrupted", "shutdown"), ("ok", "")]
    assert tool.runs == ["work", "work"]


async def test_where_nobody_can_be_asked_the_turn_goes_on_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    tool = Tool()
    silent = {"tool_options": ToolOptions(approval=ApprovalRules(approve="always", can_ask=False))}
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **silent) as home:
        message = await home.say("Work.")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert trio.current_time() < 5
        assert await results(home, message.session_id) == [("error", "denied")]
    assert tool.runs == []


async def test_a_yes_for_the_session_holds_until_it_is_cleared_also_after_a_restart(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tool = Tool()

    async def worked(home: Home, message: Message) -> None:
        assert (await home.ended(message)).status is Status.PROCESSED

    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        await home.gateway.answer_approval(approval.call_id, True, "Ada", for_session=True)
        await worked(home, message)
    async with at_home(tmp_path, [CALL, DONE, CALL], tools=tool.both, seed=2, **ASKS) as home:
        await worked(home, await home.say("Again."))
        await home.gateway.clear(message.session_id)
        later = await home.say("And in another session?")
        await asked(home, later.session_id)
    assert tool.runs == ["work", "work"]


async def test_only_the_asker_answers(tmp_path: Path, autojump_clock: MockClock) -> None:
    tool = Tool()
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, **ASKS) as home:
        message = await home.say("Work.", metadata={"sender_id": "17"})
        (approval,) = await asked(home, message.session_id)
        for by_id in (None, "18"):
            assert not (await home.gateway.answer_approval(approval.call_id, True, "Ada", by_id=by_id)).is_allowed
        assert (await home.gateway.answer_approval(approval.call_id, True, "Ada", by_id="17")).accepted
        assert (await home.ended(message)).status is Status.PROCESSED


@pytest.mark.parametrize("command", ["CallWaiting", "AnswerApproval", "CallStarted"])
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_store_that_crashes_with_a_question_in_hand_loses_no_answer(
    tmp_path: Path, autojump_clock: MockClock, side: str, command: str
) -> None:
    tool, bomb = Tool(), Bomb(times=1, goes_off=lambda point: point == f"store.{side}_commit/{command}")
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=bomb)
    async with at_home(tmp_path, [CALL, DONE], tools=tool.both, store=store, **ASKS) as home:
        message = await home.say("Work.")
        (approval,) = await asked(home, message.session_id)
        decided = False
        while not decided:
            with suppress(ActorStopped):  # a person says it again
                answer = await home.gateway.answer_approval(approval.call_id, True, "Ada")
                decided = answer.decided_by == "Ada"
        assert (await home.ended(message)).status is Status.PROCESSED
        outcome = ("interrupted", "store") if (side, command) == ("after", "CallStarted") else ("ok", "")
        assert await results(home, message.session_id) == [outcome]
    assert (tool.runs, len(bomb.blown)) == (["work"] if outcome[0] == "ok" else [], 1)
