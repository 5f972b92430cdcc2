r"""What the words of a script become when it runs, as far as that shows before. Pure.

A word becomes one or more *fields*, and a word may have several possible values. What cannot be known stands in a field
as a mark. Marks begin with NUL, which no script can hold:

* `MAY_SPLIT`: text that may also be several fields or none (`$x`, `$(make it)`)
* `ONE_PIECE`: text that stays where it is (`"$x"`, `$HOME`)
* a wildcard or a brace that is not quoted

So `r''m`, `r\m`, `$'\x72m'` and `${x:-rm}` are `rm`, `rm${IFS}-rf` is the two fields `rm` and `-rf`, and `$x` is what
the script sets `x` to, when it sets it to nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from attrs import field

from kesoku_actors.tools.shell.grammar import EXPANSIONS, text_of
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from tree_sitter import Node

MAY_SPLIT: Final = "\0$"
ONE_PIECE: Final = "\0~"
MOST_VALUES: Final = 24
"""A word with more possible values is not known."""

Fields = tuple[str, ...]
Values = tuple[Fields, ...]
"""Each possible value of a word."""

_UNKNOWN: Final[Values] = ((MAY_SPLIT,),)
_UNKNOWN_PIECE: Final[Values] = ((ONE_PIECE,),)
_DEEPEST: Final = 12
_OURS: Final = frozenset(
    {"HOME", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PPID", "PWD", "SHELL", "TMPDIR", "UID", "USER"}
)
"""Variables of the environment that hold one plain word, mostly a path."""
_MARKED: Final = re.compile(r"\\(.)|([*?\[{},]|[ \t\n]+)|(.)", re.S)
_ESCAPED_IN_QUOTES: Final = re.compile(r"\\([$`\"\\\n])")
_ANSI: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ANSI_LETTERS: Final = dict(zip("ntrabeEfv", "\n\t\r\a\b\x1b\x1b\f\v", strict=True))
_GAP: Final = "\0 "
_MARK: Final = re.compile("\0(.)", re.S)
_DEFAULTS: Final = frozenset({":-", "-", ":=", "=", ":+", "+"})


@frozen
class Scope:
    """What the variables of a script can be, and what its substitutions print."""

    variables: Mapping[str, Values] = field(factory=dict)
    printed: Mapping[int, str] = field(factory=dict)
    """By the first byte of a substitution, what it prints, where that is known."""


def values(node: Node, scope: Scope, depth: int = 0) -> Values:
    """Return the possible values of the word `node`."""
    if depth > _DEEPEST:
        return _UNKNOWN
    match node.type:
        case "word" | "number" | "variable_name" | "special_variable_name" | "extglob_pattern" | "regex":
            return (_unquoted(text_of(node)),)
        case "raw_string":
            return ((text_of(node)[1:-1],),)
        case "ansi_c_string":
            return ((ansi_decoded(text_of(node)[2:-1]),),)
        case "string" | "translated_string":
            return _quoted(node, scope, depth)
        case "simple_expansion" | "expansion":
            return _variable(node, scope, depth)
        case "command_substitution":
            printed = scope.printed.get(node.start_byte)
            return _UNKNOWN if printed is None else ((tuple(printed.split()),))
        case "arithmetic_expansion" | "process_substitution":
            return _UNKNOWN_PIECE
        case "command_name":
            return values(node.children[0], scope, depth + 1) if node.children else _UNKNOWN
        case "concatenation":
            return _joined((values(child, scope, depth + 1) for child in node.children), braces=True)
        case "brace_expression":
            return (_unquoted(text_of(node)),)
        case "array":
            return _UNKNOWN
        case "`" | "$" | '"' | "'":
            return (("",),)
        case _:
            return _UNKNOWN if node.children else ((text_of(node),),)


def combined(words: Iterable[Values]) -> tuple[Fields, ...]:
    """Return every list of fields that `words` can be together; one that is not known where there are too many."""
    known = list(words)
    total = 1
    for each in known:
        total *= len(each)
        if total > MOST_VALUES:
            return (tuple(part for each in known for part in (each[0] if len(each) == 1 else (MAY_SPLIT,))),)
    return tuple(tuple(part for fields in choice for part in fields) for choice in product(*known))


def plain(text: str) -> str:
    """Return a field as a person would write it: wildcards and braces as they are, what is not known as `$?`."""
    return _MARK.sub(lambda mark: "$?" if mark[0] in (MAY_SPLIT, ONE_PIECE) else mark[1], text)


def ansi_decoded(text: str) -> str:
    r"""Return what `$'text'` stands for, also what `printf` makes of its format."""

    def one(found: re.Match[str]) -> str:
        hexadecimal, octal = found[1] or found[2] or found[3], found[4]
        if hexadecimal or octal:
            number = int(hexadecimal or octal, 16 if hexadecimal else 8)
            return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
        if found[5]:
            return chr(ord(found[5]) & 0x1F or 0x20)
        return _ANSI_LETTERS.get(found[6], found[6] if found[6] in "\\'\"?" else found[0])

    return _ANSI.sub(one, text)


def _unquoted(text: str) -> Fields:
    """Text without quotes: mostly one field, but of braces the grammar sometimes makes one word of two."""

    def one(found: re.Match[str]) -> str:
        if found[1] is not None:
            return "" if found[1] == "\n" else found[1]
        if found[2]:
            return _GAP if found[2][0] in " \t\n" else f"\0{found[2]}"
        return found[3]

    return tuple(_MARKED.sub(one, text).split(_GAP))


def _quoted(node: Node, scope: Scope, depth: int) -> Values:
    """A string in double quotes: always one field, unless a list of arguments stands in it."""
    source = node.text or b""
    at = start = 2 if source[:1] == b"$" else 1
    parts: list[Values] = []

    def literal(end: int) -> None:
        text = source[at:end].decode("utf-8", "replace")
        parts.append(((_ESCAPED_IN_QUOTES.sub(lambda found: found[1].strip("\n"), text),),))

    holder = node if node.type == "string" else next((child for child in node.children if child.type == "string"), node)
    for child in holder.children:
        if child.type not in EXPANSIONS:
            continue
        literal(child.start_byte - node.start_byte)
        at = child.end_byte - node.start_byte
        parts.append(_in_quotes(child, scope, depth))
    literal(max(len(source) - 1, start))
    return _joined(parts)


def _in_quotes(node: Node, scope: Scope, depth: int) -> Values:
    if node.type == "command_substitution" and (printed := scope.printed.get(node.start_byte)) is not None:
        return ((printed.rstrip("\n"),),)
    if node.type not in ("simple_expansion", "expansion"):
        return _UNKNOWN_PIECE
    if "@" in text_of(node):
        return _UNKNOWN
    known = _variable(node, scope, depth, quoted=True)
    return tuple((" ".join(fields).replace(MAY_SPLIT, ONE_PIECE),) for fields in known)


def _variable(node: Node, scope: Scope, depth: int, *, quoted: bool = False) -> Values:
    names = [child for child in node.children if child.type in ("variable_name", "special_variable_name")]
    operators = [text_of(child) for child in node.children if not child.is_named and child.type not in ("$", "${", "}")]
    if len(names) != 1 or set(operators) - _DEFAULTS:
        return _UNKNOWN
    name = text_of(names[0])
    known = _looked_up(name, scope, quoted=quoted)
    if not operators:
        return known
    given = [child for child in node.children if child.is_named and child.start_byte >= names[0].end_byte]
    other = values(given[0], scope, depth + 1) if given else (("",),)
    return tuple(dict.fromkeys((*known, *other)))


def _looked_up(name: str, scope: Scope, *, quoted: bool) -> Values:
    if (known := scope.variables.get(name)) is not None:
        return known if quoted else tuple(_split(fields) for fields in known)
    if name == "IFS":
        return ((" \t\n",),) if quoted else (("", ""),)
    return _UNKNOWN_PIECE if name in _OURS else _UNKNOWN


def _split(fields: Fields) -> Fields:
    """A value that is not quoted, cut where it has blanks."""
    text = " ".join(fields)
    parts = text.split()
    if not parts:
        return ()
    return (*(("",) if text[0].isspace() else ()), *parts, *(("",) if text[-1].isspace() else ()))


def _joined(parts: Iterable[Values], *, braces: bool = False) -> Values:
    """The values of a word that is written in pieces: the last field of one and the first of the next are one field."""
    found: list[Fields] = []
    for choice in islice(product(*parts), MOST_VALUES + 1):
        fields: list[str] = []
        for piece in choice:
            if fields and piece:
                fields[-1] += piece[0]
                fields.extend(piece[1:])
            else:
                fields.extend(piece)
        found.append(_braced(tuple(fields)) if braces else tuple(fields))
    if len(found) > MOST_VALUES:
        return _UNKNOWN
    return tuple(dict.fromkeys(found))


def _braced(fields: Fields) -> Fields:
    return tuple(one for each in fields for one in (_expanded(each) if "\0{" in each and "\0," in each else [each]))


def _expanded(text: str) -> list[str]:
    """`{a,b}` as Bash writes it out: one field for each of its parts."""
    waiting, done = [text], list[str]()
    while waiting and len(waiting) + len(done) <= MOST_VALUES:
        each = waiting.pop(0)
        end = each.find("\0}")
        start = each.rfind("\0{", 0, end) if end >= 0 else -1
        if start < 0:
            done.append(each)
            continue
        waiting += [each[:start] + part + each[end + 2 :] for part in each[start + 2 : end].split("\0,")]
    return [*done, *waiting]
