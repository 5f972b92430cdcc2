"""Text of models and tools made harmless for a terminal. Pure.

Whatever could move the cursor, change colours, set a title, ring, answer back or reverse the reading order is
shown as a visible sign instead (case row S17): control characters as their Unicode pictures, the rest as the
replacement character, and so are signs nobody sees. Only newlines and tabs keep their meaning, and CRLF is a newline;
joiners and variation selectors stay, as emoji and some scripts are written with them.
"""

from __future__ import annotations

from typing import Final

_REPLACEMENT: Final = "\ufffd"
_PICTURES: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
_SIGNS: Final = {
    code: _REPLACEMENT
    for span in (
        range(0x80, 0xA0),  # the eight-bit twins of escape sequences
        (0x200B, 0x2060, 0xFEFF),  # seen by nobody, and cuts a word that is searched for or copied
        (0x061C, 0x200E, 0x200F),  # reading order: marks
        range(0x202A, 0x202F),  # reading order: embeddings and overrides
        range(0x2066, 0x206A),  # reading order: isolates
        range(0xD800, 0xE000),  # halves of surrogate pairs, which no encoding takes
    )
    for code in span
}
_BREAKS: Final = {0x2028: "\n", 0x2029: "\n"}
_TABLE: Final = _PICTURES | _SIGNS | _BREAKS


def harmless(text: str) -> str:
    """Return the text without any effect on a terminal but its letters, newlines and tabs."""
    return text.replace("\r\n", "\n").translate(_TABLE)


def one_line(text: str) -> str:
    """Return the text harmless and on one line."""
    return " ".join(harmless(text).split())
