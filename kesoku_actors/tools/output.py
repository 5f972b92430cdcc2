"""What a tool printed, made fit to be stored, shown and read by a model. Pure.

* The text is valid: undecodable bytes became U+FFFD, there is no NUL and no other control but newline and tab.
* It does nothing to a terminal: escape sequences are gone, and what would reorder or hide text is written out.
* It is short: of a long text the head and the tail remain, and a line between them says how much is missing.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from attrs import field

from kesoku_actors.values import define

BYTES_KEPT: Final = 256 * 1024
OUTPUT_CHARS: Final = 16_000

_SEQUENCES: Final = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: window titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"  # CSI: colour, cursor, modes
    r"|\x1b[ -/]{0,16}[0-~]?"  # the two-character kind
)
_LINE_ENDS: Final = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HARMFUL_CODES: Final = (
    *range(0x09),
    *range(0x0E, 0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200B,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    0x2060,
    *range(0x2066, 0x206A),
    0xFEFF,
    *range(0xD800, 0xE000),
)
"""Control characters, what reorders text, what nobody sees, and halves of surrogate pairs."""
_HARMFUL: Final = re.compile(f"[{''.join(map(re.escape, map(chr, _HARMFUL_CODES)))}]")
_WRITTEN_OUT: Final = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _HARMFUL_CODES}
"""What stands for each of these. A table: of a flood of them a function called for each would take minutes."""
_LONGEST_WORD: Final = 4_096
_ENDS_IN_WORD: Final = re.compile(rb"\S*\Z")
_BEGINS_IN_WORD: Final = re.compile(rb"\S{0,%d}" % _LONGEST_WORD)


def harmless(text: str) -> str:
    """Return `text` without anything that controls a terminal; what is taken out and is no sequence is written out."""
    plain = _LINE_ENDS.sub("\n", _SEQUENCES.sub("", text))
    return plain.translate(_WRITTEN_OUT) if _HARMFUL.search(plain) else plain


def head_and_tail(text: str, chars: int, note: str = "left out") -> str:
    """Return `text`, or `chars` characters of it: head and tail around a line that says how much is missing."""
    if len(text) <= chars:
        return text
    head = chars // 2
    tail = chars - head
    return f"{text[:head]}\n[... {len(text) - chars:,} characters {note} ...]\n{text[len(text) - tail :]}"


@define
class Capture:
    """The first and the last bytes of a stream, in bounded memory however long it is."""

    limit: int = BYTES_KEPT
    total: int = field(default=0, init=False)
    _head: bytearray = field(factory=bytearray, init=False)
    _tail: deque[bytes] = field(factory=deque, init=False)
    _tail_size: int = field(default=0, init=False)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self.limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self.limit // 2:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept, decoded; a line stands for what was not.

        The cuts are between words: half a secret would be masked by nobody.
        """
        head, tail = bytes(self._head), b"".join(self._tail)[-(self.limit // 2) :]
        if self.total <= len(head) + len(tail):
            return (head + tail).decode("utf-8", "replace")
        whole_words = _ENDS_IN_WORD.search(head, max(0, len(head) - _LONGEST_WORD))
        head = head[: whole_words.start() if whole_words else 0]
        broken_word = _BEGINS_IN_WORD.match(tail)
        tail = tail[broken_word.end() if broken_word else 0 :]
        gap = f"\n[... {self.total - len(head) - len(tail):,} bytes left out ...]\n"
        return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")
