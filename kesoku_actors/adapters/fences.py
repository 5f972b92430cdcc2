"""Where the code fences of a markdown text open and close. Pure.

A fence opens with three or more ````` or ``~`` at the start of a line, after any indentation and quote marks (lists and
quotes hold fences too), and closes at the first line with at least as many of the same mark and nothing behind
them. Marks of the other kind, and shorter ones, are code. An info string after backticks holds no backtick.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kesoku_actors.values import frozen

_OPENS: Final = re.compile(r"(?P<indent>[ \t>]*)(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+$")


@frozen(kw_only=True)
class Fence:
    """An open fence: how to close it, and how to open it again."""

    indent: str
    marks: str
    info: str

    def opening(self, *, with_info: bool = True) -> str:
        """Return the line that opens it again."""
        return f"{self.indent}{self.marks}{self.info if with_info else ''}\n"

    def closing(self, *, after_newline: bool) -> str:
        """Return what closes it behind a text that does or does not end with a newline."""
        return f"{'' if after_newline else chr(10)}{self.indent}{self.marks}"

    def closed_by(self, line: str) -> bool:
        """Tell whether a line ends it."""
        bare = line.lstrip(" \t>").rstrip()
        return len(bare) >= len(self.marks) and not bare.strip(self.marks[0])


@frozen(kw_only=True)
class Line:
    """One line of the text, `text[start:end]` with its newline."""

    start: int
    end: int
    before: Fence | None
    """The fence open where it starts."""
    after: Fence | None
    """The fence open where it ends."""
    marks_end: int
    """Where the marks of a line that opens or closes a fence end; `start` of any other line."""

    def fence_at(self, index: int) -> Fence | None:
        """Return the fence open at an index in `(start, end]`; inside the marks it is the one before."""
        return self.after if index >= self.end or (self.before is None and index >= self.marks_end) else self.before


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of a text with the fences open around them."""
    fence: Fence | None = None
    for found in _LINE.finditer(text):
        line, before, marks_end = found[0], fence, found.start()
        if fence is None:
            opens = _OPENS.match(line.rstrip("\n"))
            if opens is not None:
                fence = Fence(indent=opens["indent"], marks=opens["marks"], info=opens["info"].rstrip("\r"))
                marks_end = found.start() + opens.end("marks")
        elif fence.closed_by(line):
            fence, marks_end = None, found.end()
        yield Line(start=found.start(), end=found.end(), before=before, after=fence, marks_end=marks_end)
