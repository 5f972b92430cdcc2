"""Names that a provider refuses, mapped to names that it takes. Pure.

The mapping needs no table to go out, so that a name is the same in every request, whatever other tools there are. It is
one to one: a name that is taken stays, unless it looks like a mapped one; any other becomes what is readable of it and
a digest of the whole. The way back is a table of the names that went out.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

from kesoku_actors.values import frozen

_DIGITS: Final = 16
_MAPPED: Final = re.compile(rf".*_x[0-9a-f]{{{_DIGITS}}}", re.DOTALL)


@frozen
class NameRule:
    """Which names a provider takes; whatever else it is, letters, digits and `_` must do."""

    allowed: re.Pattern[str]
    """Of the whole name."""
    longest: int = 64

    def outward(self, name: str) -> str:
        """Return the name that stands for `name` on the wire."""
        if len(name) <= self.longest and self.allowed.fullmatch(name) and not _MAPPED.fullmatch(name):
            return name
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        readable = re.sub(r"[^A-Za-z0-9]+", "_", plain)[: self.longest - _DIGITS - 3]
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        return f"{'' if readable[:1].isalpha() else '_'}{readable}_x{digest}"
