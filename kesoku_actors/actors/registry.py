"""Refs by name, each with its owner: for who cannot be handed a ref because neither side is there when it is composed.

A name stands for one ref at a time. Whoever registers keeps what takes the name back, and calls it when the ref goes
out of use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from kesoku_actors.values import frozen

from .errors import NameTaken, NameUnknown
from .ref import Ref


@frozen(kw_only=True, eq=False)
class Entry:
    """One registered name."""

    name: str
    owner: str
    ref: Ref[Any]


@final
class Registry:
    """A directory of refs."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, ref: Ref[Any], *, owner: str) -> Callable[[], None]:
        """Make `ref` known as `name`; return what takes it back (and nobody else's). Raises `NameTaken`."""
        if name in self._entries:
            raise NameTaken(name, f"the registry, by {self._entries[name].owner}")
        self._entries[name] = entry = Entry(name=name, owner=owner, ref=ref)

        def withdraw() -> None:
            if self._entries.get(name) is entry:
                del self._entries[name]

        return withdraw

    def lookup(self, name: str) -> Ref[Any]:
        """Return the ref known as `name`. Raises `NameUnknown`, which lists those known."""
        try:
            return self._entries[name].ref
        except KeyError:
            raise NameUnknown(name, tuple(self._entries)) from None

    def entries(self) -> tuple[Entry, ...]:
        """Return everything registered, in the order of registration."""
        return tuple(self._entries.values())
