"""What a turn may use of tokens and money: reserved before an inference, settled with its step (B4)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.prices import dollars
from kesoku_actors.protocol import Outcome, Reason, Status, Usage
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TurnLimits
from kesoku_actors.store.port import RefusalReason
from tests.session.turns import Session, call, ends, person, reply


def begun(**limits: Any) -> Session:
    return Session(person(1), limits=TurnLimits(**limits)).stand().think()


def work(session: Session, usage: Usage, number: int = 1) -> Session:
    """Let it take a step with one call, to its end."""
    session.say(reply("I look.", call(), usage=usage)).stand(f"c{number}")
    return session.hear(v.ToolSettled(f"c{number}", Outcome.OK)).stand()


def test_a_turn_ends_before_a_step_that_its_tokens_would_not_pay_for() -> None:
    session = work(begun(max_turn_tokens=1000), Usage(input=500, output=100, thinking=90))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    (told,) = session.commit.insert
    assert told.content == (
        "I stopped here: this turn used 600 of its 1,000 tokens, too little is left for another step of about 600. "
        "Say so if I should go on."
    )


def test_a_turn_goes_on_while_another_such_step_is_within_its_bound() -> None:
    session = work(begun(max_turn_tokens=1000), Usage(input=300, output=200))
    assert session.has(v.BuildPrompt)
    session.think()
    work(session, Usage(input=300, output=200), 2)
    assert "used 1,000 of its 1,000 tokens." in session.commit.insert[0].content


def test_an_answer_is_no_step_too_many_whatever_it_used() -> None:
    session = begun(max_turn_tokens=10, max_turn_cost=0.01).say(reply("hi", usage=Usage(input=999, cost=5.0)))
    assert ends(session.commit) == {"m1": (Status.PROCESSED, None)}


def test_money_bounds_a_turn_in_the_same_way() -> None:
    session = work(begun(max_turn_cost=0.5), Usage(input=1, cost=0.3))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    assert "cost $0.30 of its $0.50, too little is left for another step of about $0.30" in (
        session.commit.insert[0].content
    )


def test_money_may_be_spent_to_the_last_cent() -> None:
    session = work(begun(max_turn_cost=0.5), Usage(cost=0.25))
    assert session.has(v.BuildPrompt)
    session.think()
    work(session, Usage(cost=0.25), 2)
    assert "cost $0.50 of its $0.50." in session.commit.insert[0].content


def test_a_step_of_a_known_price_and_unknown_tokens_counts() -> None:
    session = work(begun(max_turn_cost=0.5), Usage(cost=0.3))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_a_step_of_an_unknown_price_costs_nothing() -> None:
    assert work(begun(max_turn_cost=0.5), Usage(input=999)).has(v.BuildPrompt)


def test_the_text_so_far_is_kept_when_the_budget_ends_a_turn() -> None:
    session = begun(max_turn_tokens=1000)
    session.say(reply("I look.", call(), usage=Usage(input=999)))
    assert "I look." in [each.content for each in session.commit.insert]
    session.stand("c1").hear(v.ToolSettled("c1", Outcome.OK)).stand()
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_what_a_failed_inference_used_counts_too() -> None:
    session = begun(max_turn_tokens=1000)
    ticket = session.asked(v.CallModel).ticket
    failed = v.ModelFailed(ticket, "p", "m", "cut", v.Remedy.RETRY, None, 0.5, 1.0, usage=Usage(input=700))
    assert ends(session.hear(failed).commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_a_step_kept_by_a_refusal_is_counted_once() -> None:
    session = begun(max_turn_tokens=1000).say(reply("hi", usage=Usage(input=400)))
    session.refuse(RefusalReason.MOVED).think()
    work(session, Usage(input=200, output=0))
    assert session.has(v.BuildPrompt), "400 + 200 + 200 are within it"
    session.think()
    work(session, Usage(input=200), 2)
    assert session.has(v.BuildPrompt), "and so are 200 more"


def test_a_resumed_turn_goes_on_counting_from_what_the_store_knows() -> None:
    session = Session(returned=("m1",), limits=TurnLimits(max_turn_tokens=1000))
    session.tokens = 1001
    assert ends(session.stand().commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    session = Session(returned=("m1",), limits=TurnLimits(max_turn_cost=0.5))
    session.cost = 0.51
    assert ends(session.stand().commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_the_next_turn_begins_with_nothing_used() -> None:
    session = begun(max_turn_tokens=1000).hear(v.PersonSpoke(person(2)))
    session.hear(v.ModelFinished(session.asked(v.CallModel).ticket, reply("hm", usage=Usage(input=900)), 1.0)).stand()
    session.think()
    work(session, Usage(input=400))
    assert session.has(v.BuildPrompt)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=8), st.integers(400, 2000))
def test_no_turn_of_like_steps_uses_more_than_its_bound(sizes: list[int], most: int) -> None:
    session, used = begun(max_turn_tokens=most), 0
    for number, size in enumerate(sorted(sizes, reverse=True)):
        work(session, Usage(input=size), number)
        used += size
        if not session.has(v.BuildPrompt):
            break
        session.think()
    assert used <= most


@given(st.floats(0, 1e6))
def test_an_amount_shows_as_many_places_as_it_needs(amount: float) -> None:
    text = dollars(amount)
    assert abs(float(text[1:]) - amount) < 1e-6
    assert len(text.partition(".")[2]) >= 2


def test_an_inference_that_the_day_does_not_pay_for_ends_the_turn_and_is_no_step() -> None:
    session = Session(person(1), models=("one (a)", "two (b)")).stand().think()
    ticket = session.asked(v.CallModel).ticket
    session.hear(v.ModelFailed(ticket, "a", "one", "the day is paid out", v.Remedy.TELL, None, 0.5, 0.0, kind="budget"))
    assert ends(session.commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    assert session.commit.step is None
    assert [each.content for each in session.commit.insert] == ["the day is paid out"]
