"""What a validator of requests returns, and the words it fills in (P1). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from attrs import frozen

BEGINNING: Final = "(the beginning of this conversation is missing)"
GO_ON: Final = "(go on)"


@frozen(kw_only=True)
class RepairedBody:
    """A body that keeps the rules, and what had to be done for it; nothing for one that kept them."""

    body: Mapping[str, Any]
    repairs: tuple[str, ...]


def fresh_ids(prefix: str, taken: Iterable[str]) -> Iterator[str]:
    """Yield ids of letters and digits behind a prefix, none of them in `taken`."""
    known = set(taken)
    return (id for number in count() if (id := f"{prefix}{number:05}") not in known)
