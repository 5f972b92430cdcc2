"""One of a few values: `Literal` and enums. Pure.

The model sees the values; for an enum whose values JSON cannot say it sees the names of the members. A member's name is
taken as well as its value, as long as it is no other member's value. `1` and `True` are two values, as in JSON.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any, Final, get_args

from kesoku_actors.tools.scalars import SCALARS
from kesoku_actors.tools.shapes import InvalidArgument, Shape, UnsupportedAnnotation, wrong

_JSON_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMED_CHOICES: Final = 30


def literal_shape(annotation: Any) -> Shape:
    """Return the shape of a `Literal` without `None`. Raises `UnsupportedAnnotation`."""
    choices = [value for value in get_args(annotation) if value is not None]
    pairs = [(value.value if isinstance(value, enum.Enum) else value, value) for value in choices]
    return _choice(pairs, [], str(annotation))


def enum_shape(kind: type[enum.Enum]) -> Shape:
    """Return the shape of an enum. Raises `UnsupportedAnnotation` for one without members."""
    members = list(kind)
    if not all(type(_plain(member)) in _JSON_TYPES for member in members):
        return _choice([(member.name, member) for member in members], [], kind.__name__)
    return _choice(
        [(_plain(member), member) for member in members], [(member.name, member) for member in members], kind.__name__
    )


def _plain(member: enum.Enum) -> Any:
    """Return a member's value without a subclass, such as an `IntEnum`'s own."""
    value = member.value
    return next((kind(value) for kind in (bool, int, float, str) if type(value) is kind), value)


def _choice(pairs: Sequence[tuple[Any, Any]], names: Sequence[tuple[str, Any]], shown: str) -> Shape:
    """Return the shape of these values, each with what it becomes; `names` are taken too, but not offered."""
    kinds = list(dict.fromkeys(type(value) for value, _ in pairs))
    if not pairs or not set(kinds) <= set(_JSON_TYPES):
        raise UnsupportedAnnotation(f"the values of {shown} must be strings, numbers or booleans, and one at least")
    taken_as: dict[tuple[type, Any], Any] = {}
    for value, taken in [*pairs, *names]:
        taken_as.setdefault((type(value), value), taken)
    offered = list(dict.fromkeys((type(value), value) for value, _ in pairs))
    schema: dict[str, Any] = {"enum": [value for _, value in offered]}
    if len(kinds) == 1:
        schema["type"] = _JSON_TYPES[kinds[0]]

    def fits(value: Any) -> bool:
        return type(value) in _JSON_TYPES and (type(value), value) in offered

    def take(value: Any, where: str) -> Any:
        if type(value) in _JSON_TYPES and (type(value), value) in taken_as:
            return taken_as[type(value), value]
        for kind in kinds:
            try:
                coerced = SCALARS[kind].take(value, where)
            except InvalidArgument:
                continue
            if (kind, coerced) in taken_as:
                return taken_as[kind, coerced]
        some = [json.dumps(choice, ensure_ascii=False) for _, choice in offered[:_NAMED_CHOICES]]
        more = len(offered) - len(some)
        raise wrong(value, where, f"one of {', '.join(some)}{f' and {more} more' if more else ''}")

    def give(value: Any) -> Any:
        for plain, taken in pairs:
            if taken is value or (type(taken) is type(value) and taken == value):
                return plain
        raise ValueError(f"{value!r} is none of {shown}")

    return Shape(schema=schema, fits=fits, take=take, give=give)
