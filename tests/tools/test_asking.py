"""Calls that wait for a person's yes, in the tool actor (T7, C3, I1, I3, I4, I7, C7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from kesoku_actors.protocol import CallState, Channel, Outcome, Standing
from kesoku_actors.tools import (
    ApprovalRules,
    Asking,
    AwaitingApproval,
    Settled,
    Started,
    ToolCall,
    ToolOptions,
    ToolOutcome,
    ToolRegistry,
)
from tests.tools.journals import MemoryJournal, bench, call

RISKY = ToolOptions(approval=ApprovalRules(approve="risky"))


async def work(seconds: float = 1.0) -> str:
    """Do it."""
    await trio.sleep(seconds)
    return "done"


async def look() -> str:
    return "seen"


async def rest() -> str:
    await trio.sleep(100)
    return "rested"


def registry(**options: Any) -> ToolRegistry:
    made = ToolRegistry()
    made.add(work, owner="tests", risky=True, **options)
    made.add(look, owner="tests")
    made.add(rest, owner="tests")
    return made


def asks(**changes: Any):
    return bench([], registry=changes.pop("registry", None) or registry(), **{"options": RISKY, **changes})


async def test_a_risky_call_waits_and_starts_with_the_yes(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        await trio.sleep(600)
        made.journal.answer("a", approved=True)
        made.tools.look_again("s")
        await made.heard(Settled, "a")
    assert made.journal.facts == [
        "waiting a",
        "AwaitingApproval a",
        "approved a",
        "started a",
        "Started a",
        "staged a ok",
        "Settled a",
    ]
    assert made.outcome("a").duration_s == 1.0, "the wait for a person is nobody's time"


async def test_an_answer_that_crosses_the_word_that_it_is_waited_for_is_heard(autojump_clock):
    class Crossing(MemoryJournal):
        async def waiting(self, call_id: str, expires: float | None, parts: tuple[str, ...] | None) -> Standing:
            standing = await super().waiting(call_id, expires, parts)
            if standing.state is CallState.WAITING:
                self.answer(call_id, approved=True)
                made.tools.look_again("s")
            return standing

    async with asks(journal=Crossing()) as made:
        began = trio.current_time()
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
        assert trio.current_time() - began == 1.0


async def test_a_denied_call_never_runs_and_is_told_once(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        made.journal.answer("a", approved=False)
        made.tools.look_again("s")
        await made.heard(Settled, "a")
        assert made.tools.running("s") == ()
    assert "started a" not in made.journal.facts
    assert made.events[-1] == Settled(call_id="a", outcome=Outcome.ERROR)


async def test_what_nobody_answers_expires_after_its_time(autojump_clock):
    rules = ApprovalRules(approve="risky", within_s=600.0)
    async with asks(options=ToolOptions(approval=rules)) as made:
        began = trio.current_time()
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
        assert trio.current_time() - began == 600.0
    assert made.outcome("a").metadata["reason"] == "expired"


async def test_a_waiting_call_holds_no_slot_and_keeps_nobody(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work"), call("b", "look"), call("c", "work"), call("d", "look"), parallel=1)
        await made.heard(Settled, "b", "d")
        await made.heard(AwaitingApproval, "a", "c")
        assert [run.call_id for run in made.tools.running("s")] == ["a", "c"]


async def test_what_needs_no_asking_any_more_keeps_its_place_in_the_order(autojump_clock):
    """With one slot a granted call starts before the one behind it, although it has to be looked up first."""
    journal = MemoryJournal(approved={"a"}, delay_s=1.0)
    async with asks(journal=journal) as made:
        made.start(call("a", "work"), call("b", "look"), parallel=1)
        await made.heard(Settled, "a", "b")
    assert [fact for fact in made.journal.facts if fact.startswith("started")] == ["started a", "started b"]


async def test_approved_calls_start_in_the_order_they_came(autojump_clock):
    async with asks() as made:
        made.start(call("x", "rest"), call("a", "work"), call("b", "work"), call("c", "work"), parallel=1)
        await made.heard(AwaitingApproval, "a", "b", "c")
        for id in "cab":
            made.journal.answer(id, approved=True)
            made.tools.look_again("s")
            await trio.sleep(1)
        await made.heard(Settled, "a", "b", "c")
    started = [fact for fact in made.journal.facts if fact.startswith("started")]
    assert started == ["started x", "started a", "started b", "started c"]


async def test_a_call_approved_before_is_not_asked_about_again(autojump_clock):
    async with asks(journal=MemoryJournal(approved={"a"})) as made:
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
    assert "waiting a" not in made.journal.facts


async def test_a_waiting_call_is_offered_again_after_a_restart_until_its_old_expiry(autojump_clock):
    journal = MemoryJournal(states={"a": CallState.WAITING}, expires={"a": trio.current_time() + 50})
    async with asks(journal=journal) as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        await made.heard(Settled, "a")
    assert made.outcome("a").metadata["reason"] == "expired"


@pytest.mark.parametrize("loses_replies", [0, 2])
async def test_a_call_that_waited_under_stricter_settings_runs_under_these(autojump_clock, loses_replies):
    journal = MemoryJournal(
        states={"a": CallState.WAITING}, expires={"a": trio.current_time() + 50}, loses_replies=loses_replies
    )
    async with asks(journal=journal, options=ToolOptions()) as made:
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK


async def test_what_expired_while_the_program_was_away_is_settled_once(autojump_clock):
    journal = MemoryJournal(states={"a": CallState.WAITING}, expires={"a": trio.current_time() - 50})
    async with asks(journal=journal) as made:
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
        await trio.sleep(10_000)
    assert [fact for fact in made.journal.facts if fact.startswith("staged")] == ["staged a error"]


@pytest.mark.parametrize("delay_s", [0.0, 1.0])
async def test_a_withdrawn_call_is_interrupted_whatever_is_said_later(autojump_clock, delay_s):
    async with asks(journal=MemoryJournal(delay_s=delay_s)) as made:
        made.start(call("a", "work"))
        await trio.sleep(0.5 if delay_s else 2.0)
        made.tools.withdraw([call("a", "work")], workspace=made.workspace)
        await made.heard(Settled, "a")
        made.tools.look_again("s")
        await trio.sleep(10)
    assert made.outcome("a").outcome is Outcome.INTERRUPTED
    assert "started a" not in made.journal.facts
    assert [event for event in made.events if isinstance(event, Settled)] == [
        Settled(call_id="a", outcome=Outcome.INTERRUPTED)
    ]


async def test_force_withdraws_what_waits(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        made.tools.end(["a"])
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize("way", ["hold", "drop", "shut_down", "stop"])
async def test_when_nobody_attends_a_waiting_call_stays_waiting(autojump_clock, way):
    async with asks() as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        match way:
            case "hold":
                made.tools.hold("s", lambda: None)
            case "drop":
                made.tools.drop("s")
            case "shut_down":
                made.tools.shut_down()
            case _:
                pass
        if way != "stop":
            await trio.sleep(10_000)
            assert made.tools.running("s") == ()
    assert made.journal.states["a"] is CallState.WAITING
    assert made.journal.staged == {}


async def test_a_dropped_call_that_waits_is_taken_up_by_the_next_worker(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work"))
        await made.heard(AwaitingApproval, "a")
        made.tools.drop("s")
        made.start(call("a", "work"))
        made.journal.answer("a", approved=True)
        made.tools.look_again("s")
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK


async def test_where_nobody_can_be_asked_it_is_denied_at_once_and_names_the_setting(autojump_clock):
    options = ToolOptions(approval=ApprovalRules(approve="risky", can_ask=False))
    async with asks(options=options) as made:
        made.start(call("a", "work"), call("b", "look"))
        await made.heard(Settled, "a", "b")
    staged = made.outcome("a")
    assert (staged.outcome, staged.metadata["reason"]) == (Outcome.ERROR, "denied")
    assert '[tools] approve = "risky"' in staged.content
    assert '[tools.rules] work = "never"' in staged.content
    assert made.outcome("b").outcome is Outcome.OK


async def test_where_nobody_can_be_asked_an_earlier_yes_still_counts(autojump_clock):
    options = ToolOptions(approval=ApprovalRules(approve="risky", can_ask=False))
    async with asks(options=options, journal=MemoryJournal(approved={"a"})) as made:
        made.start(call("a", "work"))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK


async def test_nobody_is_asked_about_what_cannot_run(autojump_clock):
    async with asks() as made:
        made.start(call("a", "work", seconds="soon"), call("b", "sing"), call("c", "work", invalid="no JSON"))
        await made.heard(Settled, "a", "b", "c")
    assert not [event for event in made.events if isinstance(event, AwaitingApproval)]


async def test_nobody_is_asked_about_what_would_be_refused_and_others_are_told_what_a_yes_covers(autojump_clock):
    async def preview(arguments: Mapping[str, Any]) -> Asking | ToolOutcome:
        if arguments.get("seconds") == 13.0:
            return ToolOutcome(outcome=Outcome.ERROR, content="[refused]", metadata={"reason": "refused"})
        return Asking(parts=("git",))

    async with asks(registry=registry(preview=preview)) as made:
        made.start(call("a", "work", seconds=13.0), call("b", "work"))
        await made.heard(Settled, "a")
        await made.heard(AwaitingApproval, "b")
    assert made.outcome("a").content == "[refused]"
    assert made.journal.asked == {"b": ("git",)}


async def test_a_preview_that_breaks_settles_its_call_and_keeps_nobody(autojump_clock):
    async def preview(_arguments: Mapping[str, Any]) -> Asking | ToolOutcome:
        raise RuntimeError("a bug")

    async with asks(registry=registry(preview=preview)) as made:
        made.start(call("a", "work"), call("b", "look"), parallel=1)
        await made.heard(Settled, "a", "b")
    assert made.outcome("a").outcome is Outcome.INTERRUPTED


async def test_a_store_that_is_away_is_waited_for(autojump_clock):
    async with asks() as made:
        made.journal.away = True
        made.start(call("a", "work"))
        await trio.sleep(60)
        made.journal.away = False
        await made.heard(AwaitingApproval, "a")
        made.journal.loses_replies = 1
        made.journal.answer("a", approved=True)
        made.tools.look_again("s")
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.OK


ROOM = Channel(chatbot_id="c", channel_id="room")
OTHER = Channel(chatbot_id="c", channel_id="other")


@pytest.mark.parametrize(
    ("rules", "channel", "asked"),
    [
        (ApprovalRules(), None, ""),
        (ApprovalRules(approve="risky"), None, "work"),
        (ApprovalRules(approve="always"), None, "work look"),
        (ApprovalRules(approve="always", rules={"look": "never"}), None, "work"),
        (ApprovalRules(approve="never", rules={"look": "always"}), None, "look"),
        (ApprovalRules(approve="always", rules={"look": "risky"}), None, "work"),
        (ApprovalRules(approve="never", channels={ROOM: "always"}), ROOM, "work look"),
        (ApprovalRules(approve="always", channels={ROOM: "never"}), ROOM, ""),
        (ApprovalRules(approve="always", channels={ROOM: "never"}), OTHER, "work look"),
        (ApprovalRules(approve="never", channels={ROOM: "always"}, rules={"look": "never"}), ROOM, "work"),
    ],
)
async def test_the_most_particular_setting_decides(autojump_clock, rules, channel, asked):
    async with asks(options=ToolOptions(approval=rules)) as made:
        calls = [
            ToolCall(call_id=name, session_id="s", root_id="root", name=name, arguments={}, channel=channel)
            for name in ("work", "look")
        ]
        made.start(*calls)
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)
        waiting = [event.call_id for event in made.events if isinstance(event, AwaitingApproval)]
        assert sorted(waiting, reverse=True) == asked.split()
        assert {event.call_id for event in made.events if isinstance(event, Started)} == {"work", "look"} - set(waiting)
