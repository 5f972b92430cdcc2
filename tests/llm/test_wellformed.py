"""What a model said can always be stored and sent on."""

from __future__ import annotations

import datetime
import json
from itertools import pairwise

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.llm.port import CallRequest, Reply
from kesoku_actors.llm.wellformed import DEEPEST, TextJoiner, read_object, well_formed, whole_reply, whole_text

ANY_TEXT = st.text(st.characters(), max_size=30) | st.text(st.sampled_from("a🎸\ud83c\udfb8"), max_size=12)


@given(ANY_TEXT)
def test_every_text_becomes_one_that_utf8_carries(text: str) -> None:
    whole_text(text).encode("utf-8")


@given(ANY_TEXT)
def test_a_sound_text_is_left_as_it_is(text: str) -> None:
    sound = text.encode("utf-8", "ignore").decode("utf-8")
    assert whole_text(sound) == sound


@given(ANY_TEXT, st.lists(st.integers(0, 30), max_size=5))
def test_pieces_join_to_the_same_text_wherever_it_was_cut(text: str, cuts: list[int]) -> None:
    joiner, edges = TextJoiner(), [0, *sorted(cuts), len(text)]
    shown = [joiner.add(text[start:end]) for start, end in pairwise(edges)]
    assert joiner.text() == whole_text(text)
    assert joiner.text().startswith("".join(shown))


def test_a_character_cut_between_two_pieces_is_shown_whole() -> None:
    joiner = TextJoiner()
    assert [joiner.add("a\ud83c"), joiner.add("\udfb8b")] == ["a", "🎸b"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "null",
        '{"a":',
        '{"a": NaN}',
        '{"a": [-Infinity]}',
        '{"a": 1e999}',
        '{"a":' * 1000 + "1" + "}" * 1000,
    ],
)
def test_what_is_no_sound_object_is_none(text: str) -> None:
    assert read_object(text) is None


def test_an_object_is_read_with_its_texts_made_whole() -> None:
    assert read_object('{"a": "\\ud83c", "\\ud83c\\udfb8": [1.5, true, null]}') == {
        "a": "\N{REPLACEMENT CHARACTER}",
        "🎸": [1.5, True, None],
    }


def test_nesting_is_bounded() -> None:
    fine = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert well_formed(fine) == fine
    with pytest.raises(ValueError, match="nested deeper"):
        well_formed([fine, [[]], [fine]])


HALF = "a\ud800b"


def test_a_reply_of_any_provider_can_be_stored_whole() -> None:
    call = CallRequest(name=HALF, arguments={HALF: [HALF]}, id=HALF, signature=HALF, invalid=HALF)
    reply = Reply(
        provider="p", model="m", text=HALF, thought=HALF, calls=(call,), native={"content": HALF}, finish_reason=HALF
    )
    repr(whole := whole_reply(reply)).encode()
    assert whole.text == whole.calls[0].arguments["a\ufffdb"][0] == "a\ufffdb"
    assert whole_reply(whole) == whole


@pytest.mark.parametrize("value", [float("nan"), datetime.date(1979, 5, 27), {1: "a"}, b"a", {"a"}, [object()]])
def test_a_call_with_arguments_that_cannot_be_kept_is_invalid_and_the_native_content_is_left_out(
    value: object,
) -> None:
    call = CallRequest(name="shell", arguments={"n": value})
    reply = Reply(provider="p", model="m", calls=(call, evolve(call, arguments={"n": 1})), native={"n": value})
    bad, good = whole_reply(reply).calls
    assert (bad.arguments, good.arguments) == ({}, {"n": 1})
    assert good.invalid is None
    assert bad.invalid
    assert whole_reply(reply).native is None
