"""Rows that change in place and rows printed above them, read back through a terminal."""

from __future__ import annotations

from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len, chop_cells

from kesoku_actors.adapters.terminal.interactive.region import Region, repaint
from tests.adapters.interactive.vt import Vt

COLUMNS, LINES = 12, 7
ROW = st.text("ab漢 ", max_size=5).map(str.rstrip)
ROWS = st.lists(ROW, min_size=1, max_size=LINES - 1).map(tuple)
PRINTED = st.lists(ROW, max_size=2 * LINES)
PLACE = st.floats(0, 1, exclude_max=True)


@st.composite
def regions(draw: st.DrawFn, window: tuple[int, int] = (COLUMNS, LINES)) -> Region:
    rows = draw(ROWS)
    row = int(draw(PLACE) * len(rows))
    return Region(rows=rows, row=row, column=draw(st.integers(0, cell_len(rows[row]))), window=window)


@given(st.lists(st.tuples(PRINTED, regions()), max_size=8), st.integers(0, LINES - 1))
@settings(max_examples=300)
def test_what_was_printed_stays_and_the_region_stands_below_it(
    frames: list[tuple[list[str], Region]], begin: int
) -> None:
    vt, shown, printed = Vt(COLUMNS, LINES), Region(window=(COLUMNS, LINES)), ["x"] * begin
    vt.feed("x\r\n" * begin)
    for prints, region in frames:
        vt.feed(repaint(shown, region, prints))
        printed += prints
        shown = region
        expected = [*printed, *region.rows]
        assert [*vt.above, *vt.screen][: len(expected)] == expected
        assert not any([*vt.above, *vt.screen][len(expected) :])
        assert vt.at + len(vt.above) == len(printed) + region.row
        assert vt.column == region.column
        assert vt.in_vain == []
    assert vt.modes["7"]
    assert vt.modes["25"]


@given(regions())
def test_nothing_is_written_when_nothing_changed(region: Region) -> None:
    assert repaint(region, region, ()) == ""


@given(regions(), regions())
def test_a_cursor_that_moves_writes_no_row(region: Region, other: Region) -> None:
    moved = evolve(region, row=min(other.row, len(region.rows) - 1), column=other.column)
    vt = Vt(COLUMNS, LINES)
    vt.feed(repaint(Region(), region, ()))
    change = repaint(region, moved, ())
    vt.feed(change)
    assert (vt.at, vt.column) == (moved.row, moved.column)
    assert not any(character in change for character in "ab漢")


@given(
    st.lists(ROW, max_size=3),
    regions(),
    st.integers(4, COLUMNS),
    st.data(),
)
def test_after_a_resize_the_region_stands_there_once(
    printed: list[str], region: Region, columns: int, data: st.DataObject
) -> None:
    """The window gets narrower, the terminal wraps, the region is painted for the new width.

    Terminals differ in where a cursor goes that stood behind the last character of a row that is full now, or behind
    a wide character that does not fit at the end of its row any more.
    """
    assume(region.column == 0 or region.column < cell_len(region.rows[region.row]))
    assume(all(cell_len(row) == columns for row in chop_cells(region.rows[region.row], columns)[:-1]))
    vt = Vt(COLUMNS, 40)
    vt.feed(repaint(Region(window=(COLUMNS, 40)), evolve(region, window=(COLUMNS, 40)), printed))
    vt.resize(columns, 40)
    fitting = tuple("a" * min(columns - 1, len(row)) for row in data.draw(ROWS))
    after = Region(rows=fitting, row=len(fitting) - 1, column=0, window=(columns, 40))
    vt.feed(repaint(evolve(region, window=(COLUMNS, 40)), after, ()))
    wrapped = sum(len(chop_cells(row, columns)) or 1 for row in printed)
    assert vt.screen[wrapped : wrapped + len(fitting)] == list(fitting)
    assert not any(vt.screen[wrapped + len(fitting) :])
