"""The words of one plain command, or the reason why it is not plain. Pure.

Plain is what every POSIX shell would read as exactly these words: no operator, redirection, expansion, comment, keyword
or assignment; quotes as `'...'` and `"..."`, a backslash before a character. What is doubtful is refused, so that the
words which were checked are the words which run.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from kesoku_actors.errors import PeerError

_OPERATORS: Final = {
    ";": "the operator ';'",
    "&": "the operator '&'",
    "|": "the operator '|'",
    "<": "the redirection '<'",
    ">": "the redirection '>'",
    "(": "the operator '('",
    ")": "the operator ')'",
    "\n": "a second line",
    "\r": "a second line",
}
_EXPANSIONS: Final = {
    "$": "the expansion '$'",
    "`": "the expansion '`'",
    "*": "the expansion '*'",
    "?": "the expansion '?'",
    "[": "the expansion '['",
    "{": "the expansion '{'",
    "}": "the expansion '}'",
    "~": "the expansion '~'",
    "!": "the expansion '!'",
    "#": "the comment '#'",
    "^": "the operator '^'",
}
_IN_DOUBLE_QUOTES: Final = {key: _EXPANSIONS[key] for key in "$`!"}
_ESCAPABLE_IN_DOUBLE_QUOTES: Final = frozenset('$`"\\')
_KEYWORDS: Final = "if then else elif fi do done case esac while until for in select function time coproc"
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_./+-]+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class NotPlain(PeerError):
    """The command is not one plain command; the text says what in it is not."""


def plain_words(command: str) -> tuple[str, ...]:
    """Return the words of `command`, at least one. Raises `NotPlain`."""
    words: list[str] = []
    word: list[str] | None = None
    index = 0
    while index < len(command):
        character = command[index]
        index += 1
        if character in " \t":
            if word is not None:
                words.append("".join(word))
                word = None
            continue
        _refuse_invisible(character)
        if (refused := _OPERATORS.get(character) or _EXPANSIONS.get(character)) is not None:
            raise NotPlain(f"{refused} is not allowed outside quotes")
        word = word if word is not None else []
        match character:
            case "'":
                index = _single_quoted(command, index, word)
            case '"':
                index = _double_quoted(command, index, word)
            case "\\":
                index = _escaped(command, index, word)
            case _:
                word.append(character)
    if word is not None:
        words.append("".join(word))
    if not words:
        raise NotPlain("there is no command in it")
    _check_program(words[0])
    return tuple(words)


def _single_quoted(command: str, index: int, word: list[str]) -> int:
    end = command.find("'", index)
    if end < 0:
        raise NotPlain("a quote ' is not closed")
    for character in command[index:end]:
        _refuse_invisible(character)
    word.append(command[index:end])
    return end + 1


def _double_quoted(command: str, index: int, word: list[str]) -> int:
    while index < len(command):
        character = command[index]
        index += 1
        _refuse_invisible(character)
        if character == '"':
            return index
        if (refused := _IN_DOUBLE_QUOTES.get(character)) is not None:
            raise NotPlain(f"{refused} is not allowed in double quotes; use single quotes")
        if character == "\\" and command[index : index + 1] in _ESCAPABLE_IN_DOUBLE_QUOTES:
            character = command[index]
            index += 1
        word.append(character)
    raise NotPlain('a quote " is not closed')


def _escaped(command: str, index: int, word: list[str]) -> int:
    if index == len(command):
        raise NotPlain("a backslash ends it")
    if command[index] in "\n\r":
        raise NotPlain("a second line is not allowed")
    _refuse_invisible(command[index])
    word.append(command[index])
    return index + 1


def _refuse_invisible(character: str) -> None:
    if character in "\n\r":
        raise NotPlain("a second line is not allowed")
    if character != "\t" and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs"):
        raise NotPlain(f"the invisible character {named(character)} is not allowed")


def _check_program(program: str) -> None:
    for character in program:
        if not character.isascii():
            raise NotPlain(f"the program's name has the character {named(character)}, which is not ASCII")
    if not _PROGRAM.fullmatch(program):
        if _ASSIGNMENT.match(program):
            raise NotPlain("an assignment before the command is not allowed")
        raise NotPlain(f"{program!r} is not the name of a program")
    if program in _KEYWORDS.split():
        raise NotPlain(f"the shell's keyword {program!r} is not allowed")
    if program.endswith("/"):
        raise NotPlain(f"{program!r} is not the name of a program")


def named(character: str) -> str:
    """Return a character's code point and name, for a person who cannot see it."""
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control')}"
