"""The input line on the screen: every key where it edits, at any size."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kesoku_actors.adapters.terminal.interactive.input_rows import PROMPT, Typed, input_rows, menu_rows
from kesoku_actors.adapters.terminal.markdown import plain

CONTROLS = {"Cc", "Zl", "Zp"}

TEXT = st.text(st.sampled_from("ab漢é\n\t\x1b ") | st.characters(exclude_categories=["Cs"]), max_size=120)


def one_line_without_controls(row: str) -> bool:
    return not any(unicodedata.category(character) in CONTROLS for character in row)


@st.composite
def typed(draw: st.DrawFn) -> Typed:
    text = draw(TEXT)
    return Typed(text=text, cursor=draw(st.integers(0, len(text))))


@given(typed(), st.integers(10, 60), st.integers(1, 6))
def test_the_cursor_is_on_the_screen_and_no_row_is_too_wide(what: Typed, columns: int, height: int) -> None:
    drawn = input_rows(what, columns, height)
    assert 1 <= len(drawn.rows) <= height
    assert 0 <= drawn.row < len(drawn.rows)
    assert 0 <= drawn.column < columns
    for row in drawn.rows:
        assert cell_len(plain(row)) < columns
        assert one_line_without_controls(plain(row))


@given(st.text("abc \n", min_size=1, max_size=60), st.data())
def test_a_text_that_fits_stands_there_whole_with_the_cursor_in_it(text: str, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(0, len(text)))
    drawn = input_rows(Typed(text=text, cursor=cursor), 80, 80)
    assert [row[len(PROMPT) :] for row in drawn.rows] == text.split("\n")
    assert drawn.rows[0].startswith(PROMPT)
    before = text[:cursor].split("\n")
    assert (drawn.row, drawn.column) == (len(before) - 1, len(PROMPT) + len(before[-1]))


def test_a_very_long_line_shows_what_is_around_the_cursor() -> None:
    text = "".join(f"{number:09} " for number in range(20_000))
    for cursor in (0, 5, 100_000, len(text)):
        drawn = input_rows(Typed(text=text, cursor=cursor), 42, 5)
        row = drawn.rows[drawn.row][len(PROMPT) :]
        at = drawn.column - len(PROMPT)
        assert row[:at] == text[cursor - at : cursor]
        assert row[at:] == text[cursor : cursor + len(row) - at]


def test_the_chosen_completion_is_always_among_those_shown() -> None:
    choices = tuple(f"choice {number}" for number in range(20))
    for chosen in range(20):
        rows = menu_rows(Typed(choices=choices, chosen=chosen), 30, 4)
        assert len(rows) == 4
        assert sum("\x1b[7m" in row and f"choice {chosen}\x1b" in row for row in rows) == 1
    assert menu_rows(Typed(), 30, 4) == ()
    assert menu_rows(Typed(choices=choices), 30, 0) == ()
