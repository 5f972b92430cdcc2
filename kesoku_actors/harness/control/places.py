"""Whose code a line is, and which line of the program's made a call. Pure."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from types import FrameType
from typing import Final

from attrs import frozen

from kesoku_actors.harness.sites import Site


class Owner(Enum):
    """Whose code it is."""

    PROGRAM = "program"
    HARNESS = "harness"
    LOOP = "loop"
    """trio, and what stands on it or under it."""
    STANDARD = "standard"
    IMPORT = "import"
    """The machinery of imports, which may write what it compiled."""
    TESTS = "tests"
    """What draws inputs and runs tests."""


IN_A_THREAD: Final = "work_in_a_thread"
"""The function that a simulated thread is in; its local variable `asked` is the call that asked for the thread."""
CHOOSES: Final = "pick"
"""The function of the harness that asks strategies; no step of a program is in it."""
_HARNESS: Final = str(Path(__file__).parents[1])
_ZOO: Final = str(Path(__file__).parents[1] / "zoo")
_STANDARD: Final = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_LOOP: Final = frozenset({"trio", "anyio", "outcome", "attr", "sniffio"})
_TESTS: Final = frozenset({"hypothesis", "pytest", "_pytest", "pluggy", "pytest_trio", "coverage"})
_PACKAGES: Final = ("site-packages", "dist-packages")


@cache
def owner_of(filename: str) -> Owner:
    """Return whose code a file is."""
    parts = PurePath(filename).parts
    if filename.startswith("<frozen importlib"):
        return Owner.IMPORT
    if filename.startswith("<frozen"):
        return Owner.STANDARD
    if filename.startswith(_HARNESS) and not filename.startswith(_ZOO):
        return Owner.HARNESS
    for place in _PACKAGES:
        if place in parts:
            package = parts[parts.index(place) + 1].removesuffix(".py")
            return Owner.LOOP if package in _LOOP else Owner.TESTS if package in _TESTS else Owner.PROGRAM
    return Owner.STANDARD if filename.startswith(_STANDARD) or filename == "<string>" else Owner.PROGRAM


@frozen
class Call:
    """A call out of the program."""

    site: Site
    """The program's line."""
    through: str
    """The function that the line called, when something stands between; empty otherwise."""
    nearest: Owner
    """Whose code made the call itself."""
    files: tuple[str, ...]
    """The files between, the nearest first."""


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def call_of(frame: FrameType | None) -> Call | None:
    """Return the call that a stack of frames is in; none when it is not the program that calls."""
    nearest: Owner | None = None
    between: list[FrameType] = []
    found: FrameType | None = None
    for one in frames_of(frame):
        owner = owner_of(one.f_code.co_filename)
        if found is not None:
            if owner is Owner.HARNESS and one.f_code.co_name == CHOOSES:
                return None  # a strategy draws
            continue
        if owner is Owner.HARNESS and one.f_code.co_name == IN_A_THREAD:
            asked: Call | None = one.f_locals["asked"]
            return asked
        if owner is Owner.HARNESS or owner is Owner.TESTS:
            return None
        nearest = nearest or owner
        if owner is Owner.PROGRAM:
            found = one
        else:
            between.append(one)
    if found is None or nearest is None:
        return None
    site = Site(found.f_code.co_filename, found.f_lineno, found.f_code.co_name)
    through = between[-1].f_code.co_name if between else ""
    return Call(site, through, nearest, tuple(one.f_code.co_filename for one in between))
