"""Every simple command that a shell might find in a text, as far as it shows without running it. Pure.

A blocklist is matched on these readings. They err on the side of finding too much, because quotes are not understood:
the text is cut at every operator, also within quotes, and quoting marks are taken away. So `git rm --cached f` and
`echo "rm"` pass a pattern for `rm`, `r''m`, `/bin/rm`, `A=1 rm`, `x; rm`, `$(rm x)`, `env rm`, `xargs rm` and
`find -exec rm` do not, and neither does `echo "a; rm b"`, which a shell would only print. Names that are put together
when the command runs (variables, decoded text) cannot be found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_CUTS: Final = re.compile(r"[;&|()`\n\r{}]|\$\(|<\(|>\(|(?<=\s)!(?=\s)|^\s*!(?=\s)")
_QUOTING: Final = re.compile(r"\\\n|['\"\\]")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\S*")
_REDIRECTION: Final = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||<|>)")
_WRAPPERS: Final = (
    "env nohup timeout xargs busybox toybox nice ionice setsid stdbuf time command builtin exec eval sh bash dash zsh "
    "ksh ash doas sudo su pkexec chroot unshare nsenter watch parallel script strace ltrace flock find fd then do else "
    "elif if while until systemd-run runuser"
)
"""Programs and keywords behind which another command is named."""
_LONGEST_TAIL: Final = 64
"""How many words behind a wrapper are read as a command; each is a reading of its own."""


def readings(command: str) -> tuple[str, ...]:
    """Return the readings of `command`, each as `name argument ...`, without repetitions."""
    found: dict[str, None] = {}
    for fragment in _CUTS.split(_CONTINUED.sub("", command)):
        words = [plain for word in fragment.split() if (plain := _QUOTING.sub("", word))]
        for reading in _commands(words):
            found[reading] = None
    return tuple(found)


def _commands(words: list[str]) -> Iterator[str]:
    start = _past_prefixes(words)
    if start == len(words):
        return
    yield _written(words[start:])
    if _name(words[start]) in _WRAPPERS.split():
        for index in range(start + 1, min(len(words), start + 1 + _LONGEST_TAIL)):
            yield _written(words[index:])


def _past_prefixes(words: list[str]) -> int:
    """The index of the first word that is no assignment and no redirection."""
    index = 0
    while index < len(words):
        redirection = _REDIRECTION.match(words[index])
        if redirection is not None:
            index += 1 if redirection.end() < len(words[index]) else 2
        elif _ASSIGNMENT.fullmatch(words[index]):
            index += 1
        else:
            break
    return min(index, len(words))


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1] or word


def _written(words: list[str]) -> str:
    return " ".join((_name(words[0]), *words[1:]))
