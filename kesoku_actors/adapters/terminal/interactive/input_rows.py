"""The input line as rows of the screen: wrapped, with the cursor in it, around the cursor when it is long. Pure.

What a person typed or pasted is shown harmless and character for character, so that the cursor is where it edits.
Only the lines near the cursor are looked at: a text of many megabytes costs no more than a screenful.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, chop_cells

from kesoku_actors.adapters.terminal.harmless import harmless
from kesoku_actors.values import frozen

PROMPT: Final = "› "
_INDENT: Final = "  "
_HINT: Final = "Ask something; /help shows what else"


@frozen(kw_only=True)
class Typed:
    """What stands in the input line, as the editor says it."""

    text: str = ""
    cursor: int = 0
    """Characters before the cursor."""
    choices: tuple[str, ...] = ()
    """Completions on offer, as shown."""
    chosen: int | None = None


@frozen(kw_only=True)
class InputRows:
    """Rows to draw, and the cursor's place in them."""

    rows: tuple[str, ...]
    row: int
    column: int


def input_rows(typed: Typed, columns: int, height: int) -> InputRows:
    """Return at most `height` rows of fewer than `columns` columns that hold the cursor."""
    width = max(2, columns - 1 - len(PROMPT))
    if not typed.text:
        return InputRows(rows=(f"{PROMPT}\x1b[2m{chop_cells(_HINT, width)[0]}\x1b[0m",), row=0, column=len(PROMPT))
    begin = typed.text.rfind("\n", 0, typed.cursor) + 1
    before = _last_lines(typed.text[:begin], height)
    after = typed.text[begin:]
    own, line_end, below = after.partition("\n")
    pieces, row, column = _place(own, typed.cursor - begin, width, height)
    above = [piece for line in before for piece in _wrapped(line[-width * height :], width)]
    under = [piece for line in below.split("\n", height)[:height] for piece in _wrapped(line[: width * height], width)]
    rows = [*above, *pieces, *(under if line_end else ())]
    row += len(above)
    top = min(max(0, row - height + 1), max(0, len(rows) - height))
    is_begin = top == 0 and not _is_cut(typed.text[:begin], before)
    shown = rows[top : top + height]
    return InputRows(
        rows=tuple(f"{PROMPT if is_begin and index == 0 else _INDENT}{piece}" for index, piece in enumerate(shown)),
        row=row - top,
        column=len(PROMPT) + column,
    )


def menu_rows(typed: Typed, columns: int, height: int) -> tuple[str, ...]:
    """Return the completions around the chosen one, a row each, at most `height`."""
    at = typed.chosen or 0
    top = min(max(0, at - height + 1), max(0, len(typed.choices) - height))
    shown: Sequence[str] = typed.choices[top : top + height]
    rows = []
    for index, choice in enumerate(shown, top):
        text = chop_cells(f"{_INDENT}{harmless(choice)}", max(2, columns - 1))[0]
        rows.append(f"\x1b[{7 if index == typed.chosen else 2}m{text}\x1b[0m")
    return tuple(rows)


def _place(line: str, cursor: int, width: int, height: int) -> tuple[list[str], int, int]:
    """Return the pieces of the cursor's own line near the cursor, and its place in them."""
    span = width * height
    start = 0 if len(line) <= 4 * span else max(0, cursor - 2 * span) // span * span
    pieces = _wrapped(line[start : start + 4 * span], width)
    rest, row = cursor - start, 0
    while row < len(pieces) - 1 and rest >= len(pieces[row]):
        rest -= len(pieces[row])
        row += 1
    column = cell_len(pieces[row][:rest])
    if column >= width:  # behind the last character of a full row
        pieces.insert(row + 1, "")
        return pieces, row + 1, 0
    return pieces, row, column


def _wrapped(line: str, width: int) -> list[str]:
    # A tab is as wide as it likes; as one visible sign it keeps the cursor where it edits.
    shown = harmless(line).replace("\t", "␉")
    if shown.isascii():
        return [shown[at : at + width] for at in range(0, len(shown), width)] or [""]
    return chop_cells(shown, width) or [""]


def _last_lines(text: str, count: int) -> list[str]:
    """Return up to `count` last lines of a text that ends with a line end; none of an empty one."""
    return text[:-1].rsplit("\n", count)[-count:] if text else []


def _is_cut(text: str, lines: Sequence[str]) -> bool:
    return sum(len(line) + 1 for line in lines) < len(text)
