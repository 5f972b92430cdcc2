"""Patterns that match in time linear in the text, whatever they are. Pure.

A pattern means what it means to Python's `re.match`: whether some beginning of the text fits. Only the search for it is
another one: all ways are followed side by side, so that `^(a+)+$` costs no more than `a+` (T2). Each single character
class and each assertion is still read by `re` itself. What cannot be followed side by side (back references, look
around, conditions, atomic groups) is refused when the pattern is loaded, as is an empty pattern, which would fit all.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from kesoku_actors.errors import ConfigError

_LARGEST: Final = 1_000
"""Instructions of one pattern; counted repetitions are written out."""
_DEEPEST: Final = 50
_REMEMBERED: Final = 10_000
_BEGINNING: Final = frozenset({0})
_FLAGS: Final = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE}
_ESCAPE: Final = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2}|[0-3][0-7]{2}|.)", re.S
)
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\\\]])*\]", re.S)
_COUNT: Final = re.compile(r"\{(\d*)(,?)(\d*)\}")
_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>|(?=[^?]))")
_FLAGGED_GROUP: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?:")
_COMMENT: Final = re.compile(r"\(\?#[^)]*\)")
_GLOBAL_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]+)\)")
_ASSERTIONS: Final = frozenset({"^", "$", r"\A", r"\Z", r"\b", r"\B"})


class PatternRefused(ConfigError):
    """A pattern cannot be used; the text names it and says why."""


@frozen
class _Take:
    """One character that fits, or none at all where `width` is 0: an assertion."""

    atom: re.Pattern[str]
    width: int


@frozen
class _Fork:
    """Both ways, as distances from here."""

    first: int
    second: int


_Instruction = _Take | _Fork
_Program = tuple[_Instruction, ...]
_Known = dict[tuple[frozenset[int], str, str, bool], frozenset[int] | None]
"""Where the ways lead that wait between two characters, the second of which is the last one or not. No class and no
assertion sees more of a text than this, so what was found out once holds for every text."""


@frozen
class Pattern:
    """A pattern that was loaded."""

    text: str
    _program: _Program = field(repr=False)

    def matches(self, *texts: str) -> bool:
        """Whether some beginning of one of `texts` fits, as `re.match` would say."""
        known: _Known = {}
        return any(self._fits(text, known) for text in texts)

    def _fits(self, text: str, known: _Known) -> bool:
        waiting: frozenset[int] = _BEGINNING
        before = ""
        for index in range(len(text) + 1):
            here = text[index : index + 1]
            seen_by_all = (waiting, before, here, index == len(text) - 1)
            if seen_by_all in known:
                after = known[seen_by_all]
            else:
                after = self._follow(waiting, text, index)
                if len(known) < _REMEMBERED:
                    known[seen_by_all] = after
            if after is None or not after:
                return after is None
            waiting, before = after, here
        return False

    def _follow(self, waiting: frozenset[int], text: str, index: int) -> frozenset[int] | None:
        """Follow every way that waits before the character at `index` past it; none when one is at its end."""
        end = len(self._program)
        taking: set[int] = set()
        seen: set[int] = set()
        pending = list(waiting)
        while pending:
            at = pending.pop()
            if at == end:
                return None
            if at in seen:
                continue
            seen.add(at)
            match self._program[at]:
                case _Fork(first, second):
                    pending += (at + first, at + second)
                case _Take(atom, width) if atom.match(text, index) is not None:
                    if width:
                        taking.add(at + 1)
                    else:
                        pending.append(at + 1)
        return frozenset(taking)


def compile_patterns(patterns: Iterable[str | Pattern]) -> tuple[Pattern, ...]:
    """Load patterns. Raises `PatternRefused`, which tells of every one that cannot be used."""
    loaded: list[Pattern] = []
    refused: list[str] = []
    for pattern in patterns:
        try:
            loaded.append(pattern if isinstance(pattern, Pattern) else load(pattern))
        except PatternRefused as problem:
            refused.append(str(problem))
    if refused:
        raise PatternRefused("; ".join(refused))
    return tuple(loaded)


def load(text: str) -> Pattern:
    """Return the pattern `text`. Raises `PatternRefused`."""
    if not text:
        raise PatternRefused("an empty pattern would fit every command; take it out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what `re` only warns of means something else in the next Python
            re.compile(text)
        program = _Reader(text).program()
    except (re.error, RecursionError, OverflowError, Warning) as problem:
        raise PatternRefused(f"the pattern {text!r} is not a regular expression: {problem}") from problem
    pattern = Pattern(text, program)
    if pattern.matches("") and pattern.matches("\0"):
        raise PatternRefused(
            f"the pattern {text!r} fits an empty beginning, so every command; if that is meant, say .+"
        )
    return pattern


@define
class _Reader:
    """Reads a pattern that `re` has found well formed."""

    _text: str
    _at: int = 0
    _depth: int = 0

    def program(self) -> _Program:
        flags = re.NOFLAG
        if (match := _GLOBAL_FLAGS.match(self._text)) is not None:
            flags = self._flags(flags, match[1], "")
            self._at = match.end()
        return self._alternatives(flags)

    def _refuse(self, what: str) -> PatternRefused:
        return PatternRefused(f"the pattern {self._text!r} uses {what}, which cannot be matched in linear time")

    def _flags(self, flags: re.RegexFlag, on: str, off: str) -> re.RegexFlag:
        for letter in on + off:
            if letter not in _FLAGS:
                raise self._refuse(f"the flag {letter!r}")
        for letter in on:
            # ASCII and UNICODE exclude each other: the later one holds.
            flags = flags & ~(re.ASCII | re.UNICODE) if letter in "au" else flags
            flags |= _FLAGS[letter]
        for letter in off:
            flags &= ~_FLAGS[letter]
        return flags

    def _alternatives(self, flags: re.RegexFlag) -> _Program:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternRefused(f"the pattern {self._text!r} nests more than {_DEEPEST} groups")
        program = self._sequence(flags)
        while self._text.startswith("|", self._at):
            self._at += 1
            other = self._sequence(flags)
            # The first way jumps over the second one: a fork with both ways the same.
            jump = len(other) + 1
            program = (_Fork(1, len(program) + 2), *program, _Fork(jump, jump), *other)
        self._depth -= 1
        return program

    def _sequence(self, flags: re.RegexFlag) -> _Program:
        program: list[_Instruction] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if (comment := _COMMENT.match(self._text, self._at)) is not None:
                self._at = comment.end()
                continue
            program += self._repeated(self._item(flags))
            if len(program) > _LARGEST:
                raise PatternRefused(f"the pattern {self._text!r} is too large once its repetitions are written out")
        return tuple(program)

    def _item(self, flags: re.RegexFlag) -> _Program:
        match self._text[self._at]:
            case "(":
                return self._group(flags)
            case "[":
                return self._atom(_CLASS, flags)
            case "\\":
                if self._text[self._at + 1] in "123456789" and not re.match(r"\\[1-3][0-7]{2}", self._text[self._at :]):
                    raise self._refuse("a back reference")
                return self._atom(_ESCAPE, flags)
            case _:
                return self._atom(re.compile(".", re.S), flags)

    def _atom(self, extent: re.Pattern[str], flags: re.RegexFlag) -> _Program:
        match = extent.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        written = match[0] if match[0] not in "{}]" else "\\" + match[0]
        return (_Take(re.compile(written, flags), 0 if match[0] in _ASSERTIONS else 1),)

    def _group(self, flags: re.RegexFlag) -> _Program:
        if (match := _FLAGGED_GROUP.match(self._text, self._at)) is not None:
            flags = self._flags(flags, match[1], match[2] or "")
        elif (match := _GROUP.match(self._text, self._at)) is None:
            raise self._refuse(f"'{self._text[self._at : self._at + 3]}'")
        self._at = match.end()
        program = self._alternatives(flags)
        self._at += 1
        return program

    def _repeated(self, body: _Program) -> _Program:
        """Repeat `body` as the quantifier behind it says."""
        least, most = 1, 1
        quantifier = self._text[self._at : self._at + 1]
        if quantifier and quantifier in "*+?":
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[quantifier]
            self._at += 1
        elif (count := _COUNT.match(self._text, self._at)) is not None and (count[1] or count[3] or count[2]):
            least = int(count[1] or 0)
            most = (int(count[3]) if count[3] else -1) if count[2] else least
            self._at = count.end()
        else:
            return body
        if self._text.startswith("+", self._at):
            raise self._refuse("a possessive repetition")
        if self._text.startswith("?", self._at):
            self._at += 1  # lazy: another order of trying, the same answer
        if max(least, most) * len(body) > _LARGEST:
            raise PatternRefused(f"the pattern {self._text!r} is too large once its repetitions are written out")
        if most < 0:
            loop = (_Fork(1, len(body) + 2), *body, _Fork(-len(body) - 1, -len(body) - 1))
            return body * least + loop
        optional: _Program = ()
        for _ in range(most - least):
            optional = (_Fork(1, len(body) + len(optional) + 1), *body, *optional)
        return body * least + optional
