"""What is shown of a message that was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.search.excerpt import AFTER, BEFORE, excerpt


def marked(content: str, *parts: str) -> list[str]:
    found = excerpt(content, parts)
    return [found.text[begin:end] for begin, end in found.marks]


@pytest.mark.parametrize(
    ("content", "parts", "marks"),
    [
        ("The red fox", ["fox"], ["fox"]),
        ("The Red FOX", ["red", "fox"], ["Red", "FOX"]),
        ("Un café noir", ["cafe"], ["café"]),
        ("Un cafe\u0301 noir", ["café"], ["cafe\u0301"]),
        ("東京都に行く", ["京都"], ["京都"]),
        ("go 🦊 go", ["🦊"], ["🦊"]),
        ("Straße", ["strasse"], ["Straße"]),
        ("the ﬁnal word", ["final"], ["ﬁnal"]),
        ("cone of one", ["one"], ["one"]),
        ("red  \n fox", ["red fox"], ["red fox"]),
        ("nothing here", ["absent"], []),
    ],
)
def test_what_was_searched_for_is_marked_as_it_was_written(content: str, parts: list[str], marks: list[str]) -> None:
    assert marked(content, *parts) == marks


def test_a_long_text_is_shown_around_the_first_place() -> None:
    found = excerpt("before " * 500 + "needle " + "after " * 500, ["needle"])
    assert found.text.startswith("…before")
    assert "needle after" in found.text
    assert found.text.endswith("after…")
    assert len(found.text) <= BEFORE + AFTER + 2


def test_a_text_found_in_another_way_is_shown_from_its_beginning() -> None:
    assert excerpt("well-known things", ["well known"]).text == "well-known things"


@given(st.text(max_size=300), st.lists(st.text(max_size=8), max_size=4))
def test_it_is_one_line_and_its_marks_lie_in_it_in_order(content: str, parts: list[str]) -> None:
    found = excerpt(content, parts)
    assert "\n" not in found.text
    ends = [place for mark in found.marks for place in mark]
    assert ends == sorted(ends)
    assert all(0 <= place <= len(found.text) for place in ends)
    assert all(begin < end for begin, end in found.marks)
