"""Every simple command that a shell might find in a text, as far as it shows without running it. Pure.

A blocklist is matched on these readings. They err on the side of finding too much, because quotes are not understood:
the text is cut at every operator, also within quotes, and quoting marks are taken away. So `git rm --cached f` and
`echo "rm"` pass a pattern for `rm`; `r''m`, `/bin/rm`, `A=1 rm`, `x; rm`, `$(rm x)`, `env rm`, `xargs rm`, `X=rm; $X`
and `find -exec rm` do not, and neither does `echo "a; rm b"`, which a shell would only print. Names that are put
together when the command runs (pieces of variables, decoded text) cannot be found here.

The work is linear in the text: of what may stand behind a wrapper a bounded number of arguments is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_CUTS: Final = re.compile(r"[;&|()`\n\r{}]")
_QUOTING: Final = re.compile(r"\$?['\"]|\\")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=(\S*)")
_REDIRECTION: Final = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||<|>)")
_KEYWORDS: Final = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "coproc"})
"""Words of the shell behind which a command begins."""
WRAPPERS: Final = (
    "ash bash bsh builtin busybox bwrap chroot chrt command dash doas entr env eval exec fakeroot fd find "
    "firejail flock ionice ksh ltrace nice nohup nsenter parallel pkexec prlimit rlwrap runuser script setpriv "
    "setsid sh ssh stdbuf strace su sudo systemd-run taskset time timeout toybox trap unshare watch xargs zsh"
)
"""Programs that run what their arguments name; which of the arguments, only they know. Separated by spaces."""
_ARGUMENTS: Final = 16
"""How many arguments are read of what may be a command behind a wrapper."""


def readings(command: str) -> tuple[str, ...]:
    """Return the readings of `command`, each as `name argument ...`, without repetitions."""
    found: dict[str, None] = {}
    expands = "$" in command
    for fragment in _CUTS.split(_CONTINUED.sub("", command)):
        words = [plain for word in fragment.split() if (plain := _QUOTING.sub("", word))]
        found.update(dict.fromkeys(_commands(words)))
        if expands or "alias" in words:
            found.update(dict.fromkeys(_assigned(words)))
    return tuple(found)


def _commands(words: list[str]) -> Iterator[str]:
    start = _past_prefixes(words)
    if start == len(words):
        return
    yield _written(words[start:])
    if _name(words[start]) in WRAPPERS.split():
        for index in range(start + 1, len(words)):
            yield _written(words[index : index + 1 + _ARGUMENTS])


def _assigned(words: list[str]) -> Iterator[str]:
    """What variables and aliases are set to: a name may stand for it later."""
    for word in words:
        if (assignment := _ASSIGNMENT.fullmatch(word)) is not None and assignment[1]:
            yield _name(assignment[1])


def _past_prefixes(words: list[str]) -> int:
    """The index of the first word that is no keyword, no assignment and no redirection."""
    index = 0
    while index < len(words):
        redirection = _REDIRECTION.match(words[index])
        if redirection is not None:
            index += 1 if redirection.end() < len(words[index]) else 2
        elif words[index] in _KEYWORDS or _ASSIGNMENT.fullmatch(words[index]):
            index += 1
        else:
            break
    return min(index, len(words))


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1] or word


def _written(words: list[str]) -> str:
    return " ".join((_name(words[0]), *words[1:]))
