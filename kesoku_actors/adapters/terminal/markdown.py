"""Markdown as lines for a terminal, block by block, so that a growing text costs only its last block.

HTML is shown as it was written instead of vanishing, an address is shown beside its words, and nothing in the text
is taken for markup of ours: `[file: ...]`, `[question: ...]` and rich's own tags are plain text here.
"""

from __future__ import annotations

import re
from io import StringIO
from itertools import pairwise
from typing import Final

from attrs import field
from markdown_it import MarkdownIt
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.text import Text

from kesoku_actors.values import define, frozen

_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_BLOCK: Final = 8_000
"""Characters of a block that are drawn again and again while it grows."""
_CODE_THEME: Final = "ansi_dark"


def plain(line: str) -> str:
    """Return a drawn line without its style sequences."""
    return _STYLES.sub("", line)


@define(eq=False)
class Painter:
    """Turns renderables into lines with style sequences, at most `columns` wide."""

    columns: int
    no_color: bool
    _console: Console = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._console = Console(
            file=StringIO(),
            force_terminal=True,
            no_color=self.no_color,
            width=self.columns,
            height=100,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def lines(self, renderable: RenderableType) -> tuple[str, ...]:
        """Return a renderable's lines."""
        with self._console.capture() as capture:
            self._console.print(Group(renderable))  # printed alone, a text would lose its own rule for wrapping
        return tuple(line.rstrip(" ") for line in capture.get().removesuffix("\n").split("\n"))

    def markdown(self, text: str) -> tuple[str, ...]:
        """Return one block's lines and an empty line after it; nothing for a blank one."""
        parsed = Markdown("", code_theme=_CODE_THEME, hyperlinks=False)
        parsed.markup, parsed.parsed = text, _PARSER.parse(text)
        lines = self.lines(parsed)
        written = [index for index, line in enumerate(lines) if plain(line).strip()]
        return (*lines[written[0] : written[-1] + 1], "") if written else ()


def block_starts(text: str) -> tuple[int, ...]:
    """Return where each block of a text begins after the first. Appending can only change the last block."""
    numbers = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.nesting >= 0 and token.map]
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return tuple(offsets[number] for number in numbers[1:])


@frozen
class Block:
    """A block that can no longer change, `text[:end]` being all up to its end."""

    end: int
    lines: tuple[str, ...]


@define(eq=False)
class Flow:
    """A markdown text that grows. Blocks printed for good are `fixed`; the rest can still be redrawn.

    A last block longer than `LONGEST_BLOCK` is shown as its plain end until it is complete, and looked at only when
    it has grown by a quarter: a growing text costs time in proportion to its length, not to its square.
    """

    text: str = ""
    fixed: int = 0
    """Characters of the text that were printed for good."""
    _blocks: list[Block] = field(factory=list, init=False)
    _columns: int = field(default=0, init=False)
    _looked: int = field(default=0, init=False)
    """How long the last block was when it was looked at, if it was too long."""

    def live_lines(self, painter: Painter) -> tuple[str, ...]:
        """Return the lines of all that is not fixed."""
        if painter.columns != self._columns:
            self._blocks.clear()
            self._columns, self._looked = painter.columns, 0
        begin = self._blocks[-1].end if self._blocks else self.fixed
        if len(self.text) - begin > self._looked * 5 // 4:
            tail, base = self.text[begin:], begin
            for start in block_starts(tail):
                self._blocks.append(Block(base + start, painter.markdown(self.text[begin : base + start])))
                begin = base + start
            self._looked = length if (length := len(self.text) - begin) > LONGEST_BLOCK else 0
        settled = [line for block in self._blocks for line in block.lines]
        if self._looked:
            return (*settled, *painter.lines(Text(self.text[begin:][-LONGEST_BLOCK:])))
        return (*settled, *painter.markdown(self.text[begin:]))

    def fix(self, room: int, height: int) -> tuple[str, ...]:
        """Fix the oldest settled blocks of a text of `height` lines until `room` is enough; return their lines."""
        fixed: list[str] = []
        while self._blocks and height - len(fixed) > room:
            block = self._blocks.pop(0)
            self.fixed = block.end
            fixed += block.lines
        return tuple(fixed)

    def settle(self, text: str, painter: Painter) -> tuple[str, ...] | None:
        """Return the lines of what a committed text holds beyond what is fixed; none if it is another text."""
        return document(text[self.fixed :], painter) if text.startswith(self.text[: self.fixed]) else None


def document(text: str, painter: Painter) -> tuple[str, ...]:
    """Return the lines of a whole text, drawn block by block as it would have grown."""
    starts = (0, *block_starts(text), len(text))
    return tuple(line for begin, end in pairwise(starts) for line in painter.markdown(text[begin:end]))
