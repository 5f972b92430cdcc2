"""The turn machine: its table, answers, calls, empty replies and failures, and what surfaces are told."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.port import CallRequest, Finish, Remedy, Reply
from kesoku_actors.protocol import (
    Activity,
    BusyMode,
    Draft,
    Outcome,
    Reason,
    Role,
    Status,
    StepState,
    Type,
    Usage,
)
from kesoku_actors.session import turn_state
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TRANSITIONS, TurnLimits
from kesoku_actors.session.turn_state import with_piece
from kesoku_actors.store.port import (
    ResultMode,
)
from tests.session.turns import Session, call, ends, person, reply, rows, thinking, working


def test_every_event_has_an_entry_in_every_phase() -> None:
    phases, events = get_args(turn_state.Phase), get_args(v.Event)
    assert set(TRANSITIONS) == {(phase, event) for phase in phases for event in events}


def test_an_event_whose_ticket_is_not_outstanding_changes_nothing() -> None:
    session = thinking()
    before = session.state
    session.hear(v.PromptBuilt(2), v.TimerFired(99), v.ModelFinished(99, reply("late"), 1.0))
    assert session.state is before
    assert not session.effects
    for other in (working("c1"), thinking().say(reply("hi")).stand()):
        assert not other.hear(v.TimerFired(99)).effects


def test_the_same_events_give_the_same_effects() -> None:
    assert thinking().say(reply("hi")).effects == thinking().say(reply("hi")).effects


def test_an_answer_its_turns_end_and_its_step_are_one_commit() -> None:
    session = thinking().say(reply("Hello.", thought="short", usage=Usage(input=9, output=2), native={"id": 1}))
    commit = session.commit
    assert rows(commit) == [
        (Type.THOUGHT, Status.RESPONDED, "short"),
        (Type.TEXT, Status.PENDING, "Hello."),
    ]
    assert ends(commit) == {"m1": (Status.PROCESSED, None)}
    assert commit.step is not None
    assert commit.step.state is StepState.FINISHED
    assert (commit.step.native, commit.step.usage) == ({"id": 1}, Usage(input=9, output=2))
    session.stand()
    assert session.the(v.Finish).clean


def test_every_ticket_is_new() -> None:
    session, tickets = Session(person(1)), list[int]()
    for act in (
        session.stand,
        session.think,
        session.fail,
        session.stand,
        lambda: session.hear(v.TimerFired(session.the(v.SetTimer).ticket)),
        session.think,
        lambda: session.say(reply("hi")),
    ):
        act()
        tickets.extend(ticket for each in session.effects if (ticket := getattr(each, "ticket", None)) is not None)
    assert tickets == sorted(set(tickets))
    assert len(tickets) == 7


def test_a_commits_id_follows_from_worker_and_ticket() -> None:
    session = Session(person(1))
    assert session.commit.id == f"7.3.{session.the(v.SendCommit).ticket}"


def test_an_inference_is_known_by_the_id_its_step_is_stored_under() -> None:
    session = thinking()
    inference = session.the(v.CallModel).inference_id
    session.say(reply("hi"))
    assert session.commit.step is not None
    assert session.commit.step.inference_id == inference != session.commit.id


def test_an_answer_cut_for_length_says_so() -> None:
    answer = thinking().say(reply("and then", finish=Finish.LENGTH)).commit.insert[-1]
    assert (answer.status, answer.metadata) == (Status.PENDING, {"truncated": True})


def test_a_refusal_in_words_is_an_answer() -> None:
    commit = thinking().say(reply("I would rather not.", finish=Finish.REFUSED)).commit
    assert commit.insert[-1].metadata == {"refused": True}
    assert ends(commit) == {"m1": (Status.PROCESSED, None)}


def test_a_refusal_without_words_is_told_at_once() -> None:
    commit = thinking().say(reply(finish=Finish.REFUSED, finish_reason="safety")).commit
    assert ends(commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert "refused" in commit.insert[0].content
    assert "safety" in commit.insert[0].content


def test_text_thought_and_calls_of_a_step_are_one_commit_in_order() -> None:
    commit = thinking().say(reply("Let me look.", call(path="a b", n=1), thought="hm")).commit
    assert rows(commit) == [
        (Type.THOUGHT, Status.RESPONDED, "hm"),
        (Type.TEXT, Status.RESPONDED, "Let me look."),
        (Type.TOOL_CALL, Status.RESPONDED, 'look(path="a b", n=1)'),
    ]
    assert not commit.ends


def test_a_call_carries_what_its_result_and_its_model_need() -> None:
    asked = CallRequest(name="look", arguments={"at": "x"}, id="c1", signature="sig", invalid="not JSON: x")
    (made,) = thinking().say(reply("", asked)).commit.insert
    assert made.metadata == {
        "tool_name": "look",
        "tool_arguments": {"at": "x"},
        "tool_call_id": "c1",
        "thought_signature": "sig",
        "invalid": "not JSON: x",
    }


def test_a_call_is_readable_in_any_script_and_says_no_more_than_the_model_did() -> None:
    (made,) = thinking().say(reply("", call(at="はな", id="c1"))).commit.insert
    assert made.content == 'look(at="はな")'
    assert made.metadata == {"tool_name": "look", "tool_arguments": {"at": "はな"}, "tool_call_id": "c1"}


def stored_step(session: Session) -> tuple[object, ...]:
    made = session.commit.step
    assert made is not None
    return made.state, made.provider, made.model, made.duration_s, made.finish_reason, made.error


def test_a_step_says_who_was_asked_how_long_it_took_and_why_it_ended() -> None:
    answered = thinking().say(reply("hi"))
    assert stored_step(answered) == (StepState.FINISHED, "openai", "gpt", 2.0, "stop", None)
    in_words = thinking().say(reply("hi", finish_reason="end_turn"))
    assert stored_step(in_words) == (StepState.FINISHED, "openai", "gpt", 2.0, "end_turn", None)
    empty = thinking().say(reply())
    assert stored_step(empty) == (StepState.FAILED, "openai", "gpt", 2.0, "stop", "empty reply (stop)")
    ignored = thinking().hear(v.PersonSpoke(person(2))).say(reply("hi", finish_reason="end_turn"))
    assert stored_step(ignored) == (StepState.CANCELLED, "openai", "gpt", 2.0, "end_turn", None)
    failed = thinking().fail()
    assert stored_step(failed) == (StepState.FAILED, "openai", "gpt", 2.0, None, "503 overloaded")
    aborted = thinking().hear(v.PersonSpoke(person(2)))
    aborted.hear(v.ModelAborted(aborted.asked(v.CallModel).ticket, "openai", "gpt", 0.5))
    assert stored_step(aborted) == (StepState.CANCELLED, "openai", "gpt", 0.5, None, None)


def test_blocks_equal_in_id_name_and_arguments_are_one_call() -> None:
    asked = (call(id="1", a=1, b=2), call(id="1", b=2, a=1), call(id="1", a=True, b=2), call("see", id="1", a=1, b=2))
    made = thinking().say(reply("", *asked)).commit.insert
    assert [each.content for each in made] == ["look(a=1, b=2)", "look(a=true, b=2)", "see(a=1, b=2)"]
    assert len(thinking().say(reply("", *asked[:2])).commit.insert) == 1


def test_calls_without_an_id_are_never_one() -> None:
    assert len(thinking().say(reply("", call(a=1), call(a=1))).commit.insert) == 2


def test_calls_beyond_the_cap_are_kept_and_do_not_run() -> None:
    session = thinking(limits=TurnLimits(max_calls=2)).say(reply("", *(call(n=n) for n in range(4))))
    told = [each.metadata.get("invalid") for each in session.commit.insert]
    assert told[:2] == [None, None]
    assert all(each and "more than 2" in each for each in told[2:])


def test_committed_calls_start_in_order_an_unreadable_one_too() -> None:
    session = thinking().say(reply("", call(), CallRequest(name="x", arguments={}, invalid="no"))).stand("c1", "c2")
    assert session.the(v.StartTools) == v.StartTools("m1", ("c1", "c2"))


def test_results_are_published_when_every_call_is_settled() -> None:
    session = working("c1", "c2").hear(v.ToolSettled("c2", Outcome.OK))
    assert not session.effects
    session.hear(v.ToolSettled("c1", Outcome.ERROR))
    assert session.commit.results is ResultMode.PUBLISH
    session.stand()
    assert session.the(v.BuildPrompt).root_id == "m1"


def test_settled_is_the_end_of_a_call() -> None:
    session = working("c1", "c2").hear(v.ToolSettled("c1", Outcome.OK), v.ToolStarted("c1"), v.ToolWaiting("c1"))
    session.hear(v.ToolSettled("c2", Outcome.OK))
    assert session.commit.results is ResultMode.PUBLISH


def test_news_of_a_call_that_is_not_of_this_turn_is_no_news() -> None:
    session = working("c1").hear(v.ToolStarted("other"))
    assert not session.effects
    assert session.hear(v.ToolSettled("c1", Outcome.OK)).commit.results is ResultMode.PUBLISH


@pytest.mark.parametrize("nothing", [reply(), reply(" \n"), reply(thought="only thought")])
def test_an_empty_reply_is_asked_again_once_with_a_nudge(nothing: Reply) -> None:
    session = thinking().say(nothing)
    assert session.commit.step is not None
    assert (session.commit.step.state, session.commit.step.error) == (StepState.FAILED, "empty reply (stop)")
    assert not session.commit.insert
    session.stand()
    assert session.the(v.BuildPrompt).nudge
    session.think()
    assert session.the(v.CallModel).attempt == 2
    session.say(nothing)
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert session.commit.insert[0].metadata == {"notice": "provider"}


def test_a_step_that_says_something_makes_the_nudge_new_again() -> None:
    session = thinking().say(reply()).stand().think().say(reply("", call())).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert not session.the(v.BuildPrompt).nudge
    session.think().say(reply()).stand()
    assert session.the(v.BuildPrompt).nudge


def test_a_failure_is_tried_again_with_full_jitter_below_a_doubling_bound() -> None:
    session, delays = thinking(), []
    for _ in range(5):
        session.fail(jitter=0.5).stand()
        delays.append(session.the(v.SetTimer).delay_s)
        session.hear(v.TimerFired(session.the(v.SetTimer).ticket)).think()
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0]
    session.fail()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert session.commit.insert[0].content == "503 overloaded (tried 6 times)"


def test_a_step_that_says_something_makes_the_tries_new_again() -> None:
    session = thinking().fail().stand()
    session.hear(v.TimerFired(session.the(v.SetTimer).ticket)).think().say(reply("", call())).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand().think().fail(jitter=0.5).stand()
    assert session.the(v.SetTimer).delay_s == 0.5


def test_a_backoff_is_bounded_and_never_sooner_than_the_server_asks() -> None:
    limits = TurnLimits(max_tries=99, max_steps=99)
    session = thinking(limits=limits)
    for _ in range(12):
        session.fail(jitter=0.999).stand()
        assert session.the(v.SetTimer).delay_s < 60
        session.hear(v.TimerFired(session.the(v.SetTimer).ticket)).think()
    assert thinking().fail(after_s=60.0, jitter=0.0).stand().the(v.SetTimer).delay_s == 60.0


def test_a_server_that_asks_for_more_patience_than_ours_ends_the_turn() -> None:
    commit = thinking().fail(after_s=61.0).commit
    assert ends(commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert "61 s" in commit.insert[0].content


@pytest.mark.parametrize("remedy", [Remedy.FAIL_OVER, Remedy.TELL])
def test_what_another_try_cannot_help_is_told_at_once(remedy: Remedy) -> None:
    commit = thinking().fail(remedy).commit
    assert ends(commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert [(each.role, each.status, each.content) for each in commit.insert] == [
        (Role.SYSTEM, Status.PENDING, "503 overloaded")
    ]
    assert commit.step is not None
    assert (commit.step.state, commit.step.error) == (StepState.FAILED, "503 overloaded")


def test_a_failure_without_a_word_is_told_all_the_same() -> None:
    session = thinking()
    ticket = session.asked(v.CallModel).ticket
    session.hear(v.ModelFailed(ticket, "openai", "gpt", " ", Remedy.TELL, None, 0.5, 1.0))
    assert [each.content for each in session.commit.insert] == ["The model failed."]


def test_a_failed_step_is_stored_with_what_it_used() -> None:
    session, used = thinking(), Usage(input=9, output=2)
    ticket = session.the(v.CallModel).ticket
    session.hear(v.ModelFailed(ticket, "openai", "gpt", "cut", Remedy.RETRY, None, 0.5, 1.0, usage=used))
    assert session.commit.step is not None
    assert session.commit.step.usage == used


def test_text_streamed_before_the_last_failure_is_kept() -> None:
    session = thinking()
    ticket = session.the(v.CallModel).ticket
    session.hear(v.ModelDelta(ticket, "I thi"), v.ModelDelta(ticket, "nk"))
    session.hear(v.ModelFailed(ticket, "openai", "gpt", "cut", Remedy.TELL, None, 0.5, 1.0))
    assert session.commit.insert[0].content == "I think"
    assert session.commit.insert[0].metadata == {"partial": True}


def test_surfaces_hear_each_change_of_what_the_session_does() -> None:
    session, told = Session(person(1)), list[tuple[Activity, str | None]]()

    def note() -> None:
        told.extend((each.activity, each.root_id) for each in session.effects if isinstance(each, v.Notify))

    note()
    for act in (
        session.stand,
        session.think,
        lambda: session.say(reply("", call())),
        lambda: session.stand("c1"),
        lambda: session.hear(v.ToolSettled("c1", Outcome.OK)),
        session.stand,
        session.think,
        lambda: session.stop("m1"),
        lambda: session.hear(v.ModelAborted(7, "openai", "gpt", 1.0)),
        session.stand,
    ):
        act()
        note()
    assert told == [
        (Activity.THINKING, "m1"),
        (Activity.TOOLS, "m1"),
        (Activity.THINKING, "m1"),
        (Activity.STOPPING, "m1"),
        (Activity.IDLE, None),
    ]


def test_surfaces_hear_of_a_turn_while_it_is_still_being_claimed() -> None:
    assert Session(person(1)).the(v.Notify) == v.Notify(Activity.THINKING, "m1")


def test_every_notice_to_people_is_a_row_that_leaves() -> None:
    drafts: list[Draft] = [
        *thinking().fail(Remedy.TELL).commit.insert,
        *Session(returned=("m1",), stale=True).stand().commit.insert,
    ]
    assert {(each.role, each.sender, each.status) for each in drafts} == {(Role.SYSTEM, "System", Status.PENDING)}


def test_ids_forgotten_never_let_a_turn_interrupt_itself() -> None:
    session = Session(person(1), limits=TurnLimits(max_known=0)).stand().think()
    assert not session.hear(v.PersonSpoke(person(1))).effects
    session = working("c1", limits=TurnLimits(max_known=0)).hear(v.ToolSettled("c1", Outcome.OK)).stand().think()
    assert not session.hear(v.PersonSpoke(person(1))).effects


def test_a_long_life_remembers_a_bounded_number_of_ids() -> None:
    session = Session(person(0), mode=BusyMode.QUEUE, limits=TurnLimits(max_known=3)).stand()
    for number in range(1, 20):
        session.think().hear(v.PersonSpoke(person(number))).say(reply("hi")).stand().stand()
    assert len(session.state.session.known) <= 4


def test_a_state_is_a_value() -> None:
    state = thinking().state
    assert evolve(state) == state


@given(st.lists(st.text(max_size=4), max_size=60))
def test_streamed_text_is_whole_however_it_was_cut(texts: list[str]) -> None:
    pieces: tuple[str, ...] = ()
    for text in texts:
        pieces = with_piece(pieces, text)
    assert "".join(pieces) == "".join(texts)
    assert all(len(one) > len(next_one) for one, next_one in pairwise(pieces))
