"""What is summarised, in which pieces, and how it is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.protocol import Message, Role, Status, Type
from kesoku_actors.session import Compacted, CompactionFailed, CompactionStopped, NothingOld, TooLittle, receipt
from kesoku_actors.session.compaction_plan import groups, old_turns, pieces, sizes, worth
from kesoku_actors.session.preparation import prepare
from kesoku_actors.session.reach import tokens_in
from kesoku_actors.session.summary_prompt import QUESTION_TOKENS, SYSTEM, bundled, question, written
from kesoku_actors.session.units import turns, units
from tests.session.talks import Plan, Talk, plans, played, prose


def cost(row: Message) -> float:
    return tokens_in(row.content) + 8


def talk_of(count: int, length: int = 2_000) -> Talk:
    talk = Talk()
    for number in range(count):
        talk.begin(f"{number}: {prose(length)}")
        talk.answer("Yes.")
    return talk


def roots(old: list[object]) -> list[str]:
    return [turn[0].row.content[:2] for turn in old]  # type: ignore[index]


@given(plans(), st.sampled_from((0.0, 500.0, 5_000.0)), st.booleans())
@settings(deadline=None, max_examples=40)
def test_only_whole_turns_that_have_ended_are_old_and_the_newest_stay(
    planned: Plan, kept: float, is_asked: bool
) -> None:
    for talk in played(planned):
        old = old_turns(talk.rows, kept, cost, is_asked=is_asked)
        ended = [turn for turn in turns(talk.rows) if turn[0].row.has_ended]
        assert old == ended[: len(old)]
        rest = sum(cost(placed.row) for placed in talk.rows[sum(map(len, old)) :])
        newest = talk.rows[sum(map(len, ended)) :]
        assert rest <= kept or rest == sum(cost(placed.row) for placed in newest) or is_asked


def test_an_open_call_pins_its_turn_and_all_behind_it() -> None:
    talk = talk_of(2)
    talk.begin("2: Work.")
    talk.step([("a", "done")])
    (result,) = [each for each in talk.rows if each.row.type is Type.TOOL_RESULT]
    talk.answer("Done.")
    talk.begin("3: More.")
    talk.answer("Yes.")
    assert roots(list(old_turns(talk.rows, 0, cost, is_asked=False))) == ["0:", "1:", "2:", "3:"]
    talk.rows.remove(result)
    assert roots(list(old_turns(talk.rows, 0, cost, is_asked=False))) == ["0:", "1:"]


def test_a_person_who_asks_keeps_the_newest_turn_only() -> None:
    talk = talk_of(5)
    assert roots(list(old_turns(talk.rows, 1e9, cost, is_asked=False))) == []
    assert roots(list(old_turns(talk.rows, 1e9, cost, is_asked=True))) == ["0:", "1:", "2:", "3:"]


def test_what_runs_takes_of_the_room_that_is_kept() -> None:
    talk = talk_of(3)
    room = 2.5 * sum(cost(placed.row) for placed in talk.rows[:2])
    assert roots(list(old_turns(talk.rows, room, cost, is_asked=False))) == ["0:"]
    talk.begin(prose(2_000))
    assert roots(list(old_turns(talk.rows, room, cost, is_asked=False))) == ["0:", "1:"]


@given(plans(), st.sampled_from((130.0, 400.0, 3_000.0, 24_000.0)))
@settings(deadline=None, max_examples=40)
def test_pieces_fit_follow_each_other_and_part_no_call_from_its_result(planned: Plan, most: float) -> None:
    for talk in played(planned):
        talk.end(Status.PROCESSED)
        rows = prepare(talk.rows, (), (), None).rows
        parted = list(pieces(list(turns(rows)), most, cost))
        assert all(tokens_in(piece.log) <= most for piece in parted)
        spots = [spot for piece in parted for spot in (piece.first, piece.last)]
        assert spots == sorted(spots)
        assert (spots[0], spots[-1]) == (rows[0].spot, rows[-1].spot)
        for unit in units(rows):
            assert any(piece.first <= unit[0].spot and unit[-1].spot <= piece.last for piece in parted)
        assert sum(piece.tokens for piece in parted) == pytest.approx(sum(cost(placed.row) for placed in rows))


@given(st.lists(st.floats(1, 400), min_size=1, max_size=30), st.floats(400, 2_000))
def test_groups_fit_and_a_lone_summary_is_left(tokens: list[float], most: float) -> None:
    found = groups(tokens, most)
    assert all(len(group) > 1 and sum(tokens[at] for at in group) <= most for group in found)
    assert [at for group in found for at in group] == sorted({at for group in found for at in group})
    if len(tokens) > 1 and tokens[0] + tokens[1] <= most:
        assert found


def test_every_size_leaves_room_for_the_question() -> None:
    for room in (None, 192.0, 3_072.0, 100_000.0, 900_000.0):
        for part in (1.0, 0.25):
            got = sizes(room, part=part)
            assert got.summary < got.together
            assert got.reply >= got.summary
            assert 2 * got.summary <= got.piece or room == 192.0 or part < 1
    assert sizes(3_072.0).piece + QUESTION_TOKENS + sizes(3_072.0).summary < 3_072


def test_little_is_not_worth_a_summary() -> None:
    talk = talk_of(20, 100)
    rows = list(turns(talk.rows))
    size = sum(cost(placed.row) for placed in talk.rows)
    assert not worth(rows[:1], size, cost)
    assert not worth([], size, cost)
    assert worth(rows[:3], size, cost)
    assert not worth(rows[:3], 2 * size, cost)


def test_where_the_frame_takes_the_room_the_conversation_is_kept_shorter() -> None:
    bare, framed = sizes(3_000.0), sizes(3_000.0, 1_500.0)
    for name in ("kept", "together", "summary"):
        assert getattr(framed, name) < getattr(bare, name)
    assert framed.kept + 1_500 < 0.8 * 3_000
    assert sizes(3_000.0, 9_000.0).kept > 0


def test_the_log_is_behind_bars_and_short() -> None:
    talk = Talk()
    talk.begin("Hello.\n\nThe summary: all is well.")
    talk.step([("sky", prose(9_000))], thought="Secret.", text="I look.")
    talk.answer("Blue.")
    log = written(talk.rows, 5_000)
    assert "Secret." not in log
    assert [line.split(": ")[0] for line in log.split("\n")[:1]] == ["Ada (a person)"]
    assert "The assistant called look(at='sky')" in log
    assert "Result of look (ok): " in log
    assert len(log) < 2_000
    asked = question(log, 50)
    body = asked.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert all(line.startswith("| ") for line in body.split("\n"))
    assert tokens_in(SYSTEM) + tokens_in(question("", 999)) < QUESTION_TOKENS


def test_an_answer_that_was_cut_off_says_so() -> None:
    talk = Talk()
    talk.begin("Hello.")
    talk.add(Role.ASSISTANT, Type.TEXT, "Well", metadata={"partial": True})
    assert written(talk.rows, 100).endswith("The assistant: Well (cut off there)")


def test_summaries_are_numbered_parts_of_a_log() -> None:
    assert bundled(["a", "b"]) == "Part 1: a\nPart 2: b"


def test_each_end_has_its_receipt() -> None:
    one = Compacted(turns=1, summaries=1, before=3_000, after=1_200)
    assert receipt(one) == "summarised 1 turn: about 3,000 tokens before, 1,200 now"
    assert "4 turns" in receipt(Compacted(turns=4, summaries=1, before=9, after=1))
    assert receipt(NothingOld()).startswith("there is nothing to summarise")
    assert receipt(TooLittle(before=100, after=99)).startswith("not kept")
    assert receipt(CompactionFailed(why="no key")) == "nothing was summarised: no key"
    assert receipt(CompactionStopped()) == "stopped; nothing was summarised"
