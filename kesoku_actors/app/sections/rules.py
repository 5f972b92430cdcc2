"""The rules a single setting obeys, carried by its type. Pure.

A section writes `timeout_s: Seconds`; the decoder reads the rule from the annotation, checks the base type first and
then the rule. A rule is a function from the value to what is wrong with it, or `None`. No text of a rule repeats the
value of a secret.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from kesoku_actors.values import frozen

DAY_S: Final = 86_400.0


@frozen
class Rule:
    """What a value must obey beyond its type; `problem` returns what is wrong with it, or `None`."""

    problem: Callable[[Any], str | None]


@frozen
class SecretMark:
    """Marks a setting whose value is never shown."""


SHORT: Final = {"short": True}
"""Marks the key of a table that a plain value alone stands for."""


def between(least: float, most: float) -> Rule:
    """Return the rule of a finite number from `least` to `most`, both allowed."""

    def problem(value: float) -> str | None:
        if math.isfinite(value) and least <= value <= most:
            return None
        return f"must be from {least:,.10g} to {most:,.10g}, not {value:,.10g}"

    return Rule(problem)


def _blank(value: str) -> str | None:
    if not value.strip():
        return "must not be empty"
    return "must not hold control characters" if not value.isprintable() else None


def _secret(value: str) -> str | None:
    if not value:
        return "must not be empty; leave the key out to use the environment variable"
    if not value.isascii() or not value.isprintable() or " " in value:
        return "holds a space, a line break or a character that no key has; copy it again"
    return None


def _pattern(value: str) -> str | None:
    # The shell's own engine judges, so that what is loaded here is what will match there. It brings trio along, which
    # a configuration without patterns of its own need not wait for.
    from kesoku_actors.tools.shell.patterns import PatternRefused, load

    try:
        load(value)
    except PatternRefused as refused:
        return str(refused)
    return None


def _http_url(value: str) -> str | None:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isprintable() or " " in value:
        return "must be an address like https://host/path"
    if parts.username is not None:
        return "must not carry a name or password; use api_key"
    return None


def _module(value: str) -> str | None:
    if value.endswith(".py") and value.isprintable():
        return None
    if all(part.isidentifier() and not keyword.iskeyword(part) for part in value.split(".")):
        return None
    return "must be the path of a Python file, like 'my_tools.py', or the dotted name of a module"


def _text_of_lines(value: str) -> str | None:
    if not value.strip():
        return "must not be empty"
    plain = value.replace("\n", " ").replace("\t", " ")
    return None if plain.isprintable() else "must not hold control characters but line breaks and tabs"


def _zone(value: str) -> str | None:
    from zoneinfo import ZoneInfo  # of use to nobody who sets no zone

    try:
        ZoneInfo(value)
    except (ValueError, OSError, KeyError):  # a path, a folder of zones, a name that is none
        return "must be the name of a time zone that this machine knows, like 'Europe/Berlin'"
    return None


def _variable(value: str) -> str | None:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        return None
    return "must be the name of an environment variable"


Count = Annotated[int, between(1, 1_000_000_000)]
Steps = Annotated[int, between(1, 100_000)]
Few = Annotated[int, between(1, 256)]
Seconds = Annotated[float, between(0.001, 365 * DAY_S)]
Money = Annotated[float, between(0.000_001, 1_000_000)]
"""US dollars."""
Price = Annotated[float, between(0, 1_000_000)]
"""US dollars per million tokens."""
Text = Annotated[str, Rule(_blank)]
Secret = Annotated[str, Rule(_secret), SecretMark()]
Pattern = Annotated[str, Rule(_pattern)]
"""A regular expression that is matched from the start of a simple command, in linear time (T2)."""
Url = Annotated[str, Rule(_http_url)]
ModuleName = Annotated[str, Rule(_module)]
"""The path of a Python file, or the dotted name of a module."""
Lines = Annotated[str, Rule(_text_of_lines)]
Zone = Annotated[str, Rule(_zone)]
VariableName = Annotated[str, Rule(_variable)]
