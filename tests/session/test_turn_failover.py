"""The turn machine with more than one model: which is asked, what people are told, when a turn is given up (P2)."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.llm.port import Remedy
from kesoku_actors.protocol import Activity, BusyMode, Outcome, Reason, Status
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TurnLimits
from tests.session.turns import Session, call, ends, person, reply

MODELS = ("one (a)", "two (b)", "three (c)")


def asking(**more: Any) -> Session:
    return Session(person(1), **{"models": MODELS} | more).stand().think()


def lose(session: Session, why: str, remedy: Remedy = Remedy.FAIL_OVER, kind: str = "") -> Session:
    ticket = session.asked(v.CallModel).ticket
    return session.hear(v.ModelFailed(ticket, "a", "one", why, remedy, None, 0.5, 1.0, kind=kind))


@pytest.mark.parametrize("remedy", [Remedy.FAIL_OVER, Remedy.TELL])
def test_what_another_try_cannot_help_is_told_once_and_the_next_model_is_asked(remedy: Remedy) -> None:
    session = lose(asking(), "a: the key was refused", remedy)
    assert not session.commit.ends
    assert [each.content for each in session.commit.insert] == ["a: the key was refused\ntwo (b) goes on instead."]
    assert session.commit.insert[0].status is Status.PENDING
    assert session.commit.step is not None
    assert session.commit.step.error == "a: the key was refused"
    assert session.stand().the(v.BuildPrompt).model == 1
    asked = session.think().the(v.CallModel)
    assert (asked.model, asked.attempt, asked.is_last) == (1, 2, False)


def test_what_was_refused_is_asked_once_more_in_words_and_then_of_the_next_model_as_it_was() -> None:
    session = lose(asking(), "a: a new rule", Remedy.REPAIR)
    assert session.commit.insert == ()
    again = session.stand().the(v.BuildPrompt)
    assert (again.model, again.plain) == (0, True)
    lose(session.think(), "a: a new rule", Remedy.REPAIR)
    assert [each.content for each in session.commit.insert] == ["a: a new rule\ntwo (b) goes on instead."]
    following = session.stand().the(v.BuildPrompt)
    assert (following.model, following.plain) == (1, False)


def test_a_turn_that_asks_in_words_does_so_to_its_end() -> None:
    session = lose(asking(), "a: a new rule", Remedy.REPAIR).stand().think().say(reply("", call())).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert session.the(v.BuildPrompt).plain


def test_a_passing_failure_is_retried_before_the_next_model_is_asked() -> None:
    session = asking(limits=TurnLimits(max_tries=2)).fail()
    assert not session.commit.insert
    session.stand().hear(v.TimerFired(session.asked(v.SetTimer).ticket))
    assert session.asked(v.BuildPrompt).model == 0
    session.think().fail()
    assert "(tried 2 times)" in session.commit.insert[0].content
    assert session.stand().the(v.BuildPrompt).model == 1


def test_a_server_that_wants_more_patience_than_ours_is_left_for_the_next() -> None:
    session = asking().fail(after_s=61.0)
    assert not session.commit.ends
    assert session.stand().the(v.BuildPrompt).model == 1


def test_each_model_gets_its_own_tries() -> None:
    session = asking(limits=TurnLimits(max_tries=2)).fail().stand()
    session.hear(v.TimerFired(session.asked(v.SetTimer).ticket)).think().fail().stand().think().fail()
    assert not session.commit.insert
    assert session.stand().has(v.SetTimer)


def test_what_a_lost_model_had_streamed_is_not_kept_by_the_end_that_follows() -> None:
    session = asking()
    session.hear(v.ModelDelta(session.asked(v.CallModel).ticket, "Once"))
    lose(session, "cut").hear(v.PersonSpoke(person(2))).stand()
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.INTERRUPTED)}
    assert not session.commit.insert


def test_an_empty_reply_of_a_lost_model_is_not_held_against_the_next() -> None:
    session = asking()
    session.say(reply()).stand().think().fail(Remedy.TELL).stand()
    assert not session.the(v.BuildPrompt).nudge
    session.think().say(reply()).stand()
    assert session.the(v.BuildPrompt).nudge


def test_when_all_are_lost_the_turn_ends_naming_each() -> None:
    session = asking()
    for why in ("a: no key", "b: no credit"):
        lose(session, why).stand().think()
    assert session.asked(v.CallModel).is_last
    lose(session, "c: HTTP 500")
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert session.commit.insert[-1].content == "No model could answer.\na: no key\nb: no credit\nc: HTTP 500"


def test_what_is_refused_for_its_content_is_not_taken_to_another_model() -> None:
    session = lose(asking(), "a: the prompt was blocked", Remedy.TELL, "filtered")
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    assert session.commit.insert[0].content == "a: the prompt was blocked"


def test_a_turn_stays_with_the_model_it_failed_over_to() -> None:
    session = lose(asking(), "a: no key").stand().think().say(reply("", call())).stand("c1")
    session.hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert session.the(v.BuildPrompt).model == 1


def test_the_next_turn_begins_with_the_first_model_again() -> None:
    session = lose(asking(mode=BusyMode.QUEUE), "a: no key").stand().think()
    session.hear(v.PersonSpoke(person(2))).say(reply("hi")).stand().stand()
    assert session.the(v.BuildPrompt).model == 0


def test_a_person_who_interrupts_meanwhile_begins_with_the_first_model() -> None:
    session = lose(asking(), "a: no key").hear(v.PersonSpoke(person(2))).stand()
    assert session.commit.claim is not None
    assert session.stand().the(v.BuildPrompt).model == 0


def test_a_message_adopted_at_that_boundary_keeps_nobody_from_being_told() -> None:
    session = asking(mode=BusyMode.STEER)
    session.hear(v.PersonSpoke(person(2)))
    lose(session, "a: no key")
    assert [each.message_id for each in session.commit.adopt] == ["m2"]
    assert [each.content for each in session.stand().commit.insert] == ["a: no key\ntwo (b) goes on instead."]
    assert session.commit.step is None
    assert session.stand().the(v.BuildPrompt).model == 1


def test_failing_over_is_bounded_by_the_steps_of_the_turn() -> None:
    session = lose(asking(limits=TurnLimits(max_steps=1)), "a: no key")
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_surfaces_hear_why_and_how_long_a_failed_model_is_waited_for() -> None:
    session = asking(models=()).fail(after_s=7.0).stand()
    assert session.the(v.Notify) == v.Notify(Activity.RETRYING, "m1", detail="503 overloaded", for_s=7.0)
    session.hear(v.TimerFired(session.asked(v.SetTimer).ticket))
    assert session.the(v.Notify) == v.Notify(Activity.THINKING, "m1")
