"""Another value of the same class, with some of its fields changed. Pure.

`attrs.evolve` asks a table for each field and calls the constructor with all of them by name: 9 us for a turn of 27
fields, and a turn changes a dozen times. This one copies the slots and fills in what is new, in a third of that.
Nothing is checked or converted again, so it is for classes that check nothing: any other is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import fields

V = TypeVar("V")

Fill = Callable[[Any, Any], None]


@cache
def _shape(kind: type[Any]) -> tuple[Callable[[Any], Sequence[Any]], tuple[Fill, ...], dict[str, int]]:
    """Return how the fields of a class are read, how each is filled, and where among them a name stands."""
    attributes = fields(kind)
    if hasattr(kind, "__attrs_post_init__") or any(
        each.validator or each.converter or not each.init for each in attributes
    ):
        raise TypeError(f"{kind.__name__} checks what it is made of: use attrs.evolve")
    names = [each.name for each in attributes]
    read = attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]
    return read, tuple(getattr(kind, name).__set__ for name in names), {name: at for at, name in enumerate(names)}


if TYPE_CHECKING:
    from attrs import evolve as evolve  # the checker of types knows that one
else:

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
