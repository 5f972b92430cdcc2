"""Titles: a few words on one line, whatever they are made of."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kesoku_actors.protocol.graphemes import is_boundary
from kesoku_actors.protocol.titles import LONGEST, first_words, tidied

_MARKUP = st.text(st.sampled_from("ab *_`#>[]()!<>@:-1.\n\t\u200d\u200b\u202e🦊é\u0301🇩🇪"), max_size=200)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello there", "Hello there"),
        ("  two\n lines\t here ", "two lines here"),
        ("", ""),
        ("# Plan\n* buy **milk**", "Plan buy milk"),
        ("<@123456789> what is `ls -la`?", "what is ls -la?"),
        ("see [the docs](https://example.org/a) please", "see the docs please"),
        ("> quoted", "quoted"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("[file: attachments/a.png]", ""),
        ("snake_case_name stays", "snake_case_name stays"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("right\u202eto\u202cleft \u200bunseen", "righttoleft unseen"),
        ("word " * 40, "word word word word word word word word word…"),
        ("x" * 100, "x" * (LONGEST - 1) + "…"),
        ("👩\u200d👩\u200d👧" * 60, "👩\u200d👩\u200d👧" * (LONGEST - 1) + "…"),
        ("東" * 48, "東" * 48),
    ],
)
def test_a_title_is_the_first_words_without_markup(text: str, title: str) -> None:
    assert first_words(text) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"A walk in the park."', "A walk in the park"),
        ("Title: **Bread baking**\n\nThat is a good title.", "Bread baking"),
        ("\n\n", ""),
        ("Is it safe?", "Is it safe?"),
    ],
)
def test_a_proposed_title_is_its_first_line_without_ornaments(text: str, title: str) -> None:
    assert tidied(text) == title


@example("0\r\u200d")
@given(st.one_of(st.text(max_size=300), _MARKUP))
def test_a_title_is_short_and_has_nothing_unseen(text: str) -> None:
    for title in (first_words(text), tidied(text)):
        assert sum(is_boundary(title, index) for index in range(1, len(title) + 1)) <= LONGEST
        assert title == " ".join(title.split())
        assert {unicodedata.category(sign) for sign in title if sign != "\u200d"}.isdisjoint({"Cc", "Cf", "Cs"})
        title.encode()
