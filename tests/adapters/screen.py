"""Outputs that remember, and a terminal just clever enough to check what is drawn."""

from __future__ import annotations

import re
from itertools import count

from attrs import define, field
from rich.cells import cell_len

from kesoku_actors.adapters import SurfaceGone

TOKEN = re.compile(r"\x1b\[(?P<private>\??)(?P<number>[0-9;]*)(?P<command>[A-Za-z])|(?P<text>.)", re.DOTALL)


@define(eq=False)
class MemoryOutput:
    """Keeps what is written; gone after `room` writes."""

    room: int | None = None
    written: list[str] = field(factory=list)

    async def write(self, text: str) -> None:
        if self.room is not None and len(self.written) >= self.room:
            raise SurfaceGone("nobody reads")
        self.written.append(text)

    @property
    def text(self) -> str:
        return "".join(self.written)


@define(eq=False)
class Terminal:
    """Rows of a terminal of endless height, for the sequences we use; any other control is an error."""

    columns: int
    rows: list[str] = field(factory=lambda: [""])
    at: int = 0
    highest: int = 0
    """The most rows the cursor went up at once."""

    def feed(self, text: str) -> None:
        for token in TOKEN.finditer(text):
            match token["command"], token["text"]:
                case "A", _:
                    up = int(token["number"])
                    self.at, self.highest = self.at - up, max(self.highest, up)
                    assert self.at >= 0
                case "J", _:
                    del self.rows[self.at + 1 :]
                    self.rows[self.at] = ""
                case "m", _:
                    pass
                case "h" | "l", _:
                    assert (token["private"], token["number"]) == ("?", "2026")
                case None, "\r":
                    assert self.rows[self.at] == "", "a line was left unfinished"
                case None, "\n":
                    self.at += 1
                    if self.at == len(self.rows):
                        self.rows.append("")
                case None, str(character):
                    assert character.isprintable() or character == "\u200d", repr(character)
                    self.rows[self.at] += character
                    assert cell_len(self.rows[self.at]) <= self.columns, self.rows[self.at]
                case command, _:
                    raise AssertionError(f"unexpected sequence {command}")

    @property
    def lines(self) -> list[str]:
        return [row.rstrip() for row in self.rows]


def ticking(step_s: float = 0.1):
    """Return a monotonic clock that moves by `step_s` each time it is read."""
    ticks = count()
    return lambda: next(ticks) * step_s
