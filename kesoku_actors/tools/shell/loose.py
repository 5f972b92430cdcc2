"""The commands in a text that the grammar does not understand. Pure.

A shell might understand it all the same, or another shell might. So the text is cut wherever any shell could begin a
command, quotes or not, and each piece is read as one. That finds too much rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kesoku_actors.tools.shell.expansion import Fields, ansi_decoded

_CONTINUED: Final = re.compile(r"\\\r?\n")
_REDIRECTION: Final = re.compile(r"\d*(?:&>>?|<<<|<<-?|<>|>>|[<>]&|>\||[<>](?!\())\s*[^\s;&|<>()]*")
_ANSI: Final = re.compile(r"\$'((?:\\.|[^'\\])*)'", re.S)
_CUTS: Final = re.compile(r"[;&|()`\n\r{}!]|<\(|>\(|:?[-=+](?=[^\s{}]*\})")
_QUOTING: Final = re.compile(r"\$?['\"]|\\")
_BLANK: Final = re.compile(r"\$\{?IFS\}?|\s+")
_WILDCARD: Final = re.compile(r"([*?\[])")
_PREFIX: Final = re.compile(
    r"(?:if|then|elif|else|while|until|do|time|coproc|in|esac|fi|done|\[\[|\]\])$|[A-Za-z_]\w*\+?=(?P<value>.*)"
)


def loose_commands(text: str) -> Iterator[Fields]:
    """Yield the fields of everything in `text` that might be a command."""
    text = _ANSI.sub(lambda found: ansi_decoded(found[1]), text)
    texts = (_CONTINUED.sub("", text), _CONTINUED.sub("\n", text))
    for redirected in dict.fromkeys(each for one in texts for each in (one, _REDIRECTION.sub(" ", one))):
        for piece in _CUTS.split(redirected):
            words = [_WILDCARD.sub("\0\\1", bare) for word in _BLANK.split(piece) if (bare := _QUOTING.sub("", word))]
            at = 0
            while at < len(words) and (prefix := _PREFIX.match(words[at])) is not None:
                if prefix["value"]:
                    yield (prefix["value"],)
                at += 1
            if words[at:]:
                yield tuple(words[at:])
