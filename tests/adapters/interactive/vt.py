"""A terminal of a fixed size that remembers what stands where, what scrolled away, and what was written in vain.

It knows the sequences we use and fails on any other. A row is *written in vain* when it holds the same after an update
as before it: the same row of the terminal wherever it was moved, or the same place when nothing moved.
"""

from __future__ import annotations

import re

from attrs import define, field
from rich.cells import split_graphemes

TOKEN = re.compile(
    r"\x1b\[(?P<private>\??)(?P<number>[0-9;]*)(?P<command>[A-Za-z])|(?P<text>[^\x1b\r\n]+|.)", re.DOTALL
)
BEGUN = re.compile(r"\x1b(\[\??[0-9;]*)?\Z")
"""A sequence whose end has not come yet."""
MODES = {"7", "25", "2004", "2026"}


@define(eq=False)
class Row:
    """One row; it keeps its identity when it is moved."""

    cells: list[tuple[str, str]] = field(factory=list)
    """Each character with its style; one that is two columns wide is followed by an empty one."""

    @property
    def text(self) -> str:
        return "".join(character for character, _ in self.cells).rstrip()

    @property
    def look(self) -> list[tuple[str, str]]:
        """What a person sees: styles too, but no blanks at the end."""
        end = next((at for at in range(len(self.cells), 0, -1) if self.cells[at - 1][0] != " "), 0)
        return self.cells[:end]

    def put(self, column: int, character: str, width: int, style: str) -> None:
        self.cells += [(" ", "")] * (column + width - len(self.cells))
        self.cells[column : column + width] = [(character, style), *[("", style)] * (width - 1)]


@define(eq=False)
class Vt:
    """Feed it what a program writes."""

    columns: int = 80
    lines: int = 24
    rows: list[Row] = field(init=False)
    above: list[str] = field(factory=list, init=False)
    """What scrolled away at the top."""
    at: int = field(default=0, init=False)
    column: int = field(default=0, init=False)
    modes: dict[str, bool] = field(factory=lambda: {"7": True, "25": True, "2004": False}, init=False)
    styles: set[int] = field(factory=set, init=False)
    """Every number of a style sequence so far."""
    in_vain: list[str] = field(factory=list, init=False)
    updates: int = field(default=0, init=False)
    _rest: str = field(default="", init=False)
    _style: str = field(default="", init=False)
    _before: list[tuple[Row, list[tuple[str, str]]]] | None = field(default=None, init=False)
    _written: set[Row] = field(factory=set, init=False)
    _has_moved: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.rows = [Row() for _ in range(self.lines)]

    @property
    def screen(self) -> list[str]:
        return [row.text for row in self.rows]

    @property
    def everything(self) -> list[str]:
        """What scrolled away and what is on the screen, down to the last row that is not empty."""
        found = [*self.above, *self.screen]
        while found and not found[-1]:
            found.pop()
        return found

    def feed(self, text: str) -> None:
        text = self._rest + text
        begun = BEGUN.search(text)
        text, self._rest = (text[: begun.start()], begun[0]) if begun else (text, "")
        for token in TOKEN.finditer(text):
            if token["command"]:
                self._command(token["command"], token["number"], bool(token["private"]))
            else:
                self._print(token["text"])

    def resize(self, columns: int, lines: int) -> None:
        """Wrap the rows that have become too long, as most terminals do; the cursor stays at its character."""
        rows, at, column = [], 0, 0
        for index, row in enumerate(self.rows):
            pieces, ends = _wrapped(row.cells, columns)
            if index == self.at:
                piece = next((number for number, end in enumerate(ends) if self.column < end), len(ends) - 1)
                at, column = len(rows) + piece, self.column - ([0, *ends][piece])
            rows += pieces
        while len(rows) > lines and not rows[-1].text and len(rows) - 1 > at:
            rows.pop()
        gone = max(0, len(rows) - lines)
        self.above += [row.text for row in rows[:gone]]
        self.rows = rows[gone:] + [Row() for _ in range(lines - len(rows) + gone)]
        self.at, self.column, self.columns, self.lines = max(0, at - gone), column, columns, lines

    def _command(self, command: str, numbers: str, is_private: bool) -> None:
        number = int(numbers.split(";")[0] or 0)
        count = max(1, number)
        match command:
            case "A":
                self.at = max(0, self.at - count)
            case "B":
                self.at = min(self.lines - 1, self.at + count)
            case "C":
                self.column = min(self.columns - 1, self.column + count)
            case "H":
                assert not numbers
                self.at = self.column = 0
            case "J":
                for row in self.rows if number == 2 else self.rows[self.at + 1 :]:
                    self._touch(row).cells.clear()
                if number == 0:
                    del self._touch(self.rows[self.at]).cells[self.column :]
            case "K":
                assert number == 0
                del self._touch(self.rows[self.at]).cells[self.column :]
            case "L":
                self.rows[self.at : self.at] = [Row() for _ in range(min(count, self.lines - self.at))]
                del self.rows[self.lines :]
                self.column, self._has_moved = 0, True
            case "M":
                del self.rows[self.at : self.at + count]
                self.rows += [Row() for _ in range(self.lines - len(self.rows))]
                self.column, self._has_moved = 0, True
            case "m":
                self.styles |= {int(style or 0) for style in numbers.split(";")}
                self._style = "" if numbers in ("", "0") else f"{self._style};{numbers}"
            case "h" | "l":
                assert is_private
                assert numbers in MODES
                self.modes[numbers] = command == "h"
                if numbers == "2026":
                    self._update(command == "h")
            case _:
                raise AssertionError(f"unexpected sequence {command}")

    def _print(self, text: str) -> None:
        if text == "\r":
            self.column = 0
        elif text == "\n":
            if self.at == self.lines - 1:
                self.above.append(self.rows.pop(0).text)
                self.rows.append(Row())
                self._has_moved = True
            else:
                self.at += 1
        else:
            assert text.isprintable() or "\u200d" in text, repr(text)
            for begin, end, width in split_graphemes(text)[0]:
                self._put(text[begin:end], width)

    def _put(self, character: str, width: int) -> None:
        if self.column + width > self.columns:
            if not self.modes["7"]:
                return
            self._print("\r")
            self._print("\n")
        self._touch(self.rows[self.at]).put(self.column, character, width, self._style)
        self.column += width

    def _touch(self, row: Row) -> Row:
        self._written.add(row)
        return row

    def _update(self, begins: bool) -> None:
        if begins:
            self._before = [(row, row.look) for row in self.rows]
            self._written.clear()
            self._has_moved = False
        elif self._before is not None:
            self.updates += 1
            same = {row for row, look in self._before if row in self._written and row.look == look}
            if not self._has_moved:
                places = zip(self.rows, self._before, strict=True)
                same |= {row for row, (_, look) in places if row in self._written and row.look == look}
            self.in_vain += [row.text for row in same]
            self._before = None


def _wrapped(cells: list[tuple[str, str]], columns: int) -> tuple[list[Row], list[int]]:
    """Cut a row; a character two columns wide is never cut. Return the rows, and where each one ends."""
    rows, ends, begin = [], [], 0
    while len(cells) - begin > columns:
        end = begin + columns - (cells[begin + columns][0] == "")
        rows.append(Row(cells[begin:end]))
        ends.append(end)
        begin = end
    return [*rows, Row(cells[begin:])], [*ends, max(len(cells), begin) + 1]
