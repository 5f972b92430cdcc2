"""Painting the lower end of a terminal: rows that change in place, and rows printed above them for good. Pure.

The *region* is a few whole rows with the cursor somewhere in them; everything above it is the terminal's own. Rules:

* a row that is the same before and after, at the same distance from its end of the region, is not written again: where
  rows come in or go, room is made with the terminal's own insert and delete, so what stands below them stays;
* nothing is addressed absolutely, so it does not matter where on the screen the region stands;
* all of a change is one synchronized update, in which the cursor is hidden and rows never wrap: a character that is
  wider than we think costs the end of its row and nothing else;
* after a change of the window's size the whole region is painted again. Terminals wrap rows that have become too long,
  and so we count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size

from kesoku_actors.adapters.terminal.markdown import plain
from kesoku_actors.values import frozen

_BEGIN: Final = "\x1b[?2026h\x1b[?25l\x1b[?7l"
_END: Final = "\x1b[?7h\x1b[?25h\x1b[?2026l"


@frozen(kw_only=True)
class Region:
    """What stands at the lower end of the terminal: no rows before the first painting, then one or more."""

    rows: tuple[str, ...] = ()
    """Each shorter than the window is wide; style sequences are the only controls."""
    row: int = 0
    column: int = 0
    """Where the cursor is."""
    window: tuple[int, int] = (80, 24)
    """Columns and lines of the window it was painted for."""


def repaint(old: Region, new: Region, printed: Sequence[str]) -> str:
    """Return what turns `old` into the rows `printed` with `new` below them; nothing when nothing changes.

    `new` has fewer rows than its window has lines.
    """
    if old.window != new.window:
        return _paint_all(old, new, printed)
    if not printed and old.rows == new.rows:
        return _move(old.row, new.row, new.column) if (old.row, old.column) != (new.row, new.column) else ""
    room = max(1, new.window[1] - 1 - len(new.rows))
    painted: list[str] = []
    rows, at = old.rows, old.row
    rest = list(printed)
    while rest or rows != new.rows:
        batch, rest = rest[:room], rest[room:]
        wanted = (*batch, *new.rows)
        change, at = _change(rows, wanted, at)
        painted.append(change)
        rows, at = new.rows, at - len(batch)
    return f"{_BEGIN}{''.join(painted)}{_move(at, new.row, new.column)}{_END}"


def erase(old: Region, window: tuple[int, int]) -> str:
    """Return what removes the region and leaves the cursor where it began."""
    return f"{_up(_rows_above(old, window))}\r\x1b[J"


def _paint_all(old: Region, new: Region, printed: Sequence[str]) -> str:
    # Lines drawn for a window of another width may be too long now; those wrap.
    above = "".join(["\x1b[?7h", *(f"{line}\r\n" for line in printed), "\x1b[?7l"]) if printed else ""
    last = max(0, len(new.rows) - 1)
    region = "\r\n".join(new.rows)
    return f"{_BEGIN}{erase(old, new.window)}{above}{region}{_move(last, new.row, new.column)}{_END}"


def _rows_above(region: Region, window: tuple[int, int]) -> int:
    """Return how many rows of the screen stand above the cursor, now that the window has this size."""
    columns, lines = window
    wrapped = sum(_height(plain(row), columns) for row in region.rows[: region.row])
    if region.rows and region.column >= columns:
        wrapped += _height(set_cell_size(plain(region.rows[region.row]), region.column + 1), columns) - 1
    return min(wrapped, lines - 1)


def _height(text: str, columns: int) -> int:
    """Return how many rows a terminal makes of a text that has become too long."""
    return 1 if cell_len(text) <= columns else len(chop_cells(text, columns))


def _change(old: Sequence[str], new: Sequence[str], at: int) -> tuple[str, int]:
    """Turn the rows `old`, with the cursor in row `at`, into `new`; return how, and the row the cursor is in then."""
    head = _alike(old, new)
    tail = min(_alike(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    kept = len(old) - tail
    more = len(new) - len(old)
    out = []
    if more > 0:
        # Room below the region first, by scrolling if need be; then what has to stay is pushed down into it.
        last = max(0, len(old) - 1)
        out.append(_move(at, last) + "\n" * (more if old else more - 1))
        at = last + (more if old else more - 1)
        if tail:
            out.append(_move(at, kept) + f"\x1b[{more}L")
            at = kept
    elif more < 0:
        # The rows that are too many are the last ones before what stays; the cursor row need not be among them.
        begin = kept + more
        out.append(_move(at, begin) + f"\x1b[{-more}M")
        at = begin
        if at == len(new) and at > 0:
            out.append("\x1b[A")
            at -= 1
    for index in range(head, len(new) - tail):
        before = old[index] if index < kept else ""
        if new[index] == before:
            continue
        is_shorter = cell_len(plain(new[index])) < cell_len(plain(before))
        out.append(f"{_move(at, index)}{new[index]}" + ("\x1b[K" if is_shorter else ""))
        at = index
    return "".join(out), at


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many rows are the same from the begin on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


def _move(at: int, row: int, column: int = 0) -> str:
    """Return what brings the cursor from row `at` to this row and column."""
    vertical = _up(at - row) if row <= at else f"\x1b[{row - at}B"
    return f"{vertical}\r" + (f"\x1b[{column}C" if column else "")


def _up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows else ""
