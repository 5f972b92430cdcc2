"""The turn machine, interrupted: people, busy modes, stop, force, shutdown (I2 to I7, C7)."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.llm.port import Remedy
from kesoku_actors.protocol import (
    Activity,
    BusyMode,
    CallState,
    Outcome,
    Reason,
    Status,
    StepState,
    Stop,
    Usage,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.store.port import (
    Committed,
    OpenCall,
    RefusalReason,
    ResultMode,
)
from tests.session.turns import Session, call, ends, notice, person, reply, streaming, thinking, working


def test_a_person_aborts_the_inference_and_the_pivot_keeps_what_was_streamed() -> None:
    session, ticket = streaming("Once ", "upon")
    session.hear(v.PersonSpoke(person(2)))
    assert session.the(v.AbortModel).ticket == ticket
    session.hear(v.ModelDelta(ticket, " a time"), v.ModelAborted(ticket, "openai", "gpt", 3.0))
    commit = session.commit
    assert [(each.content, each.status, each.metadata) for each in commit.insert] == [
        ("Once upon", Status.RESPONDED, {"partial": True})
    ]
    assert ends(commit) == {"m1": (Status.INTERRUPTED, Reason.INTERRUPTED)}
    assert commit.claim is not None
    assert (commit.claim.message_id, commit.claim.reason) == ("m2", Reason.INTERRUPTED)
    assert commit.step is not None
    assert (commit.step.state, commit.step.duration_s) == (StepState.CANCELLED, 3.0)
    assert session.stand().the(v.BuildPrompt).root_id == "m2"


def test_a_reply_that_comes_after_the_abort_counts_as_aborted() -> None:
    session, ticket = streaming()
    session.hear(v.PersonSpoke(person(2)))
    session.hear(v.ModelFinished(ticket, reply("Done!", call(), native={"x": 1}, usage=Usage(output=5)), 1.0))
    commit = session.commit
    assert not commit.insert
    assert commit.step is not None
    assert (commit.step.state, commit.step.native, commit.step.usage.output) == (StepState.CANCELLED, None, 5)


def test_the_last_person_is_the_next_root_and_those_before_are_superseded() -> None:
    session, ticket = streaming()
    session.hear(v.PersonSpoke(person(2)), v.NoticeArrived(notice(3)), v.PersonSpoke(person(4)))
    commit = session.hear(v.ModelAborted(ticket, "openai", "gpt", 1.0)).commit
    assert ends(commit) == {
        "m1": (Status.INTERRUPTED, Reason.INTERRUPTED),
        "m2": (Status.INTERRUPTED, Reason.SUPERSEDED),
    }
    assert commit.claim is not None
    assert commit.claim.message_id == "m4"
    assert [(each.message_id, each.reason) for each in commit.claim_adopts] == [("n3", Reason.COLLECTED)]


def test_who_interrupted_and_is_gone_lets_the_turn_infer_again_without_the_old_text() -> None:
    session, ticket = streaming("Once")
    session.hear(v.PersonSpoke(person(2)), v.MessageWithdrawn("m2"), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert not session.commit.insert
    assert not session.commit.ends
    assert session.stand().the(v.BuildPrompt).root_id == "m1"


def test_text_of_a_step_that_was_stored_is_not_kept_by_the_end_that_follows() -> None:
    session, ticket = streaming("Once")
    session.hear(v.PersonSpoke(person(2)), v.MessageWithdrawn("m2"), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    session.stop("m1").stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}
    assert not session.commit.insert


def test_text_of_an_inference_that_is_begun_again_is_of_no_more_use() -> None:
    session, ticket = streaming("Once")
    session.hear(v.PersonSpoke(person(2)), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert session.refuse(RefusalReason.MOVED).has(v.BuildPrompt)
    assert not session.hear(v.PersonSpoke(person(3))).commit.insert


def test_a_notice_interrupts_nobody() -> None:
    session, _ = streaming()
    assert not session.hear(v.NoticeArrived(notice(2))).effects


def test_a_hint_heard_before_is_ignored() -> None:
    session, _ = streaming()
    assert not session.hear(v.PersonSpoke(person(1))).effects


@pytest.mark.parametrize("mode", [BusyMode.QUEUE, BusyMode.COLLECT, BusyMode.STEER])
def test_in_the_other_modes_an_inference_goes_on(mode: BusyMode) -> None:
    session, _ = streaming(mode=mode)
    assert not session.hear(v.PersonSpoke(person(2))).effects


@pytest.mark.parametrize("mode", [each for each in BusyMode if each is not BusyMode.INTERRUPT])
def test_in_the_other_modes_a_prompt_and_a_backoff_go_on(mode: BusyMode) -> None:
    assert not Session(person(1), mode=mode).stand().hear(v.PersonSpoke(person(2))).effects
    assert not thinking(mode=mode).fail().stand().hear(v.PersonSpoke(person(2))).effects


def test_a_mode_that_becomes_interrupt_makes_those_who_wait_interrupting() -> None:
    session, _ = streaming(mode=BusyMode.QUEUE)
    assert session.hear(v.PersonSpoke(person(2)), v.ModeSwitched(BusyMode.INTERRUPT)).has(v.AbortModel)


def test_a_hint_that_comes_again_late_interrupts_no_turn_of_its_own() -> None:
    session, ticket = streaming()
    session.hear(v.PersonSpoke(person(2)), v.ModelAborted(ticket, "openai", "gpt", 1.0)).stand().think()
    assert not session.hear(v.PersonSpoke(person(2))).effects
    assert not session.hear(v.PersonSpoke(person(1))).effects


def test_a_stop_that_is_done_covers_nobody_any_more() -> None:
    session = thinking().stop("m2").stop("m2", done=True)
    assert session.hear(v.PersonSpoke(person(2))).has(v.AbortModel)


def test_a_person_ends_a_backoff_at_once() -> None:
    session = thinking().fail().stand()
    session.hear(v.PersonSpoke(person(2)))
    assert session.commit.claim is not None


def test_text_of_a_failed_try_is_dropped_also_when_its_commit_was_refused() -> None:
    session, ticket = streaming("Once")
    session.hear(v.ModelFailed(ticket, "openai", "gpt", "cut", Remedy.RETRY, None, 0.5, 1.0))
    assert session.refuse(RefusalReason.MOVED).has(v.SetTimer)
    session.hear(v.PersonSpoke(person(2)))
    assert not session.commit.insert


def test_nothing_interrupts_a_commit_on_its_way() -> None:
    session = thinking().say(reply("hi"))
    assert not session.hear(v.PersonSpoke(person(2))).effects


def test_a_person_withdraws_only_calls_not_started_and_each_once() -> None:
    session = thinking().say(reply("", call(), call(), call())).stand("c1", "c2", "c3")
    session.hear(v.ToolStarted("c1"), v.ToolWaiting("c2"), v.PersonSpoke(person(2)))
    assert session.the(v.WithdrawTools).call_ids == ("c2", "c3")
    assert not session.hear(v.PersonSpoke(person(3))).effects
    session.hear(v.ToolSettled("c2", Outcome.INTERRUPTED), v.ToolSettled("c3", Outcome.INTERRUPTED))
    assert not session.effects
    session.hear(v.ToolSettled("c1", Outcome.OK))
    assert session.commit.results is ResultMode.PUBLISH
    session.stand()
    assert session.commit.claim is not None
    assert session.commit.claim.message_id == "m3"


def test_calls_committed_while_somebody_interrupts_do_not_start() -> None:
    session = thinking().say(reply("", call())).hear(v.PersonSpoke(person(2))).stand("c1")
    assert not session.has(v.StartTools)
    assert session.commit.results is ResultMode.SETTLE
    assert session.commit.claim is not None


def test_they_start_after_all_when_the_reason_is_gone() -> None:
    session = thinking().say(reply("", call())).hear(v.PersonSpoke(person(2))).stand("c1")
    assert session.refuse(RefusalReason.MOVED).the(v.StartTools).call_ids == ("c1",)


def test_they_do_not_start_when_the_store_knows_of_somebody_whom_nobody_told_of_yet() -> None:
    session = thinking().say(reply("", call()))
    committed = Committed(
        rows=(),
        open_calls=(OpenCall(call_id="c1", state=CallState.COMMITTED),),
        steps=1,
        spent_s=0.0,
        mode=BusyMode.INTERRUPT,
        stops=(),
        waiting=(person(2),),
    )
    session.hear(v.CommitStands(session.asked(v.SendCommit).ticket, committed))
    assert not session.has(v.StartTools)
    claim = session.commit.claim
    assert claim is not None
    assert (claim.message_id, claim.reason) == ("m2", Reason.INTERRUPTED)
    assert session.hear(v.PersonSpoke(person(2))).effects == ()


def test_news_of_a_call_is_kept_while_its_turn_is_claimed() -> None:
    session = Session(returned=("m1",)).hear(v.ToolSettled("c1", Outcome.OK))
    assert session.effects == ()
    committed = Committed(
        rows=(),
        open_calls=(OpenCall(call_id="c1", state=CallState.STARTED),),
        steps=1,
        spent_s=0.0,
        mode=BusyMode.INTERRUPT,
        stops=(),
    )
    session.hear(v.CommitStands(1, committed))
    assert session.commit.results is ResultMode.PUBLISH


def test_a_resumed_turn_waits_for_what_runs_and_starts_what_has_not() -> None:
    session = Session(returned=("m1", "m2"))
    assert session.commit.claim is not None
    taken = [session.commit.claim, *session.commit.claim_adopts]
    assert [(each.message_id, each.reason) for each in taken] == [("m1", Reason.RESUMED), ("m2", Reason.RESUMED)]
    committed = Committed(
        rows=(),
        open_calls=(
            OpenCall(call_id="c1", state=CallState.STARTED),
            OpenCall(call_id="c2", state=CallState.WAITING),
            OpenCall(call_id="c3", state=CallState.COMMITTED),
        ),
        steps=1,
        spent_s=0.0,
        mode=BusyMode.INTERRUPT,
        stops=(),
    )
    session.hear(v.CommitStands(1, committed))
    assert session.the(v.StartTools).call_ids == ("c2", "c3")


def test_from_idle_interrupt_takes_the_last_and_supersedes_the_rest() -> None:
    commit = Session(person(1), person(2), notice(3)).commit
    assert ends(commit) == {"m1": (Status.INTERRUPTED, Reason.SUPERSEDED)}
    assert commit.claim is not None
    assert (commit.claim.message_id, commit.claim.reason) == ("m2", Reason.FRESH)
    assert [each.message_id for each in commit.claim_adopts] == ["n3"]


def test_queue_takes_one_after_the_other() -> None:
    session = Session(person(1), person(2), mode=BusyMode.QUEUE)
    assert session.commit.claim is not None
    assert (session.commit.claim.message_id, session.commit.claim_adopts) == ("m1", ())
    session.stand().think().say(reply("one")).stand()
    assert session.commit.claim is not None
    assert (session.commit.claim.message_id, session.commit.claim.reason) == ("m2", Reason.QUEUED)


@pytest.mark.parametrize("mode", [BusyMode.COLLECT, BusyMode.STEER])
def test_those_who_waited_are_one_turn_in_order(mode: BusyMode) -> None:
    commit = Session(person(1), notice(2), person(3), mode=mode).commit
    assert commit.claim is not None
    assert commit.claim.message_id == "m1"
    assert [(each.message_id, each.reason) for each in commit.claim_adopts] == [
        ("n2", Reason.COLLECTED),
        ("m3", Reason.COLLECTED),
    ]


@pytest.mark.parametrize("more", [{}, {"returned": ("m3", "m4")}])
def test_who_came_along_ends_with_the_turn(more: dict[str, Any]) -> None:
    session = Session(notice(1, wakes=False), person(2), mode=BusyMode.QUEUE, **more)
    claim = session.commit.claim
    assert claim is not None
    taken = {each.message_id for each in (claim, *session.commit.claim_adopts)}
    session.stand().think().say(reply("hi"))
    assert set(ends(session.commit)) == taken
    assert len(taken) == 2


def test_steer_adopts_between_batches_and_the_turn_ends_as_one() -> None:
    session = working("c1", mode=BusyMode.STEER).hear(v.PersonSpoke(person(2)), v.NoticeArrived(notice(3)))
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert [(each.message_id, each.reason) for each in session.commit.adopt] == [
        ("m2", Reason.STEERED),
        ("n3", Reason.STEERED),
    ]
    session.stand().think().say(reply("all"))
    assert set(ends(session.commit)) == {"m1", "m2", "n3"}


def test_a_step_cut_short_is_stored_once_when_its_turn_adopts() -> None:
    session, ticket = streaming("Once")
    session.hear(v.PersonSpoke(person(2)), v.ModeSwitched(BusyMode.STEER), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert [each.message_id for each in session.commit.adopt] == ["m2"]
    assert session.commit.step is not None
    session.stop("m1").stand()
    assert session.commit.step is None
    assert not session.commit.insert


def test_a_notice_alone_steers_nobody() -> None:
    session = working("c1", mode=BusyMode.STEER).hear(v.NoticeArrived(notice(3)))
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert session.has(v.BuildPrompt)


def test_a_stop_ends_the_turn_and_all_it_covers() -> None:
    session, ticket = streaming("Once")
    session.hear(v.NoticeArrived(notice(2))).stop("m1", "n2")
    assert session.has(v.AbortModel)
    session.hear(v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert ends(session.commit) == {
        "m1": (Status.INTERRUPTED, Reason.STOPPED),
        "n2": (Status.INTERRUPTED, Reason.STOPPED),
    }
    assert session.commit.results is ResultMode.SETTLE
    assert [each.content for each in session.commit.insert] == ["Once"]


def test_a_stop_ends_a_prompt_and_a_backoff_at_once() -> None:
    for session in (Session(person(1)).stand(), thinking().fail().stand()):
        assert ends(session.stop("m1").commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_stop_of_a_waiting_message_leaves_the_turn_alone() -> None:
    session, _ = streaming(mode=BusyMode.QUEUE)
    session.hear(v.PersonSpoke(person(2))).stop("m2")
    assert not session.effects
    session.hear(v.ModelFinished(3, reply("hi"), 1.0)).stand()
    assert ends(session.commit) == {"m2": (Status.INTERRUPTED, Reason.STOPPED)}


def test_who_waits_and_is_stopped_interrupts_nobody_and_is_not_superseded() -> None:
    session, ticket = streaming(mode=BusyMode.QUEUE)
    session.hear(v.PersonSpoke(person(2))).stop("m2").hear(v.ModeSwitched(BusyMode.INTERRUPT))
    assert not session.effects
    session.hear(v.PersonSpoke(person(3)), v.ModelAborted(ticket, "openai", "gpt", 1.0))
    assert session.commit.claim is not None
    assert session.commit.claim.message_id == "m3"
    assert [(each.message_id, each.reason) for each in session.commit.ends] == [
        ("m1", Reason.INTERRUPTED),
        ("m2", Reason.STOPPED),
    ]


def test_a_turn_goes_on_beside_a_stop_of_another_message() -> None:
    session = working("c1", mode=BusyMode.QUEUE).hear(v.PersonSpoke(person(2))).stop("m2")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert session.the(v.BuildPrompt).root_id == "m1"


def test_a_stop_seen_after_the_answer_was_handed_over_ends_only_what_waits() -> None:
    session = thinking().say(reply("hi")).hear(v.PersonSpoke(person(2))).stop("m1", "m2").stand()
    assert ends(session.commit) == {"m2": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_stop_waits_for_the_calls_that_run() -> None:
    session = working("c1").stop("m1")
    assert not session.has(v.EndTools)
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_forced_stop_ends_the_calls_that_run() -> None:
    session = working("c1").stop("m1").stop("m1", forced=True)
    assert session.the(v.EndTools).call_ids == ("c1",)
    assert session.hear(v.ForceRequested()).effects == (v.EndJobs("m1"),)
    session.hear(v.ToolSettled("c1", Outcome.INTERRUPTED)).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.FORCED)}


def test_a_later_stop_that_is_forced_ends_the_calls_too_and_says_so() -> None:
    session = working("c1").stop("m1")
    (first,) = session.stops
    session.stops = (first, Stop(seq=91, session_id="s", root_id="m1", covers=frozenset({"m1"}), forced=True))
    session.hear(v.StopRequested(session.stops[1]))
    assert session.the(v.EndTools).call_ids == ("c1",)
    session.hear(v.ToolSettled("c1", Outcome.INTERRUPTED)).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.FORCED)}


def test_force_ends_the_calls_of_a_stopped_turn_also_one_that_starts_late() -> None:
    session = working("c1").stop("m1").hear(v.ForceRequested())
    assert session.the(v.EndTools).call_ids == ("c1",)
    session = thinking().say(reply("", call())).stand("c1").stop("m1")
    assert session.the(v.WithdrawTools).call_ids == ("c1",)
    session.hear(v.ForceRequested(), v.ToolStarted("c1"))
    assert session.the(v.EndTools).call_ids == ("c1",)


def test_force_has_no_effect_on_a_turn_nobody_stopped_or_that_only_thinks() -> None:
    assert not working("c1").hear(v.ForceRequested()).effects
    assert not thinking().hear(v.ForceRequested()).effects


def test_a_clear_ends_with_its_own_reason_and_shows() -> None:
    session = working("c1").stop("m1", reason=Reason.CLEARED)
    assert session.the(v.Notify).activity is Activity.CLEARING
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.CLEARED)}


def test_a_stored_stop_is_obeyed_before_a_turn_is_resumed() -> None:
    stop = Stop(seq=9, session_id="s", root_id="m1", covers=frozenset({"m1"}))
    session = Session(returned=("m1",), stops=(stop,)).stand("c1")
    assert not session.has(v.StartTools)
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.STOPPED)}


def test_a_returned_turn_is_resumed_after_what_a_stop_covers_has_ended() -> None:
    stop = Stop(seq=9, session_id="s", root_id="m2", covers=frozenset({"m2"}))
    session = Session(person(2), returned=("m1",), stops=(stop,))
    assert ends(session.commit) == {"m2": (Status.INTERRUPTED, Reason.STOPPED)}
    claim = session.stand().commit.claim
    assert claim is not None
    assert (claim.message_id, claim.reason) == ("m1", Reason.RESUMED)


def test_who_comes_after_what_a_stop_covers_was_not_queued_behind_a_turn() -> None:
    stop = Stop(seq=9, session_id="s", root_id="m1", covers=frozenset({"m1"}))
    claim = Session(person(1), person(2), stops=(stop,)).stand().commit.claim
    assert claim is not None
    assert (claim.message_id, claim.reason) == ("m2", Reason.FRESH)


def test_force_ends_the_jobs_of_a_stopped_turn_also_while_its_end_is_stored() -> None:
    session = working("c1", mode=BusyMode.QUEUE).stop("m1").hear(v.ToolSettled("c1", Outcome.BACKGROUND))
    assert session.commit.results is ResultMode.PUBLISH
    assert session.hear(v.ForceRequested()).effects == (v.EndJobs("m1"),)


def test_force_while_a_turn_is_claimed_ends_nothing() -> None:
    assert not Session(person(1)).stop("m2").hear(v.ForceRequested()).effects


def test_force_of_another_message_ends_no_job_of_the_turn() -> None:
    session = working("c1", mode=BusyMode.QUEUE).hear(v.PersonSpoke(person(2))).stop("m2")
    assert not session.hear(v.ForceRequested()).effects
