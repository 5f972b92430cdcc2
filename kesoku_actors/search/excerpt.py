"""The part of a text that shows why it was found. Pure.

The index compares words without case, accents and compatibility forms; so does `fold`, sign by sign, so that what it
finds can be marked in the text as it was written. A text whose words were found in another way (across punctuation,
say) is shown from its beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from kesoku_actors.values import frozen

BEFORE: Final = 60
AFTER: Final = 140
"""Characters shown around the first thing found."""
_LOOKED_AT: Final = 50_000
_BLANK: Final = re.compile(r"\s+")
_MORE: Final = "…"


@frozen(kw_only=True)
class Excerpt:
    """One line of a text, and where in it the words stand that were searched for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    """Begin and end of each, in order, none overlapping another."""


def excerpt(content: str, parts: Sequence[str]) -> Excerpt:
    """Return the line around the first of `parts` in `content`, every one of them in that line marked."""
    content = content[:_LOOKED_AT]
    found = _find(content, parts)
    begin, end = _window(content, found[0] if found else (0, 0))
    line = _BLANK.sub(" ", content[begin:end]).strip()
    before, behind = _MORE if begin else "", _MORE if end < len(content) else ""
    marks = tuple((first + len(before), last + len(before)) for first, last in _find(line, parts))
    return Excerpt(text=f"{before}{line}{behind}", marks=marks)


def fold(text: str) -> str:
    """Return `text` as it is compared: no case, no accents, compatibility forms taken apart."""
    return text.lower() if text.isascii() else "".join(map(_folded, text))


@lru_cache(maxsize=4096)
def _folded(sign: str) -> str:
    if sign.isascii():
        return sign.lower()
    plain = "".join(each for each in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(each))
    return plain.casefold()


def _find(text: str, parts: Iterable[str]) -> list[tuple[int, int]]:
    """Return where any of `parts` stands in `text`, in order."""
    wanted = [r"\s+".join(map(re.escape, folded.split())) for part in parts if (folded := fold(part)).strip()]
    if not wanted:
        return []
    pattern = re.compile("|".join(sorted(wanted, key=len, reverse=True)))
    folded = fold(text)
    places = range(len(text) + 1) if text.isascii() else _places(text)
    spans = [found.span() for found in pattern.finditer(folded)]
    whole = [(begin, end) for begin, end in spans if _begins_a_word(folded, begin)]
    # Up to the next sign that is compared, or an accent written by itself would be left out.
    return [(places[begin], max(places[end - 1] + 1, places[end])) for begin, end in whole or spans]


def _begins_a_word(text: str, index: int) -> bool:
    return index == 0 or not (text[index - 1].isalnum() and text[index - 1].isascii() and text[index].isascii())


def _places(text: str) -> list[int]:
    """Return for each sign of the folded text which sign of `text` it came from; one more for the end."""
    places = [index for index, sign in enumerate(text) for _ in _folded(sign)]
    return [*places, len(text)]


def _window(text: str, around: tuple[int, int]) -> tuple[int, int]:
    """Return what is shown around a place: from the beginning of a word to the end of one where that is near."""
    begin, end = max(0, around[0] - BEFORE), min(len(text), around[0] + AFTER)
    if begin and (blank := _BLANK.search(text, begin, around[0])):
        begin = blank.end()
    if end < len(text) and (blank_at := text.rfind(" ", around[1], end)) > around[1]:
        end = blank_at
    return begin, end
