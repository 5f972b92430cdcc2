"""Completion of what is being typed: commands and their arguments, and files after `@` or in a path. Pure.

A file after `@` is completed to its absolute path, since a tool works in a folder of its own; a word that looks like a
path stays as relative as it was begun. The file system comes as a function.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kesoku_actors.adapters.commands import Choice, CommandTable, Values
from kesoku_actors.values import frozen

MOST: Final = 50
_LAST_WORD: Final = re.compile(r"(?:^|(?<=\s))\S+\Z")
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/")

ListFolder = Callable[[str], Sequence[tuple[str, bool]]]
"""Returns the entries of a folder, each with whether it is a folder; nothing when it cannot be read."""


@frozen(kw_only=True)
class Offer:
    """What the last `length` characters before the cursor may become."""

    length: int
    choices: tuple[Choice, ...]
    """At least one."""

    @property
    def common(self) -> str:
        """What all of them begin with."""
        first, last = (pick(choice.text for choice in self.choices) for pick in (min, max))
        pairs = enumerate(zip(first, last, strict=False))
        return first[: next((index for index, (left, right) in pairs if left != right), min(len(first), len(last)))]


@frozen(kw_only=True)
class Completion:
    """What completions are drawn from."""

    commands: CommandTable
    values: Callable[[], Mapping[Values, Sequence[Choice]]]
    list_folder: ListFolder
    home: str
    working_folder: str

    def offer(self, before: str) -> Offer | None:
        """Return the completions of the text before the cursor, at most `MOST`."""
        found = _LAST_WORD.search(before)
        word = found[0] if found else ""
        if before.startswith("/") and "\n" not in before:
            choices = self.commands.complete(before, self.values())
            if choices:
                return Offer(length=len(word), choices=choices[:MOST])
        if word.startswith("@"):
            files = self._files(word[1:], is_absolute=True)
            return Offer(length=len(word) - 1, choices=files) if files else None
        if _PATH.match(word):
            files = self._files(word, is_absolute=False)
            return Offer(length=len(word), choices=files) if files else None
        return None

    def asks(self, before: str) -> bool:
        """Whether completions are shown without being asked for."""
        found = _LAST_WORD.search(before)
        return (before.startswith("/") and "\n" not in before) or (found is not None and found[0].startswith("@"))

    def _files(self, word: str, *, is_absolute: bool) -> tuple[Choice, ...]:
        folder, _, begin = word.rpartition("/")
        shown = f"{folder}/" if "/" in word else ""
        path = self.home + shown[1:] if shown.startswith("~/") else shown
        path = os.path.join(self.working_folder, path)
        entries = sorted(
            (name, is_folder)
            for name, is_folder in self.list_folder(path)
            if name.startswith(begin) and (begin.startswith(".") or not name.startswith("."))
        )
        head = os.path.normpath(path).rstrip("/") + "/" if is_absolute else shown
        return tuple(Choice(f"{head}{name}{'/' if is_folder else ''}") for name, is_folder in entries[:MOST])
