"""What a person types to search, as an FTS5 expression and as the words to show. Pure.

Every word has to occur; text between double quotes has to occur as it stands; a star at the end of a word stands for
any ending. Nothing else has a meaning: each part reaches FTS5 as a quoted string, so that no text is a syntax error,
and none names a column. A part without a letter, a digit or an emoji asks for nothing and is passed over by FTS5
itself: strings side by side are a conjunction from which it leaves out the empty ones.
"""

from __future__ import annotations

import re
from typing import Final

from kesoku_actors.values import frozen

LONGEST: Final = 1_000
"""Characters of a query that are looked at; what is longer was pasted, not asked."""
_MOST_PARTS: Final = 32
_PART: Final = re.compile(r'"([^"]*)"?|([^\s"]+)')


@frozen(kw_only=True)
class Query:
    """A query that FTS5 can run; `expression` is empty when nothing was asked for."""

    expression: str
    parts: tuple[str, ...]
    """Words and phrases in the order they were typed, without stars and quotes."""


def parse(text: str) -> Query:
    """Return what `text` asks for. Never raises: halves of surrogate pairs and NULs become question marks."""
    sound = text[:LONGEST].encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
    quoted, parts = [], []
    for phrase, word in _PART.findall(sound)[:_MOST_PARTS]:
        part = phrase or word.rstrip("*")
        if part.strip():
            parts.append(part)
            quoted.append(f'"{part}"' + ("*" if word.endswith("*") else ""))
    return Query(expression=" ".join(quoted), parts=tuple(parts))
