"""Patterns of a policy, checked when they are loaded. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from kesoku_actors.errors import ConfigError


class PatternRefused(ConfigError):
    """A pattern cannot be used; the text names it and says why."""


@frozen
class Pattern:
    text: str
    compiled: re.Pattern[str]

    def matches(self, text: str) -> bool:
        return self.compiled.match(text) is not None


def compile_patterns(patterns: Iterable[str | Pattern]) -> tuple[Pattern, ...]:
    return tuple(p if isinstance(p, Pattern) else Pattern(p, re.compile(p)) for p in patterns)
