"""An answer in markdown as parts that a platform with a length limit accepts. Pure.

Invariants (case rows 37 and 38):

* no part is longer than the limit, counted in the platform's own units, with whatever was added to it;
* what was added is only this: a fence open at a cut is closed there and opened again in the next part. The bodies
  of the parts, joined, are the text (a part with nothing but white space is left out: platforms refuse it);
* a cut falls at the best place in reach: a paragraph's end, a line's, a word's; only then between two characters,
  never inside one, and inside an address only when the address is longer than a whole part;
* no cut makes a fence where there was none, or ends one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from enum import IntEnum
from itertools import accumulate
from typing import Final

from kesoku_actors.adapters.fences import Fence, Line, lines
from kesoku_actors.protocol.graphemes import is_boundary
from kesoku_actors.values import frozen

Units = Callable[[str], int]
"""Measures a text; the measure of two texts joined is the sum of theirs."""

SMALLEST_LIMIT: Final = 16
_ADDRESS: Final = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>\"'`。，、；！？）】」』]+", re.IGNORECASE)
_FENCE_LIKE: Final = re.compile(r"[ \t>]{0,200}(`{3}|~{3})")
_WIDE_PUNCTUATION: Final = frozenset("。，、；：！？）】」』")


def characters(text: str) -> int:
    """Count code points."""
    return len(text)


def utf16_units(text: str) -> int:
    """Count UTF-16 units, as Discord and browsers do."""
    return len(text) + sum(character > "\uffff" for character in text)


def utf8_bytes(text: str) -> int:
    """Count bytes of UTF-8, as Google Chat does."""
    return len(text.encode("utf-8", "surrogatepass"))


@frozen(kw_only=True)
class Part:
    """One part: `body` is a piece of the text, `opening` and `closing` the fences added around it."""

    opening: str
    body: str
    closing: str

    @property
    def text(self) -> str:
        """What is sent."""
        return self.opening + self.body + self.closing


class _Cut(IntEnum):
    """How good a place is, the best last."""

    FENCE_BREAKER = 0
    IN_CHARACTER = 1
    IN_ADDRESS = 2
    IN_WORD = 3
    BESIDE_FENCE = 4
    WORD = 5
    LINE = 6
    PARAGRAPH = 7


@frozen(kw_only=True)
class _Source:
    """A text, read once."""

    text: str
    limit: int
    units: Units
    lines: tuple[Line, ...]
    starts: tuple[int, ...]
    """Of the lines."""
    sums: tuple[int, ...]
    """Units before each index."""
    addresses: tuple[tuple[int, int], ...]
    """Start and end of each."""

    def line_before(self, index: int) -> int:
        """Return which line holds the character before `index`."""
        return bisect_right(self.starts, index - 1) - 1

    def opening(self, fence: Fence | None) -> str:
        """Return what opens a fence again: without a long info string, and not at all when the marks are too long."""
        if fence is None or not self.is_usable(fence):
            return ""
        full = fence.opening()
        return full if self.units(full) <= self.limit // 4 else fence.opening(with_info=False)

    def closing(self, index: int) -> str:
        """Return what closes the fence open at `index`."""
        fence = self.lines[self.line_before(index)].fence_at(index)
        if fence is None or not self.is_usable(fence):
            return ""
        return fence.closing(after_newline=self.text[index - 1] == "\n")

    def is_usable(self, fence: Fence) -> bool:
        """Tell whether marks leave at least half of a part for the text."""
        return self.units(fence.opening(with_info=False) + fence.closing(after_newline=False)) <= self.limit // 2

    def cut(self, begin: int, index: int) -> _Cut:
        """Judge a cut before `index` of a part that begins at `begin`."""
        number = self.line_before(index)
        line = self.lines[number]
        return self._line_end(number) if index == line.end else self._inside(line, begin, index)

    def _line_end(self, number: int) -> _Cut:
        line, following = self.lines[number], self.lines[number + 1]
        opens_before = line.before is None and line.after is not None
        closes_after = following.before is not None and following.after is None
        if opens_before or closes_after:
            return _Cut.BESIDE_FENCE
        opens_after = following.before is None and following.after is not None
        blank = line.after is None and self.text[line.start : line.end].isspace()
        return _Cut.PARAGRAPH if opens_after or blank else _Cut.LINE

    def _inside(self, line: Line, begin: int, index: int) -> _Cut:
        head, before, after = max(line.start, begin), self.text[index - 1], self.text[index]
        opens = line.before is None and line.after is not None and index >= line.marks_end
        if _FENCE_LIKE.match(self.text, index) or (not opens and _FENCE_LIKE.match(self.text, head, index)):
            return _Cut.FENCE_BREAKER
        if not is_boundary(self.text, index):
            return _Cut.IN_CHARACTER
        if self._in_address(index):
            return _Cut.IN_ADDRESS
        if opens:
            return _Cut.BESIDE_FENCE
        ends_word = (before.isspace() and not after.isspace()) or before in _WIDE_PUNCTUATION
        return _Cut.WORD if ends_word else _Cut.IN_WORD

    def _in_address(self, index: int) -> bool:
        number = bisect_right(self.addresses, index - 1, key=_first) - 1
        return number >= 0 and index < self.addresses[number][1]


def parts(text: str, limit: int, units: Units = characters) -> tuple[Part, ...]:
    """Return the text as parts of at most `limit` units each. Raises `ValueError` for a limit below 16."""
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a part needs room for at least {SMALLEST_LIMIT} units, not {limit}")
    if not text.strip():
        return ()
    if units(text) <= limit:
        return (Part(opening="", body=text, closing=""),)
    read = tuple(lines(text))
    source = _Source(
        text=text,
        limit=limit,
        units=units,
        lines=read,
        starts=tuple(line.start for line in read),
        sums=tuple(accumulate(map(units, text), initial=0)),
        addresses=tuple(found.span() for found in _ADDRESS.finditer(text)),
    )
    made, begin, fence = [], 0, None
    while begin < len(text):
        opening = source.opening(fence)
        end = _next_cut(source, begin, limit - units(opening))
        closing = source.closing(end) if end < len(text) else ""
        if not text[begin:end].isspace():
            made.append(Part(opening=opening, body=text[begin:end], closing=closing))
        fence = source.lines[source.line_before(end)].fence_at(end)
        begin = end
    return tuple(made)


def split(text: str, limit: int | None = None, units: Units = characters) -> tuple[str, ...]:
    """Return what to send, in order; without a limit it is the text itself, and nothing for a blank text."""
    if limit is None:
        return (text,) if text.strip() else ()
    return tuple(part.text for part in parts(text, limit, units))


def _first(span: tuple[int, int]) -> int:
    return span[0]


def _next_cut(source: _Source, begin: int, room: int) -> int:
    """Return where a part that begins at `begin` ends: the last of the best places, early ones only if need be."""
    furthest = bisect_right(source.sums, source.sums[begin] + room) - 1
    if furthest >= len(source.text):
        return len(source.text)
    half = source.sums[begin] + room // 2
    best, best_rank = begin + 1, (False, -1)
    for index in range(furthest, begin, -1):
        if source.sums[index] - source.sums[begin] + source.units(source.closing(index)) > room:
            continue
        cut = source.cut(begin, index)
        rank = (source.sums[index] >= half and cut >= _Cut.WORD, int(cut))
        if rank > best_rank:
            best, best_rank = index, rank
        if best_rank[0] and (cut is _Cut.PARAGRAPH or source.sums[index] < half):
            break
    return best
