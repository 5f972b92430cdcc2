"""What a parameter may be: a JSON schema and a reader of what a model sent, made from one annotation. Pure.

A value of the right JSON type is taken as it is. One of another type is taken only when nothing is lost: `"3"` is 3,
`3.0` is 3, `"true"` is true, a JSON text of a list or an object is what it says. Everything else is refused with a
sentence that names the place, what was wanted and what came, so that the model can send it again.
"""

from __future__ import annotations

import enum
import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from attrs import evolve, frozen

from kesoku_actors.errors import PeerError, UsageError


class UnsupportedAnnotation(UsageError):
    """A parameter's annotation has no JSON schema; the text names it."""


class InvalidArgument(PeerError):
    """A model sent a value that does not fit; the text says where, what was wanted and what came."""


@frozen(kw_only=True)
class Shape:
    """One annotation."""

    schema: Mapping[str, Any]
    fits: Callable[[Any], bool]
    """Whether a value is of the right JSON type as it stands."""
    take: Callable[[Any, str], Any]
    """Value and place to the argument; raises `InvalidArgument`."""


def shape_of(annotation: Any) -> Shape:
    """Return the shape of `annotation`. Raises `UnsupportedAnnotation`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _described(shape_of(arguments[0]), arguments[1:])
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _choice({member.value: member for member in annotation}, annotation.__name__)
    if origin is Literal:
        return _choice({value: value for value in arguments}, "Literal")
    if origin is Union or origin is types.UnionType:
        return _union([shape_of(argument) for argument in arguments])
    if annotation is list or origin in (list, Sequence):
        return _list(shape_of(arguments[0]) if arguments else _SCALARS[Any])
    if annotation is dict or origin in (dict, Mapping):
        if arguments and arguments[0] is not str:
            raise UnsupportedAnnotation(f"the keys of {annotation} must be str: JSON objects have no others")
        return _object(shape_of(arguments[1]) if arguments else _SCALARS[Any])
    raise UnsupportedAnnotation(
        f"{annotation!r} has no JSON schema; use str, int, float, bool, list, dict, Literal, Enum or a union of these"
    )


def wrong(value: Any, where: str, wanted: str) -> InvalidArgument:
    """Return the refusal of `value`."""
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return InvalidArgument(f"{where} must be {wanted}, not {shown if len(shown) <= 80 else shown[:77] + '...'}")


def _take_string(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    raise wrong(value, where, "a string")


def _take_integer(value: Any, where: str) -> int:
    if _is_integer(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        # Beyond 4,300 digits int() raises, and no argument is meant to be that long.
        text = value.strip()
        if text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 4_000:
            return int(text)
    raise wrong(value, where, "an integer")


def _take_number(value: Any, where: str) -> float:
    number = value
    if isinstance(value, str):
        try:
            number = json.loads(value)
        except ValueError:
            raise wrong(value, where, "a number") from None
    if not _is_number(number) or not math.isfinite(number) or abs(number) > _LARGEST:
        raise wrong(value, where, "a number")
    return float(number)


def _take_boolean(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise wrong(value, where, "true or false")


def _take_nothing(value: Any, where: str) -> None:
    if value is not None:
        raise wrong(value, where, "null")


def _take_anything(value: Any, _where: str) -> Any:
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LARGEST: Final = 1.7976931348623157e308

_SCALARS: Final[Mapping[Any, Shape]] = {
    str: Shape(schema={"type": "string"}, fits=lambda value: isinstance(value, str), take=_take_string),
    int: Shape(schema={"type": "integer"}, fits=_is_integer, take=_take_integer),
    float: Shape(schema={"type": "number"}, fits=_is_number, take=_take_number),
    bool: Shape(schema={"type": "boolean"}, fits=lambda value: isinstance(value, bool), take=_take_boolean),
    type(None): Shape(schema={"type": "null"}, fits=lambda value: value is None, take=_take_nothing),
    None: Shape(schema={"type": "null"}, fits=lambda value: value is None, take=_take_nothing),
    Any: Shape(schema={}, fits=lambda value: True, take=_take_anything),
}


def _described(inner: Shape, notes: Sequence[Any]) -> Shape:
    text = next((note for note in notes if isinstance(note, str)), None)
    return evolve(inner, schema={**inner.schema, "description": text}) if text else inner


_JSON_TYPES: Final[Mapping[type, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _choice(choices: Mapping[Any, Any], name: str) -> Shape:
    """One of a few values, each a scalar; 1 and True are two values, as in JSON."""
    kinds = {type(value) for value in choices}
    if not kinds <= set(_JSON_TYPES) or not choices:
        raise UnsupportedAnnotation(f"the values of {name} must be strings, numbers or booleans")
    by_value = {(type(value), value): taken for value, taken in choices.items()}
    schema: dict[str, Any] = {"enum": list(choices)}
    if len(kinds) == 1:
        schema["type"] = _JSON_TYPES[next(iter(kinds))]

    def fits(value: Any) -> bool:
        return type(value) in _JSON_TYPES and (type(value), value) in by_value

    def take(value: Any, where: str) -> Any:
        if fits(value):
            return by_value[type(value), value]
        for kind in kinds:
            try:
                coerced = _SCALARS[kind].take(value, where)
            except InvalidArgument:
                continue
            if fits(coerced):
                return by_value[type(coerced), coerced]
        raise wrong(value, where, "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices))

    return Shape(schema=schema, fits=fits, take=take)


def _union(members: Sequence[Shape]) -> Shape:
    """The first member whose type fits; when none does, the first that can be read without loss."""

    def take(value: Any, where: str) -> Any:
        refusals: list[str] = []
        for member in [*(m for m in members if m.fits(value)), *(m for m in members if not m.fits(value))]:
            try:
                return member.take(value, where)
            except InvalidArgument as refusal:
                refusals.append(str(refusal))
        raise InvalidArgument("; or ".join(refusals))

    def fits(value: Any) -> bool:
        return any(member.fits(value) for member in members)

    return Shape(schema={"anyOf": [dict(member.schema) for member in members]}, fits=fits, take=take)


def _read_json(value: Any, wanted: type) -> Any:
    """What a JSON text says, when it is of the `wanted` type: models send nested values as text."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return read if isinstance(read, wanted) else value
    return value


def _list(item: Shape) -> Shape:
    def take(value: Any, where: str) -> list[Any]:
        items = _read_json(value, list)
        if not isinstance(items, list | tuple):
            raise wrong(value, where, "a list")
        return [item.take(entry, f"{where}[{index}]") for index, entry in enumerate(items)]

    schema = {"type": "array", "items": dict(item.schema)}
    return Shape(schema=schema, fits=lambda value: isinstance(value, list | tuple), take=take)


def _object(entry: Shape) -> Shape:
    def take(value: Any, where: str) -> dict[str, Any]:
        entries = _read_json(value, dict)
        if not isinstance(entries, Mapping):
            raise wrong(value, where, "an object")
        return {str(key): entry.take(inner, f"{where}.{key}") for key, inner in entries.items()}

    schema: dict[str, Any] = {"type": "object"}
    if entry.schema:
        schema["additionalProperties"] = dict(entry.schema)
    return Shape(schema=schema, fits=lambda value: isinstance(value, Mapping), take=take)
