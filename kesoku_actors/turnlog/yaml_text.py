"""Writes JSON data as YAML that people like to read, many times faster than a general emitter. Pure.

Each text is written in the first of three styles that can carry it: plain words as they are, several lines as a block
beneath its key, anything else in double quotes. A reader of YAML 1.1 or 1.2 gets back exactly what was written: texts
that look like numbers, dates, booleans or markup are quoted; whatever is not printable, or would not look like what it
is (line separators, marks that turn the direction of writing), is escaped.

Two values have no JSON counterpart: `Named` gives a part a name, `Same` stands for the named part further down, so that
what belongs in two places is written once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kesoku_actors.values import frozen

DEEPEST: Final = 150
"""Levels of lists and objects within each other; deeper parts are replaced by a remark."""
TOO_DEEP: Final = "(nested too deeply to be written)"
_STEP: Final = 2
_LONGEST_SIMPLE_KEY: Final = 200
_MOST_KEYS: Final = 256

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./()',;!?-]*(?: [A-Za-z0-9_./()',;!?-]+)*\Z")
_RESERVED: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_UNFIT: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff"
)
_UNFIT_IN_BLOCK: Final = re.compile(f"[{_UNFIT}]")
_ESCAPED: Final = re.compile(f'["\\\\\t\n{_UNFIT}]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x00": "\\0", "\x1b": "\\e"}
_HALF: Final = re.compile("[\ud800-\udfff]")

Edit = Callable[[str], str]
"""What is done to every text, keys too, before it is written."""


@frozen
class Named:
    """A part that may be referred to further down. The name is letters."""

    name: str
    value: Any


@frozen
class Same:
    """What stands under that name further up."""

    name: str


def unedited(text: str) -> str:
    """Return the text as it is."""
    return text


def write_yaml(document: Mapping[str, Any], out: Callable[[str], object], edit: Edit = unedited) -> None:
    """Write an object at the top level, in small pieces. What is not JSON data is written as its `repr`."""
    if document:
        _Writer(out, edit).mapping(document, 0, "", 0)
    else:
        out("{}\n")


def to_yaml(document: Mapping[str, Any], edit: Edit = unedited) -> str:
    """Return an object as YAML."""
    pieces: list[str] = []
    write_yaml(document, pieces.append, edit)
    return "".join(pieces)


class _Writer:
    """`indent` is the column of the collection that is being written, `first` what stands before its first part."""

    def __init__(self, out: Callable[[str], object], edit: Edit) -> None:
        self._out = out
        self._edit = edit
        self._keys: dict[object, str] = {}

    def mapping(self, value: Mapping[Any, Any], indent: int, first: str, depth: int) -> None:
        for key, part in value.items():
            self._entry(first + self._key(key, indent), part, indent, depth + 1)
            first = " " * indent

    def _sequence(self, value: list[Any] | tuple[Any, ...], indent: int, first: str, depth: int) -> None:
        for part in value:
            match part:
                case Mapping() | list() | tuple() if depth >= DEEPEST:
                    self._out(f"{first}- {TOO_DEEP}\n")
                case Mapping() if part:
                    self.mapping(part, indent + _STEP, f"{first}- ", depth + 1)
                case list() | tuple() if part:
                    self._sequence(part, indent + _STEP, f"{first}- ", depth + 1)
                case _:
                    self._out(f"{first}- {self._scalar(part, indent)}\n")
            first = " " * indent

    def _entry(self, head: str, part: Any, indent: int, depth: int) -> None:
        if isinstance(part, Named):
            head, part = f"{head} &{part.name}", part.value
        inner = indent + _STEP
        match part:
            case Mapping() | list() | tuple() if depth >= DEEPEST:
                self._out(f"{head} {TOO_DEEP}\n")
            case Mapping() if part:
                self._out(f"{head}\n")
                self.mapping(part, inner, " " * inner, depth)
            case list() | tuple() if part:
                self._out(f"{head}\n")
                self._sequence(part, inner, " " * inner, depth)
            case _:
                self._out(f"{head} {self._scalar(part, indent)}\n")

    def _key(self, key: object, indent: int) -> str:
        if (known := self._keys.get(key)) is not None:  # a history has few keys, each of them thousands of times
            return known
        text = _one_line(self._edit(key if isinstance(key, str) else repr(key)))
        # The key of an entry on one line may have a thousand characters, no more.
        if len(text) > _LONGEST_SIMPLE_KEY:
            return f"? {text}\n{' ' * indent}:"
        if len(self._keys) < _MOST_KEYS:
            self._keys[key] = f"{text}:"
        return f"{text}:"

    def _scalar(self, value: Any, indent: int) -> str:
        match value:
            case str():
                return self._text(self._edit(value), indent + _STEP)
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case float():
                return _number(value)
            case Mapping():
                return "{}"
            case list() | tuple():
                return "[]"
            case Same():
                return f"*{value.name}"
            case _:
                return self._text(self._edit(repr(value)), indent + _STEP)

    def _text(self, text: str, indent: int) -> str:
        lines = text.split("\n")
        if len(lines) == 1 or not text.strip() or _UNFIT_IN_BLOCK.search(text) is not None:
            return _one_line(text)
        keep = "-" if lines[-1] else "+" if not lines[-2] else ""
        if not lines[-1]:
            lines.pop()
        margin = " " * indent
        body = "\n".join([margin + line if line else "" for line in lines])
        return f"|{_STEP}{keep}\n{body}"


def _one_line(text: str) -> str:
    if _PLAIN.match(text) is not None and text.lower() not in _RESERVED:
        return text
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    if _HALF.match(sign):  # no UTF-8 can carry it
        return "\ufffd"
    return _SHORT.get(sign) or (f"\\x{ord(sign):02x}" if ord(sign) < 0x100 else f"\\u{ord(sign):04x}")


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    digits, exponent, power = repr(value).partition("e")
    # Without a point it is no number to a reader of YAML 1.1.
    return f"{digits}.0e{power}" if exponent and "." not in digits else f"{digits}{exponent}{power}"
