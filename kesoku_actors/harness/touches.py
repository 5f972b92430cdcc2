"""What a step of a task touched: a channel, an event, a lock, or plain state that tasks share. Pure.

A thing's label is the same in every schedule: what it is, the name it was given, the line that made it, and, when that
line made several, which task did and how many that had made before. So what happened to one thing in two runs can be
compared.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Hashable
from functools import cache
from pathlib import PurePath
from typing import Final

from attrs import field, frozen

from kesoku_actors.harness.sites import Site

_ASSIGNED: Final = re.compile(r"^\s*(?:async\s+with|with)?\s*([\w.]+(?:\s*,\s*[\w.]+)*)\s*(?::[^=]+)?=[^=]")
_AS_NAME: Final = re.compile(r"\bas\s+(\w+)\s*:")


@frozen
class Touch:
    """A step did something to a thing. Two touches are equal when they are of one thing."""

    what: str
    """The thing's label."""
    how: str = field(eq=False)
    """In words: `sends to`, `reads`."""
    writes: bool = field(eq=False, default=True)
    site: Site | None = field(eq=False, default=None)
    """The line of the program that did it."""
    is_plain: bool = field(eq=False, default=False)
    """Whether it is state of the program's, and not something that tasks wait at."""
    key: Hashable = field(eq=False, default=None)
    """Which thing it is within this run, where a label alone does not tell."""

    @property
    def thing(self) -> Hashable:
        """Which thing it is within its run."""
        return self.what if self.key is None else self.key


def given_name(line: str) -> str | None:
    """Return the name that a line of source gives to what it makes; none when it gives none.

    >>> given_name("    sender, receiver = trio.open_memory_channel[int](1)")
    'sender, receiver'
    """
    found = _ASSIGNED.match(line) or _AS_NAME.search(line)
    return re.sub(r"\s*,\s*", ", ", found[1]) if found else None


@cache
def label_of(kind: str, file: str, line: int) -> str:
    """Return the label of a thing of this kind that this line made: "channel `inbox` (app.py:12)"."""
    name = given_name(linecache.getline(file, line))
    where = f"({PurePath(file).name}:{line})"
    return f"{kind} `{name}` {where}" if name else f"{kind} {where}"
