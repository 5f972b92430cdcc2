r"""Patterns that match in time linear in the text, whatever they are. Pure (T2, C06).

A pattern is written as for Python and means what it means to `re.match`: whether some beginning of the text fits. It is
matched by RE2, which never goes back, so that `^(a+)+$` costs no more than `a+`. The two do not write everything alike,
so the pattern is read by Python and written out again for RE2. What RE2 cannot do (back references, look around,
conditions, atomic groups) is refused when the pattern is loaded, as is an empty pattern, which would fit all.

One thing differs: what is a letter to `\b` and `\B` are those of ASCII.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from re import _constants as code  # type: ignore[attr-defined]  # not public, and the same since Python 3.11
from re import _parser as reader  # type: ignore[attr-defined]  # the same
from typing import Any, Final, Protocol

from attrs import field

from kesoku_actors.errors import ConfigError
from kesoku_actors.values import define, frozen

_LARGEST: Final = 2**20
"""Bytes that RE2 may take for one pattern."""
_SURELY_TAKEN: Final = 20_000
"""Instructions, as `_Writer` counts them: less than half of what RE2 may take."""
_LARGE_CLASS: Final = 2_500
"""Instructions, at most, of a class of letters that are not only those of ASCII."""
_LARGE_ITEM: Final = 50
"""Of anything else."""
_SPACE: Final = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WORD: Final = r"\p{L}\p{N}_"
_CATEGORIES: Final = {
    code.CATEGORY_DIGIT: (r"\p{Nd}", "0-9"),
    code.CATEGORY_SPACE: (_SPACE, r"\t-\r\x20"),
    code.CATEGORY_WORD: (_WORD, "0-9A-Za-z_"),
}
"""What a class of characters has, in Unicode and in ASCII."""
_WITHOUT: Final = {
    code.CATEGORY_NOT_DIGIT: code.CATEGORY_DIGIT,
    code.CATEGORY_NOT_SPACE: code.CATEGORY_SPACE,
    code.CATEGORY_NOT_WORD: code.CATEGORY_WORD,
}
_PLACES: Final = {
    code.AT_BEGINNING_STRING: r"\A",
    code.AT_BOUNDARY: r"\b",
    code.AT_END_STRING: r"\z",
    code.AT_NON_BOUNDARY: r"\B",
}
_REFUSED: Final = {
    code.ASSERT: "'(?=' or '(?<='",
    code.ASSERT_NOT: "'(?!' or '(?<!'",
    code.ATOMIC_GROUP: "'(?>'",
    code.GROUPREF: "a back reference",
    code.GROUPREF_EXISTS: "a condition '(?('",
    code.POSSESSIVE_REPEAT: "a possessive repetition",
}


class PatternRefused(ConfigError):
    """A pattern cannot be used; the text names it and says why."""


class _Matcher(Protocol):
    def match(self, text: str) -> object | None: ...


@define(eq=False)
class _Later:
    """A pattern of which RE2 is asked when it is first needed: it takes some megabytes and most runs need none."""

    text: str
    written: str
    made: _Matcher | None = None

    def match(self, text: str) -> object | None:
        self.made = self.made or _compiled(self.text, self.written)
        return self.made.match(text)


@frozen
class Pattern:
    """A pattern that was loaded."""

    text: str
    message: str | None = None
    """What is said where it refuses a command, in place of the pattern itself."""
    _matcher: _Matcher = field(repr=False, eq=False, kw_only=True)
    _ends_before_newline: bool = field(repr=False, eq=False, kw_only=True)
    """Whether it has a `$`, which also stands before a line break that ends the text."""

    def matches(self, *texts: str) -> bool:
        """Whether some beginning of one of `texts` fits, as `re.match` would say."""
        return any(self._fits(text) for text in texts)

    def _fits(self, text: str) -> bool:
        if self._matcher.match(text) is not None:
            return True
        return self._ends_before_newline and text[-1:] == "\n" and self._matcher.match(text[:-1]) is not None


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


def load(text: str, message: str | None = None) -> Pattern:
    """Return the pattern `text`. Raises `PatternRefused`."""
    if not text:
        raise PatternRefused("an empty pattern would fit every command; take it out")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what `re` only warns of means something else in the next Python
            judge = re.compile(text)
            tree = reader.parse(text)
            writer = _Writer(text)
            written = writer.sequence(tree, tree.state.flags)
    except (re.error, RecursionError, OverflowError, Warning) as problem:
        raise PatternRefused(f"the pattern {text!r} is not a regular expression: {problem}") from problem
    if judge.match("") and judge.match("\0"):
        raise PatternRefused(
            f"the pattern {text!r} fits an empty beginning, so every command; if that is meant, say .+"
        )
    matcher = _Later(text, written) if writer.size <= _SURELY_TAKEN else _compiled(text, written)
    return Pattern(text, message, matcher=matcher, ends_before_newline=writer.has_end)


def _compiled(text: str, written: str) -> _Matcher:
    import re2  # type: ignore[import-untyped]  # it has no types of its own

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _LARGEST
    try:
        matcher: _Matcher = re2.compile(written, options=options)
    except re2.error as problem:
        raise PatternRefused(f"the pattern {text!r} is too large once its repetitions are written out") from problem
    return matcher


class _Writer:
    """Writes what `re` has read for RE2."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.has_end = False
        self.size = 0
        """Instructions that RE2 makes of it, at most."""

    def sequence(self, items: Iterable[tuple[Any, Any]], flags: int) -> str:
        return "".join(self._item(kind, value, flags) for kind, value in items)

    def _item(self, kind: Any, value: Any, flags: int) -> str:
        if kind in _REFUSED:
            raise PatternRefused(
                f"the pattern {self._text!r} uses {_REFUSED[kind]}, which cannot be matched in linear time"
            )
        self.size += _LARGE_ITEM
        match kind:
            case code.LITERAL:
                return _folded(_character(value), flags)
            case code.NOT_LITERAL:
                return _folded(f"[^{_character(value)}]", flags)
            case code.ANY:
                return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
            case code.AT:
                return self._place(value, flags)
            case code.IN:
                return _folded(self._class(value, flags), flags)
            case code.BRANCH:
                return f"(?:{'|'.join(self.sequence(branch, flags) for branch in value[1])})"
            case code.SUBPATTERN:
                _group, on, off, inner = value
                flags = flags & ~(re.ASCII | re.UNICODE) if on & (re.ASCII | re.UNICODE) else flags
                return f"(?:{self.sequence(inner, (flags | on) & ~off)})"
            case code.MAX_REPEAT | code.MIN_REPEAT:  # greedy or not: another order of trying, the same answer
                least, most, inner = value
                bound = "" if most is code.MAXREPEAT else most
                before = self.size
                repeated = self.sequence(inner, flags)
                self.size += (self.size - before + _LARGE_ITEM) * (least if most is code.MAXREPEAT else most)
                return f"(?:{repeated}){{{least},{bound}}}"
            case _:
                raise PatternRefused(f"the pattern {self._text!r} uses {kind}, which is not known here")

    def _place(self, value: Any, flags: int) -> str:
        if value is code.AT_BEGINNING:
            return "(?m:^)" if flags & re.MULTILINE else r"\A"
        if value is code.AT_END:
            if flags & re.MULTILINE:
                return "(?m:$)"
            self.has_end = True
            return r"\z"
        return _PLACES[value]

    def _class(self, items: Sequence[tuple[Any, Any]], flags: int) -> str:
        is_negated = items[0][0] is code.NEGATE
        inside: list[str] = []
        beside: list[str] = []
        self.size += sum(_LARGE_ITEM if kind is code.LITERAL else _LARGE_CLASS for kind, _ in items)
        for kind, value in items[1:] if is_negated else items:
            match kind:
                case code.LITERAL:
                    inside.append(_character(value))
                case code.RANGE:
                    inside.append(f"{_character(value[0])}-{_character(value[1])}")
                case code.CATEGORY if value in _CATEGORIES:
                    inside.append(_CATEGORIES[value][bool(flags & re.ASCII)])
                case _:
                    beside.append(_CATEGORIES[_WITHOUT[value]][bool(flags & re.ASCII)])
        if not beside:
            return f"[{'^' if is_negated else ''}{''.join(inside)}]"
        # What is in none of several sets, some of which are the rest of another one, RE2 cannot write.
        if is_negated and (inside or len(beside) > 1):
            raise PatternRefused(f"the pattern {self._text!r} has a class [^...] of a class; write what it is to have")
        if is_negated:
            return f"[{beside[0]}]"
        sets = [f"[{''.join(inside)}]"] if inside else []
        return f"(?:{'|'.join([*sets, *(f'[^{each}]' for each in beside)])})"


def _character(number: int) -> str:
    return rf"\x{{{number:x}}}"


def _folded(written: str, flags: int) -> str:
    return f"(?i:{written})" if flags & re.IGNORECASE else written
