"""What a report is written with: colours, the width of a line, and no character that a terminal would obey. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import evolve, fields, frozen, has

WIDTH: Final = 80
"""Columns of a report. A token is longer, as it has to be copied whole."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WIDEST: Final = 300


@frozen
class Ink:
    """How to colour; the codes are empty in plain text."""

    red: str = ""
    green: str = ""
    yellow: str = ""
    dim: str = ""
    bold: str = ""
    off: str = ""


PLAIN: Final = Ink()
COLOURED: Final = Ink("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[0m")


def cleaned(value: Any) -> Any:
    """Return a value of ours without what a terminal would obey in any of its texts."""
    if isinstance(value, str) and type(value) is str:
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
    if isinstance(value, tuple):
        return tuple(map(cleaned, value))
    if not has(type(value)):
        return value
    return evolve(value, **{one.name: cleaned(getattr(value, one.name)) for one in fields(type(value))})


def printable(said: str) -> str:
    """Return a program's own text without what a terminal would obey, and not too long."""
    shown = str(cleaned(said))
    return shown if len(shown) <= _WIDEST else f"{shown[:_WIDEST]} ..."
