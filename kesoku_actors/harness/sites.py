"""Where a task is: the innermost line of the program's own code that it waits at. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any, Final

from attrs import field, frozen

_NOT_THE_PROGRAM: Final = ("trio", "anyio", "outcome", "attr")
"""Packages whose lines say nothing of where a program waits."""
_DEEPEST: Final = 20
"""Of calls within calls, so many are told."""
_HARNESS: Final = str(PurePath(__file__).parent)
"""Where the simulated network, disk, threads and children are."""
_ZOO: Final = str(PurePath(__file__).parent / "zoo")
"""Programs of their own."""


@frozen
class Site:
    """A line of a program."""

    file: str
    line: int
    function: str
    caller: Site | None = field(default=None, eq=False, repr=False)
    """The line that called it, where it is known."""

    def __str__(self) -> str:
        return f"{PurePath(self.file).name}:{self.line} in {self.function}"


def in_own_file(site: Site) -> Site:
    """Return the innermost line in the file of the outermost one: a helper's line in another file says less."""
    outermost: Site = site
    while outermost.caller is not None:
        outermost = outermost.caller
    while site.file != outermost.file and site.caller is not None:
        site = site.caller
    return site


def site_of(coroutine: Any) -> Site | None:
    """Return the innermost line of the program's that a suspended coroutine stands at; none before it began."""
    return _site([(code, line) for code, line in _frames(coroutine) if not is_foreign(code)])


def _site(lines: Sequence[tuple[CodeType, int]]) -> Site | None:
    """Return the last of these lines, each with the one before as its caller; of a deep call the middle is left out."""
    found = None
    kept = lines if len(lines) <= _DEEPEST else [lines[0], *lines[-_DEEPEST:]]
    for code, line in kept:
        found = Site(code.co_filename, line, code.co_name, found)
    return found


def site_of_frame(frame: FrameType) -> Site:
    """Return the line that a frame runs, with those of the program's own that called it."""
    through: list[tuple[CodeType, int]] = []
    above = frame.f_back
    while above is not None and not is_foreign(above.f_code) and len(through) < _DEEPEST:
        through.insert(0, (above.f_code, above.f_lineno))
        above = above.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, _site(through))


def _frames(coroutine: Any) -> Iterator[tuple[CodeType, int]]:
    """Yield the frames of a stack of awaits, the outermost first."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame.f_code, frame.f_lineno
        coroutine = (
            getattr(coroutine, "cr_await", None)
            or getattr(coroutine, "gi_yieldfrom", None)
            or getattr(coroutine, "ag_await", None)
        )


def is_foreign(code: CodeType) -> bool:
    """Return whether a code is of a package whose lines say nothing of where a program is."""
    return _is_foreign_file(code.co_filename)


@cache
def _is_foreign_file(file: str) -> bool:
    is_ours = file.startswith(_HARNESS) and not file.startswith(_ZOO)
    return is_ours or any(part in _NOT_THE_PROGRAM for part in PurePath(file).parts[:-1])
