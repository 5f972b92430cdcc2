"""Whatever was said, what is left of it fits, keeps the rules of a request, and stays the same for the next one."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.openai_body import make_messages
from kesoku_actors.llm.openai_rules import broken
from kesoku_actors.llm.port import Request
from kesoku_actors.protocol import Message, Role, Type
from kesoku_actors.session.ladder import HEAD, LEFT_OUT, NOTHING_CUT, STEPS_LEFT_OUT, TAIL, Cut, Fitted, fit
from kesoku_actors.session.preparation import prepare
from kesoku_actors.session.reach import tokens_in
from tests.session.talks import Plan, Talk, plans, played, prose

LEAST = 120.0
"""Tokens that a remark and the beginning of a turn may cost at most."""


@lru_cache(maxsize=10_000)
def counted(text: str) -> float:
    return tokens_in(text)


def cost(row: Message) -> float:
    return counted(row.content) + 8


def size(fitted: Fitted) -> float:
    return sum(cost(placed.row) for placed in fitted.rows)


def fitted(talk: Talk, room: float | None, cut: Cut = NOTHING_CUT) -> Fitted:
    assert talk.root is not None
    return fit(prepare(talk.rows, talk.steps, (), talk.root.id), room, cost, talk.root.id, cut)


def said(copy: Fitted) -> list[str]:
    return [placed.row.content for placed in copy.rows]


def messages(copy: Fitted) -> list[dict[str, object]]:
    rows = tuple(placed.row for placed in copy.rows)
    request = Request(inference_id="i", session_id="s", system="You help.", history=rows, steps=copy.steps)
    return make_messages(request, provider="openai", model="gpt")


@given(plans(), st.sampled_from((LEAST, 300.0, 1_000.0, 4_000.0, 20_000.0)))
@settings(deadline=None, max_examples=30)
def test_the_ladder_always_ends_in_a_request_that_fits_and_keeps_the_rules(planned: Plan, room: float) -> None:
    cut = NOTHING_CUT
    for talk in played(planned):
        copy = fitted(talk, room, cut)
        cut = copy.cut
        assert size(copy) <= room
        assert broken(messages(copy)) == []
        calls = {each.row.id for each in copy.rows if each.row.type is Type.TOOL_CALL}
        assert calls == {each.row.parent_id for each in copy.rows if each.row.type is Type.TOOL_RESULT}


@given(plans(), st.sampled_from((1_000.0, 4_000.0, 20_000.0)))
@settings(deadline=None, max_examples=30)
def test_cuts_only_ever_go_further_and_a_request_that_cut_nothing_more_continues_the_one_before(
    planned: Plan, room: float
) -> None:
    cut, before, root = NOTHING_CUT, list[str](), ""
    for talk in played(planned):
        copy = fitted(talk, room, cut)
        for name in ("shortened", "turns", "steps"):
            assert getattr(copy.cut, name) >= getattr(cut, name)
        if copy.cut == cut and not copy.done and talk.root is not None and talk.root.id == root:
            assert said(copy)[: len(before)] == before
        clipped = copy.cut == cut and bool(copy.done)
        cut, before, root = copy.cut, [] if clipped else said(copy), talk.root.id if talk.root else ""


@given(plans(), st.sampled_from((1_000.0, 4_000.0)))
@settings(deadline=None, max_examples=30)
def test_what_the_last_person_said_is_read_whole_unless_it_alone_is_too_long(planned: Plan, room: float) -> None:
    cut = NOTHING_CUT
    for talk in played(planned):
        copy = fitted(talk, room, cut)
        cut = copy.cut
        people = [each.row for each in talk.rows if talk.root is not None and each.row.root_id == talk.root.id]
        texts = [row.content for row in people if row.role is Role.USER]
        if sum(tokens_in(text) + 8 for text in texts) < room / 4:
            assert set(texts) <= set(said(copy))


def talk_of(turns: int, length: int = 2_000) -> Talk:
    talk = Talk()
    for number in range(turns):
        talk.begin(f"Question {number}")
        talk.answer(prose(length))
    return talk


def test_without_a_bound_nothing_is_cut() -> None:
    talk = talk_of(5)
    talk.begin("And now?")
    copy = fitted(talk, None)
    assert (copy.cut, copy.done) == (NOTHING_CUT, ())
    assert len(copy.rows) == 11


def test_long_results_are_shortened_before_anything_is_left_out_and_the_newest_batch_is_not() -> None:
    talk = Talk()
    talk.begin("Look.")
    talk.step([("a", prose(2_000))])
    talk.step([("b", prose(2_000)), ("c", prose(2_000))])
    whole = size(fitted(talk, None))
    copy = fitted(talk, whole - 10)
    results = [text for text in said(copy) if len(text) > 100]
    assert [len(text) == 2_000 for text in results] == [False, True, True]
    assert results[0].startswith(prose(2_000)[:HEAD])
    assert results[0].endswith(prose(2_000)[-TAIL:])
    assert "the whole is in output/" in results[0]


def test_the_oldest_turns_go_first_and_a_remark_says_so() -> None:
    talk = talk_of(8)
    talk.begin("And now?")
    whole = size(fitted(talk, None))
    copy = fitted(talk, whole * 0.6)
    texts = said(copy)
    assert texts[0] == LEFT_OUT
    assert texts[-1] == "And now?"
    assert texts[-3:-1] == ["Question 7", prose(2_000)]
    assert "Question 0" not in texts


def test_steps_of_the_running_turn_go_after_that_but_never_what_people_said() -> None:
    talk = talk_of(2)
    talk.begin("Do all of it.")
    for number in range(9):
        talk.step([(str(number), prose(400))])
        if number == 4:
            talk.adopt("And that too.")
    texts = said(fitted(talk, 900.0))
    assert texts[:3] == [LEFT_OUT, "Do all of it.", STEPS_LEFT_OUT]
    assert "And that too." in texts
    assert texts[-1] == prose(400)


def test_a_turn_whose_first_steps_were_left_out_goes_whole_when_it_has_ended() -> None:
    talk = Talk()
    talk.begin(prose(1_900))
    talk.step([("a", "first")])
    talk.step([(prose(1_500), "second")])
    cut = fitted(talk, 1_000.0).cut
    assert cut.steps > NOTHING_CUT.steps
    talk.answer(prose(500))
    talk.begin("And now?")
    copy = fitted(talk, 1_000.0, cut)
    assert said(copy) == [LEFT_OUT, "And now?"]
    assert broken(messages(copy)) == []


def test_of_a_single_message_that_is_too_long_head_and_tail_are_read() -> None:
    talk = Talk()
    talk.begin(prose(40_000))
    (text,) = said(fitted(talk, 1_000.0))
    assert text.startswith(prose(500))
    assert text.endswith(prose(40_000)[-500:])
    assert "characters left out ...]" in text


def test_the_arguments_of_a_call_are_clipped_like_any_text() -> None:
    talk = Talk()
    talk.begin("Write it.")
    talk.step([(prose(40_000), "written")], thought="Hm.")
    copy = fitted(talk, 1_000.0)
    (call,) = [each.row for each in copy.rows if each.row.type is Type.TOOL_CALL]
    assert len(call.metadata["tool_arguments"]["at"]) < 4_000
    assert copy.steps[0].native is None


def test_the_next_requests_begin_alike_because_a_cut_goes_further_than_it_must() -> None:
    talk, cut, cuts = talk_of(10), NOTHING_CUT, set[Cut]()
    for number in range(12):
        talk.begin(f"More {number}")
        copy = fitted(talk, 5_000.0, cut)
        cut = copy.cut
        cuts.add(cut)
        talk.answer(prose(600))
    assert len(cuts) <= 3


def test_where_there_is_no_room_at_all_the_least_is_sent_and_the_server_says_so() -> None:
    talk = talk_of(3)
    talk.begin(prose(5_000))
    talk.step([("a", prose(5_000))])
    copy = fitted(talk, 0.0)
    remark, text = said(copy)
    assert remark == LEFT_OUT
    assert text.startswith(prose(20))
    assert len(text) < 120
    assert broken(messages(copy)) == []
