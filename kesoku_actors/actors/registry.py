"""Refs by name, each with its owner.

Whoever registers keeps the registration and withdraws it when the ref goes out of use; an owner that leaves (a plugin,
an adapter) is withdrawn as a whole. A name stands for one ref at a time.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, final

from attrs import frozen

from .errors import NameTaken, NameUnknown
from .ref import Ref


@frozen(kw_only=True)
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

    def register(self, name: str, ref: Ref[Any], *, owner: str) -> Registration:
        """Make `ref` known as `name`. Raises `NameTaken`. Leaving the registration as a context withdraws it."""
        if name in self._entries:
            raise NameTaken(name, f"the registry, by {self._entries[name].owner}")
        self._entries[name] = entry = Entry(name=name, owner=owner, ref=ref)
        return Registration(self, entry)

    def lookup(self, name: str) -> Ref[Any]:
        """Return the ref known as `name`. Raises `NameUnknown`, which lists those known."""
        try:
            return self._entries[name].ref
        except KeyError:
            raise NameUnknown(name, tuple(self._entries)) from None

    def entries(self) -> tuple[Entry, ...]:
        """Return everything registered, in the order of registration."""
        return tuple(self._entries.values())

    def withdraw(self, entry: Entry) -> None:
        """Forget one entry; does nothing when it is withdrawn already, also if its name stands for another now."""
        if self._entries.get(entry.name) is entry:
            del self._entries[entry.name]

    def withdraw_owner(self, owner: str) -> tuple[Entry, ...]:
        """Forget every entry of `owner` and return them."""
        gone = tuple(entry for entry in self._entries.values() if entry.owner == owner)
        for entry in gone:
            self.withdraw(entry)
        return gone


@final
class Registration:
    """Undoes one `Registry.register`."""

    def __init__(self, registry: Registry, entry: Entry) -> None:
        self._registry = registry
        self.entry = entry

    def withdraw(self) -> None:
        """Forget the name; further calls do nothing."""
        self._registry.withdraw(self.entry)

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.withdraw()
