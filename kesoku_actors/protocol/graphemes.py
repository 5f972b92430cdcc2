"""Where a text may be cut without breaking what a reader sees as one character. Pure.

A rule of thumb for the full Unicode segmentation, enough for what people and models write: never before a mark
that combines with what stands before it, never beside a joiner, never inside a flag, a keycap or a line end of
two characters.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_TAGS: Final = range(0xE0020, 0xE0080)
_LONGEST_RUN: Final = 512  # of flags; a longer one may be cut inside a flag, but costs no more time
_JAMO_TAILS: Final = range(0x1160, 0x1200)
_COMBINING: Final = frozenset({"Mn", "Me", "Mc"})


def is_boundary(text: str, index: int) -> bool:
    """Tell whether `text` may be cut before the character at `index`; its two ends always may."""
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if after < "\u0300" and before < "\u0300":
        return not (before == "\r" and after == "\n")
    if before == _JOINER or _extends(after):
        return False
    return not (after in _FLAG_LETTERS and _flag_letters_before(text, index) % 2)


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        character == _JOINER
        or code in _SKIN_TONES
        or code in _TAGS
        or code in _JAMO_TAILS
        or unicodedata.category(character) in _COMBINING
    )


def _flag_letters_before(text: str, index: int) -> int:
    before = text[max(0, index - _LONGEST_RUN) : index]
    return len(before) - len(before.rstrip(_FLAG_LETTERS))
