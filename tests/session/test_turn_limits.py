"""The turn machine at its limits: resumed and stale turns, turns of their own, budgets, refused commits."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.protocol import (
    Activity,
    BusyMode,
    CallState,
    Outcome,
    Reason,
    Status,
    Stop,
    Waiting,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TurnLimits
from kesoku_actors.store.port import (
    RefusalReason,
    ResultMode,
)
from tests.session.turns import Session, call, ends, notice, person, reply, streaming, thinking, working


def test_a_waking_notice_starts_a_turn_and_takes_the_others_along() -> None:
    commit = Session(notice(1, wakes=False), notice(2), notice(3)).commit
    assert commit.claim is not None
    assert commit.claim.message_id == "n2"
    assert [each.message_id for each in commit.claim_adopts] == ["n1", "n3"]


@pytest.mark.parametrize("waiting", [notice(1, wakes=False), notice(2)])
def test_beyond_the_bound_or_without_waking_a_notice_waits(waiting: Waiting) -> None:
    assert Session(waiting, self_started=8).has(v.Finish)


def test_a_person_makes_the_count_of_self_started_turns_new() -> None:
    session = Session(person(1), self_started=8).stand().hear(v.NoticeArrived(notice(2)))
    session.think().say(reply("hi")).stand()
    assert session.commit.claim is not None
    assert session.commit.claim.message_id == "n2"


def test_turns_of_their_own_follow_each_other_up_to_the_bound() -> None:
    session = Session(notice(1), limits=TurnLimits(max_self_started=2)).stand()
    session.hear(v.NoticeArrived(notice(2))).think().say(reply("one")).stand()
    assert session.commit.claim is not None
    session.stand().hear(v.NoticeArrived(notice(3))).think().say(reply("two")).stand()
    assert session.has(v.Finish)


@pytest.mark.parametrize("first", [{"waiting": (person(1),)}, {"returned": ("m1",)}])
def test_neither_a_persons_turn_nor_a_resumed_one_counts_as_one_of_its_own(first: dict[str, Any]) -> None:
    session = Session(*first.pop("waiting", ()), **first, limits=TurnLimits(max_self_started=1)).stand()
    session.hear(v.NoticeArrived(notice(2))).think().say(reply("hi")).stand()
    assert session.commit.claim is not None
    assert session.commit.claim.message_id == "n2"


def test_a_stale_turn_is_ended_with_a_notice_and_its_calls_do_not_start() -> None:
    session = Session(returned=("m1",), stale=True).stand("c1")
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STALE)}
    assert session.commit.results is ResultMode.SETTLE
    assert session.commit.insert[0].metadata == {"notice": "stale"}
    assert "ask again" in session.commit.insert[0].content


def test_what_still_runs_of_a_stale_turn_is_ended_first() -> None:
    session = Session(returned=("m1",), stale=True).stand("c1", state=CallState.STARTED)
    assert session.the(v.EndTools).call_ids == ("c1",)
    session.hear(v.ToolSettled("c1", Outcome.INTERRUPTED)).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STALE)}


def test_a_stale_turn_ends_together_with_what_a_stop_covers() -> None:
    session = Session(returned=("m1",), stale=True).hear(v.PersonSpoke(person(2))).stop("m2").stand()
    assert ends(session.commit) == {
        "m1": (Status.INTERRUPTED, Reason.STALE),
        "m2": (Status.INTERRUPTED, Reason.STOPPED),
    }


def test_a_shutdown_returns_the_turn_and_drops_its_text() -> None:
    session, ticket = streaming("Once")
    session.hear(v.ShutdownRequested(), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert session.commit.give_back
    assert not session.commit.insert
    assert session.commit.step is not None
    assert session.stand().the(v.Finish).clean


def test_a_shutdown_publishes_what_runs_and_starts_nothing() -> None:
    session = working("c1").hear(v.ShutdownRequested())
    assert not session.effects
    session.hear(v.ToolSettled("c1", Outcome.OK))
    assert session.commit.results is ResultMode.PUBLISH
    assert session.stand().commit.give_back


def test_a_shutdown_returns_a_batch_of_which_nothing_runs() -> None:
    session = thinking().say(reply("", call())).stand("c1").hear(v.ToolWaiting("c1"), v.ShutdownRequested())
    assert session.commit.give_back


def test_a_shutdown_leaves_calls_that_have_not_started_to_the_next_life() -> None:
    session = thinking().say(reply("", call(id="c1"), call(id="c2"))).stand("c1", "c2")
    session.hear(v.ToolStarted("c1"), v.ToolWaiting("c2"), v.ShutdownRequested(), v.PersonSpoke(person(2)))
    assert not session.effects
    assert session.hear(v.ToolSettled("c1", Outcome.OK)).commit.give_back


def test_a_shutdown_while_a_turn_is_resumed_starts_none_of_its_calls() -> None:
    session = Session(returned=("m1",)).hear(v.ShutdownRequested()).stand("c1", state=CallState.WAITING)
    assert not session.has(v.StartTools)
    assert session.commit.give_back


def test_the_clock_of_a_turn_runs_from_its_claim() -> None:
    assert Session(person(1)).stand().the(v.SetBudget) == v.SetBudget("m1", 900.0)


def test_a_resumed_turn_has_the_time_that_is_left() -> None:
    session = Session(returned=("m1",))
    session.spent_s = 850.0
    assert session.stand().the(v.SetBudget).seconds == 50.0


def test_a_resumed_turn_with_little_time_left_goes_on() -> None:
    session = Session(returned=("m1",))
    session.spent_s = 899.5
    assert session.stand().the(v.SetBudget).seconds == 0.5
    session.think().say(reply("", call())).stand("c1").hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert session.has(v.BuildPrompt)


def test_the_clock_stands_still_while_all_that_is_open_waits_for_a_person() -> None:
    session = thinking().say(reply("", call(id="a"), call(id="b"))).stand("c1", "c2")
    assert not session.hear(v.ToolWaiting("c1"), v.ToolStarted("c2")).has(v.HoldBudget), "something still runs"
    assert session.hear(v.ToolSettled("c2", Outcome.OK)).the(v.HoldBudget) == v.HoldBudget("m1")
    assert session.the(v.Notify).activity is Activity.ASKING
    assert session.hear(v.ToolStarted("c1")).the(v.ResumeBudget) == v.ResumeBudget("m1")
    assert session.the(v.Notify).activity is Activity.TOOLS


def test_a_denied_call_lets_the_clock_go_on() -> None:
    session = thinking().say(reply("", call())).stand("c1").hear(v.ToolWaiting("c1"))
    assert session.has(v.HoldBudget)
    session.hear(v.ToolSettled("c1", Outcome.ERROR))
    assert session.has(v.ResumeBudget)
    assert session.commit.results is ResultMode.PUBLISH


def test_a_resumed_turn_that_waits_for_a_person_has_its_clock_held() -> None:
    session = Session(returned=("m1",)).stand("c1", state=CallState.WAITING)
    kinds = [type(each) for each in session.effects]
    assert kinds.index(v.SetBudget) < kinds.index(v.HoldBudget)
    assert session.the(v.StartTools).call_ids == ("c1",)


def test_while_a_turn_runs_its_clock_counts_and_not_the_sum_of_what_ran_side_by_side() -> None:
    session = working("c1", "c2").hear(v.ToolSettled("c1", Outcome.OK), v.ToolSettled("c2", Outcome.OK))
    session.spent_s = 950.0
    assert session.stand().has(v.BuildPrompt)
    assert not session.has(v.SetBudget)
    assert not thinking().say(reply("", call())).stand("c1").has(v.SetBudget)


@pytest.mark.parametrize("spent_s", [900.0, 950.0])
def test_a_resumed_turn_without_time_left_is_read_once_and_ends(spent_s: float) -> None:
    session = Session(returned=("m1",))
    session.spent_s = spent_s
    assert not session.stand().has(v.SetBudget)
    session.think().say(reply("", call())).stand("c1").hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_spent_time_aborts_the_inference_and_tells_keeping_the_text() -> None:
    session, ticket = streaming("Once")
    session.hear(v.BudgetSpent("m1"))
    assert session.has(v.AbortModel)
    session.hear(v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    assert [each.metadata for each in session.commit.insert] == [{"partial": True}, {"notice": "budget"}]
    assert "900 seconds" in session.commit.insert[1].content


def test_time_of_another_turn_is_nobodys() -> None:
    session, _ = streaming()
    assert not session.hear(v.BudgetSpent("m0")).effects
    session = working("c1").hear(v.BudgetSpent("m0"), v.ToolSettled("c1", Outcome.OK), v.BudgetSpent("m0")).stand()
    assert session.has(v.BuildPrompt)
    assert not session.hear(v.BudgetSpent("m0")).effects


def test_spent_time_lets_a_batch_run_to_its_end() -> None:
    session = working("c1").hear(v.BudgetSpent("m1"))
    assert not session.effects
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_spent_time_ends_a_backoff_at_once() -> None:
    session = thinking().fail().stand().hear(v.BudgetSpent("m1"))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_spent_time_ends_a_prompt_whose_turn_was_read_at_once() -> None:
    session = working("c1").hear(v.ToolSettled("c1", Outcome.OK)).stand().hear(v.BudgetSpent("m1"))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_time_spent_before_a_turn_was_read_ends_it_after_its_inference() -> None:
    session = Session(person(1)).stand().hear(v.BudgetSpent("m1"))
    assert not session.effects
    session.think().say(reply("", call())).stand("c1").hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_time_spent_while_a_commit_is_on_its_way_counts_whatever_the_store_answers() -> None:
    for answer in (Session.stand, lambda session: session.refuse(RefusalReason.MOVED)):
        session = thinking().fail().hear(v.BudgetSpent("m1"))
        assert not session.effects
        assert ends(answer(session).commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_time_spent_while_an_answer_is_stored_changes_nothing() -> None:
    assert thinking().say(reply("hi")).hear(v.BudgetSpent("m1")).stand().the(v.Finish).clean


def test_time_of_an_ended_turn_is_not_that_of_the_one_being_claimed() -> None:
    assert Session(person(2)).hear(v.BudgetSpent("m1")).stand().has(v.BuildPrompt)


def test_no_message_fails_for_a_budget_before_a_model_has_read_it() -> None:
    session = working("c1", mode=BusyMode.STEER).hear(v.PersonSpoke(person(2)), v.ToolSettled("c1", Outcome.OK))
    session.stand().stand().hear(v.BudgetSpent("m1"))
    assert not session.effects
    assert session.think().has(v.CallModel)


def test_the_step_that_ends_counts_and_the_notice_names_the_limit() -> None:
    session = thinking(limits=TurnLimits(max_steps=1)).say(reply("", call())).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    assert "1 steps" in session.commit.insert[0].content


def test_a_late_attachment_is_committed_and_the_prompt_is_built_again() -> None:
    session = Session(person(1)).stand()
    session.hear(v.PromptBuilt(session.the(v.BuildPrompt).ticket, ("m1",)))
    assert session.commit.late == ("m1",)
    assert session.stand().has(v.BuildPrompt)


def test_what_moved_is_judged_again_with_the_stores_rows() -> None:
    session, ticket = streaming("Once")
    session.hear(v.PersonSpoke(person(2)), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    session.refuse(RefusalReason.MOVED, person(3))
    assert session.commit.claim is not None
    assert session.commit.claim.message_id == "m3"
    assert session.commit.step is None
    assert [each.content for each in session.commit.insert] == ["Once"]


def test_whom_a_refusal_named_never_interrupts_the_turn_that_took_them() -> None:
    session = Session(person(1)).refuse(RefusalReason.MOVED, person(1), person(2)).stand().think()
    assert not session.hear(v.PersonSpoke(person(2))).effects


def test_news_of_a_call_outlives_the_refusal_of_the_commit_beside_it() -> None:
    session = thinking().say(reply("", call())).hear(v.PersonSpoke(person(2))).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).refuse(RefusalReason.MOVED)
    assert session.commit.results is ResultMode.PUBLISH


@pytest.mark.parametrize("reason", [RefusalReason.STALE, RefusalReason.INVALID])
def test_any_other_refusal_ends_the_worker_in_silence(reason: RefusalReason) -> None:
    session = thinking().say(reply("hi")).refuse(reason)
    assert session.effects == (v.Finish(clean=False),)
    assert not session.hear(v.PersonSpoke(person(2))).effects


def test_what_is_heard_while_a_commit_is_on_its_way_is_newer_than_its_answer() -> None:
    session = Session(person(1)).hear(v.ModeSwitched(BusyMode.QUEUE)).stand().think()
    assert not session.hear(v.PersonSpoke(person(2))).effects


def test_a_claims_answer_brings_stops_that_were_not_heard_yet() -> None:
    session = Session(person(1))
    session.stops = (Stop(seq=9, session_id="s", root_id="m1", covers=frozenset({"m1"})),)
    assert ends(session.stand().commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_stop_comes_before_the_shutdown_that_would_return_its_turn() -> None:
    session, ticket = streaming()
    session.stop("m1").hear(v.ShutdownRequested(), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_shutdown_comes_before_the_end_of_a_stale_turn() -> None:
    assert Session(returned=("m1",), stale=True).hear(v.ShutdownRequested()).stand().commit.give_back


def test_a_stale_turn_ends_for_its_age_also_when_somebody_interrupts() -> None:
    session = Session(person(2), returned=("m1",), stale=True).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STALE)}
    assert session.commit.claim is None


def test_calls_of_the_last_step_start_before_the_budget_ends_the_turn() -> None:
    session = thinking(limits=TurnLimits(max_steps=1)).say(reply("", call())).hear(v.PersonSpoke(person(2)))
    assert session.stand("c1").refuse(RefusalReason.MOVED).the(v.StartTools).call_ids == ("c1",)


def test_nobody_is_adopted_into_a_turn_whose_budget_ends_it() -> None:
    session = working("c1", mode=BusyMode.STEER, limits=TurnLimits(max_steps=1)).hear(v.PersonSpoke(person(2)))
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_a_shutdown_leaves_what_a_stop_covers_to_the_next_life() -> None:
    session = thinking(mode=BusyMode.QUEUE).hear(v.PersonSpoke(person(2))).stop("m2").say(reply("hi"))
    assert session.hear(v.ShutdownRequested()).stand().the(v.Finish).clean


def test_a_returned_turn_is_resumed_before_anybody_who_waits() -> None:
    claim = Session(person(2), returned=("m1",)).commit.claim
    assert claim is not None
    assert claim.message_id == "m1"
