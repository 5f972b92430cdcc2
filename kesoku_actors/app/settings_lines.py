"""On which line of a TOML text each key stands. Pure.

The text has been read by `tomllib` before, so it is valid: the walk below only has to recognise where things begin
and end, and leaves every judgement to the parser. A path is the way through the parsed data: keys, and indexes for
the members of arrays and of arrays of tables. A key that is met several times (`[a.b]`, `[a.c]`) stands where it is
met first.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from attrs import field

from kesoku_actors.values import define, frozen

KeyPath = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r"""
      \"\"\"(?:[^\\]|\\.)*?\"\"\"\"{0,2}
    | '''.*?''''{0,2}
    | "(?:[^"\\]|\\.)*"
    | '[^']*'
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_VALUE: Final = re.compile(r"[^,\]}\n#]*")


@frozen
class Lines:
    """The lines of the keys of one text, counted from 1."""

    by_path: Mapping[KeyPath, int]

    def of(self, path: KeyPath) -> int | None:
        """Return the line of `path`, or of the nearest thing around it that stands in the text."""
        for length in range(len(path), 0, -1):
            if (line := self.by_path.get(path[:length])) is not None:
                return line
        return None


def find_lines(text: str) -> Lines:
    """Return where each key of `text` stands. `text` is valid TOML with `\\n` line ends."""
    walk = _Walk(text=text, ends=[found.start() for found in re.finditer("\n", text)])
    walk.document()
    return Lines(walk.found)


@define
class _Walk:
    text: str
    ends: list[int]
    at: int = 0
    found: dict[KeyPath, int] = field(factory=dict)
    members: dict[KeyPath, int] = field(factory=dict)
    """How many tables each array of tables has so far."""

    def document(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self._take("[["):
                table = self._table(self._keys(), is_member=True)
                self._take("]]")
            elif self._take("["):
                table = self._table(self._keys(), is_member=False)
                self._take("]")
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _table(self, keys: list[tuple[str, int]], *, is_member: bool) -> KeyPath:
        path: KeyPath = ()
        for depth, (key, line) in enumerate(keys, start=1):
            path = (*path, key)
            self.found.setdefault(path, line)
            if is_member and depth == len(keys):
                self.members[path] = self.members.get(path, 0) + 1
            if path in self.members:
                path = (*path, self.members[path] - 1)
                self.found.setdefault(path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for key, line in self._keys():
            path = (*path, key)
            self.found.setdefault(path, line)
        self._take("=")
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._take("{"):
            self._skip(_BLANK)
            while not self._take("}"):
                self._pair(path)
                self._separator()
        elif self._take("["):
            self._skip(_BLANK)
            index = 0
            while not self._take("]"):
                self.found.setdefault((*path, index), self._line())
                self._value((*path, index))
                self._separator()
                index += 1
        elif not self._skip(_STRING):
            self._skip(_PLAIN_VALUE)

    def _separator(self) -> None:
        self._skip(_BLANK)
        self._take(",")
        self._skip(_BLANK)

    def _keys(self) -> list[tuple[str, int]]:
        keys: list[tuple[str, int]] = []
        while True:
            self._skip(_SPACE)
            line = self._line()
            if bare := self._skip(_BARE_KEY):
                keys.append((bare, line))
            else:
                keys.append((tomllib.loads(f"key = {self._skip(_STRING)}")["key"], line))
            self._skip(_SPACE)
            if not self._take("."):
                return keys

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _take(self, token: str) -> bool:
        taken = self.text.startswith(token, self.at)
        self.at += len(token) * taken
        return taken

    def _line(self) -> int:
        return bisect_left(self.ends, self.at) + 1
