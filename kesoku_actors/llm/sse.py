"""Server-sent events from bytes: the framing of every streaming provider. Pure.

Invariants: bytes may be cut anywhere, also inside a UTF-8 sequence or between CR and LF; lines end with LF, CR or
CRLF; comments and unknown fields are skipped; `data` lines of one event are joined with a newline. A line and the
joined data of an event hold at most `LIMIT` bytes: a server cannot fill the memory.
"""

from __future__ import annotations

from typing import Final

LIMIT: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """A line or an event is longer than `LIMIT`."""

    def __init__(self) -> None:
        super().__init__(f"an event of the stream is longer than {LIMIT} bytes")


class EventReader:
    """Turns chunks of bytes into the data of complete events."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._begun = False
        self._skip_lf = False

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of every event that `chunk` completes. Raises `EventTooLong`."""
        if not chunk:
            return []
        if self._skip_lf:  # the LF of a CRLF that was cut in two
            chunk = chunk.removeprefix(b"\n")
        self._skip_lf = chunk.endswith(b"\r")
        *complete, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[str] = []
        for part in complete:
            self._grow(part)
            line, self._line = bytes(self._line), bytearray()
            self._take(line, events)
        self._grow(rest)
        return events

    def end(self) -> list[str]:
        """Return the data of an event whose blank line the server left out at the end of the stream."""
        return self.feed(b"\n\n")

    def _grow(self, part: bytes) -> None:
        if len(self._line) + len(part) > LIMIT:
            raise EventTooLong
        self._line += part

    def _take(self, line: bytes, events: list[str]) -> None:
        if not self._begun:
            line, self._begun = line.removeprefix(_BOM), True
        if not line:
            if self._data:
                events.append(b"\n".join(self._data).decode("utf-8", "replace"))
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._size += len(value)
            if self._size > LIMIT:
                raise EventTooLong
            self._data.append(value.removeprefix(b" "))
