"""Texts as a model reads and changes them: numbered lines, and one exact replacement. Pure.

A text is UTF-8, or UTF-16 with its mark. Bytes that are neither are shown as U+FFFD and stay what they are through a
change. Lines end with a line feed; where all end with CR LF, the model writes `\\n` and the file keeps its own.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import BufferedIOBase
from itertools import islice
from typing import Final

from kesoku_actors.files.places import Refused
from kesoku_actors.values import frozen

SNIFFED: Final = 8_192
LINE_CHARS: Final = 2_000
"""Of a longer line the rest is not shown."""
_NAMED: Final = 10
_COUNTED: Final = 1_000
"""Of more places than these it is only said that there are more."""
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@frozen(kw_only=True)
class Excerpt:
    """Some lines of a text, numbered."""

    shown: str
    first: int
    last: int
    """The last line shown; before the first when none is."""
    is_end: bool
    """Whether the last line shown is the last one."""
    total: int
    """Lines met so far: all of them at the end."""


def is_binary(head: bytes) -> bool:
    """Tell whether a file that begins like this is no text."""
    return not head.startswith(_UTF_16) and b"\0" in head


def is_wide(head: bytes) -> bool:
    """Tell whether it is UTF-16."""
    return head.startswith(_UTF_16)


def excerpt(stream: BufferedIOBase, *, first: int, last: int | None, chars: int) -> Excerpt:
    """Return the lines from `first` to `last` (none: to the end), whole ones, as many as `chars` characters hold."""
    shown: list[str] = []
    room, number, end = chars, 0, first - 1
    for number, line in _lines(stream):
        if number < first:
            continue
        if last is not None and number > last:
            return _made(shown, first, end, number, is_end=False)
        text = f"{number:>6}\t{line}"
        if shown and len(text) + 1 > room:
            return _made(shown, first, end, number, is_end=False)
        shown.append(text[:chars])
        room -= len(text) + 1
        end = number
    return _made(shown, first, end, number, is_end=True)


def _made(shown: list[str], first: int, end: int, total: int, *, is_end: bool) -> Excerpt:
    return Excerpt(shown="\n".join(shown), first=first, last=end, is_end=is_end, total=total)


def _lines(stream: BufferedIOBase) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; however long one is, only its beginning is kept."""
    number = 0
    while raw := stream.readline(4 * LINE_CHARS):
        number += 1
        left_out = 0
        ended = raw.endswith(b"\n")
        while not ended and (more := stream.readline(1 << 20)):
            ended = more.endswith(b"\n")
            left_out += len(more)
        text = raw.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").rstrip(b"\r\n").decode("utf-8", "replace")
        cut = f" [... {left_out + max(0, len(text) - LINE_CHARS):,} more in this line]"
        yield number, text if len(text) <= LINE_CHARS and not left_out else text[:LINE_CHARS] + cut


def replaced_once(content: bytes, old: str, new: str) -> tuple[bytes, int]:
    """Return `content` with its one `old` replaced by `new`, and the line where. Raises `Refused`."""
    if not old:
        raise Refused("old_text is empty; give the text to be replaced, or write the whole file with write_file")
    if old == new:
        raise Refused("old_text and new_text are equal: nothing would change")
    encoding, mark = _encoding(content)
    try:
        text = content[len(mark) :].decode(encoding, "surrogateescape")
    except UnicodeDecodeError as problem:
        where = len(mark) + problem.start
        raise Refused(f"the file begins as UTF-16 and is none at byte {where:,}: nothing was changed") from problem
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    starts = list(islice(_occurrences(text, old), _COUNTED + 1))
    if len(starts) != 1:
        raise Refused(_not_once(text, old, starts))
    at = starts[0]
    changed = text[:at] + new + text[at + len(old) :]
    return mark + changed.encode(encoding, "surrogateescape"), _line_at(text, at)


def encoded(text: str, name: str) -> bytes:
    """Return a text of the model as UTF-8. Raises `Refused`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise Refused(f"{name} holds half a character at {problem.start}; send it whole") from problem


def _encoding(content: bytes) -> tuple[str, bytes]:
    """Return the encoding behind the mark, and the mark."""
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    return next(((name, mark) for mark, name in marks.items() if content.startswith(mark)), ("utf-8", b""))


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yield where `wanted` begins, also within another one of it."""
    at = text.find(wanted)
    while at != -1:
        yield at
        at = text.find(wanted, at + 1)


def _line_at(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _line_ends(text: str, old: str) -> str | None:
    """Return how the lines end where `old` would be if all ended alike, as a reader is not shown; none: nowhere."""
    plain, wanted = (each.replace("\r\n", "\n") for each in (text, old))
    if (at := plain.find(wanted)) == -1:
        return None
    first, last = _line_at(plain, at), _line_at(plain, at + len(wanted))
    lines = enumerate(text.split("\n")[first - 1 : last - 1], start=first)
    returned = [str(number) for number, line in lines if line.endswith("\r")]
    more = ", ..." if len(returned) > _NAMED else ""
    said = f"of lines {first} to {last}, {', '.join(returned[:_NAMED])}{more} end with \\r\\n and others with \\n"
    return said if returned else f"lines {first} to {last} end with \\n"


def _not_once(text: str, old: str, starts: list[int]) -> str:
    if starts:
        lines = [str(_line_at(text, at)) for at in starts[:_NAMED]]
        more = " ..." if len(starts) > _NAMED else ""
        times = f"{len(starts)}" if len(starts) <= _COUNTED else f"more than {_COUNTED:,}"
        return (
            f"old_text is there {times} times, at lines {', '.join(lines)}{more}: nothing was changed. Give more "
            "of the text around the one you mean"
        )
    if ("\r\n" in text or "\r\n" in old) and (ends := _line_ends(text, old)):
        return f"old_text is not there: nothing was changed. But for the ends of its lines it is: {ends}; write them so"
    squeezed = " ".join(old.split())
    for number, line in enumerate(text.split("\n"), start=1):
        if squeezed and squeezed in " ".join(line.split()):
            return (
                f"old_text is not there: nothing was changed. Line {number} differs only in its blanks; read it again"
            )
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    if first and (at := text.find(first)) != -1:
        where = f"Its first line is at line {_line_at(text, at)}, but what follows differs; read it again"
        return f"old_text is not there: nothing was changed. {where}"
    return "old_text is not there: nothing was changed. Read the file again; every blank and line break counts"
