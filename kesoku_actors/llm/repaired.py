"""What a validator of requests returns, and the words it fills in (P1). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from kesoku_actors.values import frozen

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


def role_problems(roles: Sequence[str]) -> Iterator[str]:
    """Yield where a talk does not begin and end with the user, or roles do not alternate."""
    if not roles:
        yield "nothing is said"
        return
    if roles[0] != "user":
        yield f"begins with {roles[0]}"
    if roles[-1] != "user":
        yield f"ends with {roles[-1]}"
    yield from (f"{index}: twice the {role}" for index, role in enumerate(roles[1:], 1) if role == roles[index - 1])
