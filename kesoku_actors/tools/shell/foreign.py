"""Commands in the code of other languages: `os.system("rm x")`, `system "rm x"`, `1e rm x` of sed. Pure.

A guard rail: what is written out is found, in the calls that everybody knows; what is put together is not. A word that
is only printed (`print("rm")`) is nobody's command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_LITERAL: Final = r"""(?:[rbfuRBFU]{0,2})(?:"((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)')"""
_STRING: Final = re.compile(_LITERAL, re.S)
_CALL: Final = re.compile(
    r"(?:\b(?:system|popen|Popen|exec[lv]?p?e?|exec(?:File)?(?:Sync)?|(?:posix_)?spawn(?:[lv]?p?e?|p|Sync)|run|call|"
    r"check_call|check_output|getoutput|getstatusoutput|shell|shell_exec|passthru|proc_open)\s*\([^'\")\n]{0,60}"
    r"|\b(?:system|exec|popen|shell)\s+)(?=[rbfuRBFU]{0,2}[\"'])"
)
_BETWEEN: Final = re.compile(r"[\s,\[(]*")
_BRACKETED: Final = re.compile(r"(?:\bqx|%x)\s*(?:\(([^)]*)\)|\{([^}]*)\}|/([^/]*)/|\|([^|]*)\||!([^!]*)!)")
_BACKTICKS: Final = re.compile(r"`([^`]*)`")
_PIPED: Final = re.compile(rf"\|&?\s*{_LITERAL}|{_LITERAL}\s*\|&?\s*getline", re.S)
_SED_RUN: Final = re.compile(
    r"(?:^|[;{}\n])[\s\d$,~+!]*(?:/(?:\\.|[^/\\])*/[I\s,!]*){0,2}e(?:[ \t]+([^\n]*)|[ \t]*(?=[;}\n]|$))"
)
_SED_RUNS_RESULT: Final = re.compile(
    r"(?:^|[;{}\n\d/$!\s])s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gpIiMm\d]*e", re.S
)
_EDITOR: Final = re.compile(r"[+:]*\s*(?:silent!?\s+)?[\d,.$%]*!(.+)", re.S)
_DEBUGGER: Final = re.compile(r"(?:shell|pipe|make)\s+(.+)", re.S)


def commands_in(code: str, *, backticks: bool = False) -> Iterator[str]:
    """Yield what `code` gives to a shell or runs, as far as it is written out."""
    for call in _CALL.finditer(code):
        literals, at = [], call.end()
        while (literal := _STRING.match(code, at)) is not None:
            literals.append(_unescaped(literal[1] if literal[1] is not None else literal[2]))
            between = _BETWEEN.match(code, literal.end())
            at = between.end() if between is not None else literal.end()
        yield " ".join(literals)
    for patterns in (_BRACKETED, *((_BACKTICKS,) if backticks else ()), _PIPED):
        for found in patterns.finditer(code):
            yield _unescaped(next((group for group in found.groups() if group is not None), ""))


def sed_scripts(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the scripts among the arguments of sed."""
    given: list[str] = []
    operands: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        if word in ("-e", "--expression"):
            given.append(next(waiting, ""))
        elif word.startswith("--expression="):
            given.append(word.partition("=")[2])
        elif re.match(r"-[nErsuz]*e.", word):
            given.append(word.partition("e")[2])
        elif not word.startswith("-"):
            operands.append(word)
    yield from given or operands[:1]


def commands_in_sed(script: str) -> Iterator[str | None]:
    """Yield what a script of sed runs; none for what it makes of its input and then runs."""
    for found in _SED_RUN.finditer(script):
        yield found[1] or None
    if _SED_RUNS_RESULT.search(script):
        yield None


def commands_in_editor(arguments: Sequence[str]) -> Iterator[str]:
    """Yield what the arguments of an editor, pager or debugger have it run."""
    for word in arguments:
        if (found := _EDITOR.fullmatch(word) or _DEBUGGER.fullmatch(word)) is not None:
            yield found[1]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.S)
