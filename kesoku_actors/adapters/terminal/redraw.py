"""Replacing the last lines of a terminal by others, without flicker. Pure.

The cursor rests at the start of the line below the last one shown. Only from the first line that differs is
anything erased and written, and the whole change is one synchronized update, which terminals that do not know it
ignore. A line shown earlier may take several rows by now if the window became narrower; more columns than the
window has are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"


def redraw(shown: Sequence[str], lines: Sequence[str], columns: int, cells: Callable[[str], int]) -> str:
    """Return what turns the lines `shown` into `lines`; nothing when they are the same.

    Both may hold style sequences and nothing else that is not printed; `cells` counts the columns of a line.
    """
    pairs = enumerate(zip(shown, lines, strict=False))
    same = next((index for index, (old, new) in pairs if old != new), min(len(shown), len(lines)))
    if same == len(shown) == len(lines):
        return ""
    rows = sum(max(1, -(-cells(line) // columns)) for line in shown[same:])
    up = f"\x1b[{rows}A" if rows else ""
    erase = f"\r{up}\x1b[J" if rows else "\r"
    return f"{_BEGIN}{erase}{''.join(f'{line}{chr(10)}' for line in lines[same:])}{_END}"
