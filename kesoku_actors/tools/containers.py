"""Values of values: lists, sets, tuples, tables and unions. Pure.

A JSON text of a list or an object is taken as what it says. A single value is never taken for a list of one: a text may
be meant as a list in some notation, and a number where a list belongs is more often a mistake than an abbreviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kesoku_actors.tools.shapes import (
    InvalidArgument,
    Shape,
    UnsupportedAnnotation,
    checked,
    read_json,
    shown_json,
    wrong,
)


def union_shape(members: Sequence[Shape]) -> Shape:
    """Return the shape of the first member that fits; when none does, of the first that can be read without loss."""

    def take(value: Any, where: str) -> Any:
        refusals: list[str] = []
        for member in [*(m for m in members if m.fits(value)), *(m for m in members if not m.fits(value))]:
            try:
                return member.take(value, where)
            except InvalidArgument as refusal:
                refusals.append(str(refusal))
        raise InvalidArgument("; or ".join(dict.fromkeys(refusals)))

    def give(value: Any) -> Any:
        for member in members:
            try:
                given = member.give(value)
            except (TypeError, ValueError):
                continue
            return given
        raise TypeError(f"{value!r:.80} is of no member of the union")

    return Shape(
        schema={"anyOf": [dict(member.schema) for member in members]},
        fits=lambda value: any(member.fits(value) for member in members),
        take=take,
        give=give,
        is_hashable=all(member.is_hashable for member in members),
    )


def list_shape(item: Shape) -> Shape:
    """Return the shape of a list."""
    return _many(item, list, list, {})


def endless_tuple_shape(item: Shape) -> Shape:
    """Return the shape of a tuple of any length."""
    return _many(item, tuple, tuple, {})


def set_shape(item: Shape, build: type, annotation: Any) -> Shape:
    """Return the shape of a set, or of a frozen one. Raises `UnsupportedAnnotation`."""
    if not item.is_hashable:
        raise UnsupportedAnnotation(f"the members of {annotation} cannot be members of a set; use a list")
    return _many(item, build, set | frozenset, {"uniqueItems": True})


def _many(item: Shape, build: Callable[[list[Any]], Any], kind: Any, keywords: Mapping[str, Any]) -> Shape:
    def take(value: Any, where: str) -> Any:
        return build([item.take(entry, f"{where}[{index}]") for index, entry in enumerate(_entries(value, where))])

    def give(value: Any) -> list[Any]:
        given = [item.give(entry) for entry in checked(kind)(value)]
        return sorted(given, key=repr) if keywords else given

    return Shape(
        schema={"type": "array", "items": dict(item.schema), **keywords},
        fits=lambda value: isinstance(value, list) and all(item.fits(entry) for entry in value),
        take=take,
        give=give,
        is_hashable=build in (tuple, frozenset) and item.is_hashable,
    )


def tuple_shape(items: Sequence[Shape]) -> Shape:
    """Return the shape of a tuple of so many values, each with a shape of its own."""
    wanted = f"a list of exactly {len(items)} value{'' if len(items) == 1 else 's'}"

    def take(value: Any, where: str) -> tuple[Any, ...]:
        entries = _entries(value, where, wanted)
        if len(entries) != len(items):
            raise wrong(value, where, wanted)
        return tuple(
            item.take(entry, f"{where}[{at}]") for at, (item, entry) in enumerate(zip(items, entries, strict=True))
        )

    def fits(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(items)
            and all(item.fits(entry) for item, entry in zip(items, value, strict=True))
        )

    def give(value: Any) -> list[Any]:
        return [item.give(entry) for item, entry in zip(items, checked(tuple)(value), strict=True)]

    prefix = {"prefixItems": [dict(item.schema) for item in items]} if items else {}
    return Shape(
        schema={"type": "array", **prefix, "items": False, "minItems": len(items), "maxItems": len(items)},
        fits=fits,
        take=take,
        give=give,
        is_hashable=all(item.is_hashable for item in items),
    )


def table_shape(entry: Shape) -> Shape:
    """Return the shape of an object with any keys."""

    def take(value: Any, where: str) -> dict[str, Any]:
        entries = read_json(value, dict)
        if not isinstance(entries, Mapping):
            raise wrong(value, where, "an object")
        return {str(key): entry.take(inner, f"{where}.{key}") for key, inner in entries.items()}

    def give(value: Any) -> dict[str, Any]:
        return {checked(str)(key): entry.give(inner) for key, inner in checked(Mapping)(value).items()}

    schema: dict[str, Any] = {"type": "object"}
    if entry.schema:
        schema["additionalProperties"] = dict(entry.schema)
    return Shape(
        schema=schema,
        fits=lambda value: isinstance(value, Mapping) and all(entry.fits(inner) for inner in value.values()),
        take=take,
        give=give,
        is_hashable=False,
    )


def _entries(value: Any, where: str, wanted: str = "a list") -> Sequence[Any]:
    entries = read_json(value, list)
    if isinstance(entries, list | tuple):
        return entries
    hint = f"send [{shown_json(value)}]" if isinstance(value, int | float | str) and len(shown_json(value)) < 40 else ""
    raise wrong(value, where, wanted, hint)
