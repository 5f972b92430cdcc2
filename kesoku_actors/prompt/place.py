"""Where a talk takes place, in names that people chose: untrusted text (P03). Pure.

An adapter notes the names with every message of a person, as `metadata["place"]`: an object with some of the keys
`server`, `channel`, `thread` and `person`. The first message of a session decides, so that a rename in the middle of a
talk neither changes its prompt nor slips something new into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kesoku_actors.protocol import Message, Role
from kesoku_actors.values import frozen

KINDS: Final = ("server", "channel", "thread", "person")
"""From the widest to the narrowest; what stands under another key is not told."""
LONGEST_NAME: Final = 60
"""Characters."""
_QUOTES: Final = str.maketrans({'"': "'", "\\": "/"})
"""What ends a quote, and what makes the next sign look as if it did not."""


@frozen(kw_only=True)
class Place:
    """Names as they were given, each with what it is the name of."""

    names: tuple[tuple[str, str], ...]

    def quoted(self) -> str:
        """Return the names on one line, each in quotes it cannot leave and cut to `LONGEST_NAME`."""
        plain = ((kind, _plain(name)) for kind, name in self.names)
        return ", ".join(f'{kind} "{name}"' for kind, name in plain if name)


def place_in(rows: Iterable[Message]) -> Place | None:
    """Return where the first message of a person was written, if its adapter said so."""
    first = next((row for row in rows if row.role is Role.USER), None)
    noted: Any = first.metadata.get("place") if first is not None else None
    if not isinstance(noted, Mapping):
        return None
    names = tuple((kind, noted[kind]) for kind in KINDS if isinstance(noted.get(kind), str) and noted[kind].strip())
    return Place(names=names) if names else None


def _plain(name: str) -> str:
    """The name without what could end its quotes or its line, or turn the direction of the text."""
    visible = "".join(sign if sign.isprintable() else " " for sign in name.translate(_QUOTES))
    words = " ".join(visible.split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"
