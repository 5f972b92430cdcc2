"""What a step of a task touched: a channel, an event, a lock, or plain state that tasks share. Pure.

A thing's label is the same in every schedule: what it is, the name it was given, the line that made it, and, when that
line made several, which task did and how many that had made before. So what happened to one thing in two runs can be
compared.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Hashable
from functools import cache
from pathlib import PurePath
from typing import Final

from attrs import field, frozen

from kesoku_actors.harness.sites import Site

CLOSED: Final = "finds closed"
"""What a step does to a channel that it can no longer use."""
LIFE: Final = "of the world"
"""So ends the label of what ends with a crash."""
_ASSIGNED: Final = re.compile(r"^\s*(?:async\s+with|with)?\s*([\w.]+(?:\s*,\s*[\w.]+)*)\s*(?::[^=]+)?=[^=]")
_AS_NAME: Final = re.compile(r"\bas\s+(\w+)\s*:")
_MAKERS: Final = {
    "event": ("Event(",),
    "channel": ("open_memory_channel",),
    "lock": ("Lock(", "Condition("),
    "semaphore": ("Semaphore(",),
    "limiter": ("CapacityLimiter(",),
    "condition": ("Condition(",),
    "cancel scope": ("CancelScope(", "move_on_", "fail_a"),
}
"""By which words one sees in a line that a thing of a kind is made."""


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

    reaches: tuple[str, ...] = field(eq=False, default=())
    """The tasks within, where it is a scope that is cancelled."""

    @property
    def thing(self) -> Hashable:
        """Which thing it is within its run."""
        return self.what if self.key is None else self.key


@cache
def given_names(line: str, kind: str) -> tuple[str, ...]:
    """Return the names that a line of source gives to what it makes of this kind, in order; none when it gives none.

    >>> given_names("    sender, receiver = trio.open_memory_channel[int](1)", "channel")
    ('sender, receiver',)
    >>> given_names("    jobs, left, right = [], trio.Lock(), trio.Lock()", "lock")
    ('left', 'right')
    """
    found = _ASSIGNED.match(line) or _AS_NAME.search(line)
    if not found:
        return ()
    return _paired(line, kind) or (re.sub(r"\s*,\s*", ", ", found[1]),)


def _paired(line: str, kind: str) -> tuple[str, ...]:
    """Return the names of this kind where a line gives several names to several things; else nothing."""
    try:
        [statement] = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return ()  # a part of a statement, or several
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            made = zip(names, map(ast.unparse, values), strict=True)
            makers = _MAKERS.get(kind, ())
            return tuple(ast.unparse(name) for name, value in made if any(maker in value for maker in makers))
        case _:
            return ()


@cache
def label_of(kind: str, file: str, line: int, count: int, more: str = "") -> tuple[str, int]:
    """Return what to call the `count`-th thing of a kind that a line makes, and the how-manieth of that name it is.

    `more` is told of it beside the place where it is made.
    """
    names = given_names(linecache.getline(file, line), kind)
    where = f"({PurePath(file).name}:{line}{more})"
    if not names:
        return f"{kind} {where}", count
    round_, at = divmod(count - 1, len(names))
    return f"{kind} `{names[at]}` {where}", round_ + 1
