"""The title of a session: a few words on one line. Pure.

`first_words` makes one of what a person wrote first, `tidied` of what a model proposed. Both give text without markup,
without signs that nobody sees, and of at most `LONGEST` characters as a reader counts them; empty when nothing is left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import Final

from kesoku_actors.protocol.graphemes import is_boundary

LONGEST: Final = 48
"""What a reader sees as one character counts as one."""
_LOOKED_AT: Final = 4_000
_MORE: Final = "…"
_FENCE: Final = re.compile(r"^\s*(```|~~~)[^\n]*$", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_MENTION: Final = re.compile(r"<(?:@[!&]?\d+|#\d+|a?:\w+:\d+|users/[^>\s]{1,64})>")
_LINE_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+)", re.MULTILINE)
_MARKS: Final = re.compile(r"\*\*|__|~~|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_FILE: Final = re.compile(r"\[file: [^\]\n]*\]")
_MARKUP: Final = (
    (_FENCE, "`~", " "),
    (_LINK, "[", r"\1"),
    (_FILE, "[", " "),
    (_MENTION, "<", " "),
    (_LINE_MARKS, "#>-*+.)", ""),
    (_MARKS, "*_~`", ""),
)
"""What stands for something else, the signs without which there is none of it, and what is read instead; in order."""
_QUOTES: Final = "\"'`“”„«»‘’「」*_#"
_LABEL: Final = re.compile(r"^\s*(?:title|titel|subject)\s*:\s*", re.IGNORECASE)
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINER: Final = "\u200d"


def first_words(text: str) -> str:
    """Return a title made of the beginning of `text`."""
    text = text[:_LOOKED_AT]
    for pattern, signs, instead in _MARKUP:
        if any(sign in text for sign in signs):
            text = pattern.sub(instead, text)
    return _short(_seen(text))


def tidied(text: str) -> str:
    """Return a title that a model proposed: its first line, without a label, quotes and a full stop."""
    lines = [line for line in text[:_LOOKED_AT].splitlines() if line.strip()]
    line = _LABEL.sub("", lines[0].strip(_QUOTES + " ")) if lines else ""
    return first_words(line.strip(_QUOTES + " ").removesuffix("."))


def _seen(text: str) -> str:
    """Return the text on one line, without what nobody sees; a joiner stays where it joins."""
    words = " ".join(text.split())
    if words.isascii() and words.isprintable():
        return words
    signs = (" " if sign.isspace() else sign for sign in text)
    kept = (sign for sign in signs if sign == _JOINER or unicodedata.category(sign) not in _UNSEEN)
    return " ".join("".join(kept).split()).strip(_JOINER + " ")


def _short(text: str) -> str:
    """Return the text whole, or up to where it may be cut: between words, where its second half has such a place."""
    places: Iterable[int] = range(1, len(text) + 1)
    if not text.isascii():
        places = (index for index in places if is_boundary(text, index))
    ends = list(islice(places, LONGEST + 1))  # the store makes titles, and has no time for a whole page
    if len(ends) <= LONGEST:
        return text
    cut = text[: ends[LONGEST - 2]]
    if text[len(cut)] != " " and (blank := cut.rfind(" ")) >= len(cut) // 2:
        cut = cut[:blank]
    return cut.rstrip(" ,.;:-") + _MORE
