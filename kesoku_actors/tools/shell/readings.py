"""Every simple command that a shell might find in a text, as far as it shows without running it. Pure.

A blocklist is matched on these readings. They err on the side of finding too much: what is in quotes is read both as
one word and as if there were no quotes, cut at every operator. So `git rm --cached f` and `echo "rm"` pass a pattern
for `rm`; `r''m`, `/bin/rm`, `A=1 rm`, `2>&1 rm`, `x; rm`, `$(rm x)`, `env rm`, `X=rm; $X`, `/bin/r?` and `find -exec
rm` do not, and neither does `echo "a; rm b"`, which a shell would only print. Names that are put together when the
command runs (pieces of variables, decoded text) cannot be found here.

Two tables (see `programs`) say which programs run what their arguments name. Behind a wrapper each later word is read
as a program; behind other programs only what follows a mark, such as `-exec` of `find`.

The work is linear in the text: of what may stand behind a wrapper or a mark a bounded number of arguments is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from heapq import heappop, heappush
from typing import Final

from kesoku_actors.tools.shell.programs import DOES_THE_SAME, LOADER, MARKS, VALUE, WRAPPERS

_CALLERS: Final = (
    "system|popen|Popen|exec[lv]?p?e?|exec(?:File)?(?:Sync)?|spawn(?:[lv]?p?e?|p|Sync)|run|call|check_call|check_output|"
    "getoutput|getstatusoutput|shell|passthru|proc_open|qx|%x"
)
"""Functions of many languages that run what they are given."""
_BRACKETED: Final = r"if|then|elif|else|while|until|do|time|coproc"
_CUTS: Final = re.compile(
    # A bracket directly behind another word is no group: `print('rm')` of a script only prints.
    rf"[;&|)`\n\r{{}}]|(?<!\w)\(|\b(?:{_BRACKETED})\(|(?:{_CALLERS})\s*\([\[\s]*"
    rf"|\b(?:system|exec|popen|qx)\s+(?=[\"'])"
)
_FED: Final = re.compile(
    r"\|&?\s*(?:[^\s|;&]*/)?(?:ba|da|z|k|mk|a)?sh(?:\s+-\w*)*\s*(?:[;&|)}\n]|$)|(?:\A|[;&|({\n])[ \t]*\"?(?:\$\(|`)"
)
"""A shell that reads commands from a pipe, or a substitution that stands where a command begins."""
_PRINTERS: Final = frozenset({"echo", "printf"})
"""Programs whose arguments are what such a shell or substitution is given."""
_QUOTING: Final = re.compile(r"\$?['\"]|\\")
_QUOTED: Final = re.compile(r"\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'", re.S)
_WORD_ENDS: Final = re.compile(r"[\s;&|()<>`{}]")
_GLUED: Final = re.compile(r"(?<!\S)(-\w)(?=\$?['\"])")
"""An option whose value is quoted and directly behind it."""
_CONTINUED: Final = re.compile(r"\\\r?\n")
_JOINED_REDIRECTION: Final = re.compile(r"([<>])&|>\|")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=(\S*)")
_REDIRECTION: Final = re.compile(r"\d*(?:<<<|<<-?|<>|>>|<|>)")
_KEYWORDS: Final = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "coproc"})
"""Words of the shell behind which a command begins."""
_ARGUMENTS: Final = 16
"""How many arguments are read of what may be a command behind a wrapper or a mark."""
_WRAPPER: Final = ""
"""Stands for every wrapper: all that is behind the first one is read already."""
_GLOBS: Final = re.compile(r"[*?]|\[[^]]+\]")
_LITERAL: Final = re.compile(r"[^*?\[\]!^]")


def readings(command: str, names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the readings of `command`, each as `name argument ...`, without repetitions.

    `names` are those for which a name with wildcards may stand.
    """
    found: dict[str, None] = {}
    known = tuple(names)
    expands = "$" in command
    wrappers = WRAPPERS | _PRINTERS if _FED.search(command) else WRAPPERS
    for text in dict.fromkeys(_texts(_GLUED.sub(r"\1 ", _CONTINUED.sub("", command)))):
        for fragment in _CUTS.split(text):
            words = [plain for word in fragment.split() if (plain := _QUOTING.sub("", word))]
            found.update(dict.fromkeys(_commands(words, known, wrappers)))
            if expands or "alias" in words:
                found.update(dict.fromkeys(_assigned(words)))
    return tuple(found)


def _texts(text: str) -> Iterator[str]:
    """`text` as it stands, with `>&` and `>|` as the redirections they are, and with each quoted piece as one word."""
    yield text
    redirected = _JOINED_REDIRECTION.sub(lambda found: found[1] or ">", text)
    yield redirected
    yield _JOINED_REDIRECTION.sub(
        lambda found: found[1] or ">", _QUOTED.sub(lambda quoted: _WORD_ENDS.sub("_", quoted[0]), text)
    )


def _commands(words: list[str], names: tuple[str, ...], wrappers: frozenset[str]) -> Iterator[str]:
    starts = [(0, 0)]  # a word, and how much of it is in front of the command
    seen: set[tuple[int, int]] = set()
    scanned: set[str] = set()  # the leftmost start comes first, so one look at a program's arguments finds every mark
    while starts:
        start = heappop(starts)
        if start in seen:
            continue
        seen.add(start)
        first = start == (0, 0)
        skipped = len(words) if first else 0 if _WRAPPER in scanned else _ARGUMENTS
        index, offset = _past_prefixes(words, start, skipped)
        if index == len(words):
            continue
        program = words[index][offset:]
        end = len(words) if first else index + 1 + _ARGUMENTS
        arguments = words[index + 1 : end]
        yield from (" ".join((name, *arguments)) for name in _names(program, names, first=first))
        name = _name(program)
        kind = _WRAPPER if _wraps(name, arguments, wrappers) else name
        if kind not in scanned:
            scanned.add(kind)
            for found in _behind(kind, words, index + 1):
                heappush(starts, found)
        yield from (same for (who, how), same in DOES_THE_SAME.items() if who == name and how in words[index:])


def _wraps(name: str, arguments: list[str], wrappers: frozenset[str]) -> bool:
    if name == "command" and arguments[:1] in (["-v"], ["-V"]):
        return False  # it only tells what a name stands for
    return name in wrappers or name.startswith("-")


def _behind(kind: str, words: list[str], index: int) -> Iterator[tuple[int, int]]:
    """Where commands may begin among the arguments of such a program, which begin at `index`."""
    marks = VALUE if kind == _WRAPPER else MARKS.get(kind)
    if marks is None:
        return
    for at in range(index, len(words)):
        if kind == _WRAPPER:
            yield at, 0
        if (mark := marks.match(words[at])) is not None:
            yield (at, mark.end()) if mark.end() < len(words[at]) else (at + 1, 0)


def _assigned(words: list[str]) -> Iterator[str]:
    """What variables and aliases are set to: a name may stand for it later."""
    for word in words:
        if (assignment := _ASSIGNMENT.fullmatch(word)) is not None and assignment[1]:
            yield _name(assignment[1])


def _past_prefixes(words: list[str], start: tuple[int, int], most: int) -> tuple[int, int]:
    """Where, behind at most `most` words, the first word is that is no keyword, no assignment and no redirection."""
    index, offset = start
    end = min(len(words), index + most)
    while index < end:
        word = words[index][offset:]
        redirection = _REDIRECTION.match(word)
        if redirection is not None:
            index += 1 if redirection.end() < len(word) else 2
        elif word in _KEYWORDS or _ASSIGNMENT.fullmatch(word):
            index += 1
        else:
            break
        offset = 0
    return min(index, len(words)), offset


def _names(program: str, names: tuple[str, ...], *, first: bool) -> Iterator[str]:
    """The program's name, and each of `names` for which its wildcards may stand.

    A `*` alone is hardly ever the program: `time ls *`, `case x in *)`.
    """
    name = _name(program)
    yield name
    if _GLOBS.search(name) and (_LITERAL.search(name) or (first and "/" in program)):
        pattern = name.replace("[^", "[!")
        yield from (known for known in names if fnmatchcase(known, pattern))


def _name(word: str) -> str:
    name = word.rsplit("/", 1)[-1] or word
    return "ld.so" if LOADER.fullmatch(name) else name
