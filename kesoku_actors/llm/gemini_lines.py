"""The lines of Gemini's answer as its SDK reads them. Pure.

The SDK knows `data: ` alone and takes every other line for a piece of JSON. What stands between the service and us may
send all that server-sent events allow: comments that keep a connection alive, other fields, `data:` without its space,
a byte order mark, and the `[DONE]` of other wires. Here they are taken out; lines that are no event's come at the end,
those of a list of chunks as its events.

Each event is checked before the SDK has it: what it stumbles over there would leave its readers open, one in the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

MOST_LOOSE: Final = 1 << 24
"""Bytes of lines that are no event's."""
_BOM: Final = b"\xef\xbb\xbf"
_NO_DATA: Final = re.compile(rb"(?::|(?:event|id|retry)(?::|\Z)|data:[ ]?\[DONE\]\Z)")


class GeminiLines:
    """Takes bytes cut anywhere; gives whole lines, each ended by LF.

    `check` is told the data of every event; `feed` and `end` raise what it raises, and `ValueError` for too much that
    is none.
    """

    def __init__(self, check: Callable[[bytes], None]) -> None:
        self._check = check
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._loose: list[bytes] = []
        self._size = 0
        self._begun = False
        self._skip_lf = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the events that a chunk completes, one by one, then its other lines."""
        if not chunk:
            return
        if self._skip_lf:  # the LF of a CRLF that was cut in two
            chunk = chunk.removeprefix(b"\n")
        self._skip_lf = chunk.endswith(b"\r")
        *complete, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if not complete:
            self._rest.append(rest)
            return
        complete[0] = b"".join((*self._rest, complete[0]))
        self._rest = [rest]
        lines: list[bytes] = []
        for line in complete:
            lines.append(self._tidied(line))
            if lines[-1] == b"\n":
                yield b"".join(lines)
                lines.clear()
        yield b"".join(lines)

    def end(self) -> Iterator[bytes]:
        """Yield what is left."""
        rest, self._rest = b"".join(self._rest), []
        yield self._tidied(rest) + self._tidied(b"")
        loose = b"\n".join(self._loose)
        if not loose.strip():
            return
        for chunk in _listed(loose):
            self._check(chunk)
            yield b"data: " + chunk + b"\n\n"

    def _tidied(self, line: bytes) -> bytes:
        if not self._begun:
            line, self._begun = line.removeprefix(_BOM), True
        if not line:
            data, self._data = self._data, []
            if data:
                self._check(b"\n".join(data))
            return b"\n" if data else b""
        if _NO_DATA.match(line):
            return b""
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            return b"data: " + self._data[-1] + b"\n"
        self._size += len(line)
        if self._size > MOST_LOOSE:
            raise ValueError(f"more than {MOST_LOOSE} bytes that are no event")
        self._loose.append(line)
        return b""


def _listed(loose: bytes) -> list[bytes]:
    """Return the chunks of an answer that came whole, each in one line; one that is no JSON stays as it is."""
    try:
        answer = json.loads(loose)
    except (ValueError, RecursionError):
        return [loose]
    return [json.dumps(chunk).encode() for chunk in (answer if isinstance(answer, list) else [answer])]
