"""Annotations drawn at random, each with values that fit it, and a judge of JSON values by their schema."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

from attrs import define, field, frozen
from hypothesis import strategies as st


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Corner(enum.Enum):
    TOP = (0, 1)
    BOTTOM = (1, 0)


@frozen
class Point:
    """A place.

    Attributes:
        x: To the right.
    """

    x: int
    y: Annotated[int, "Down."] = 0


@define
class Shape:
    name: str
    corners: list[Point] = field(factory=list)
    _secret: int | None = None


class Options(TypedDict, total=False):
    depth: int
    label: NotRequired[str]
    größe: float


SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (str, st.text(max_size=5)),
    (bytes, st.binary(max_size=5)),
    (Path, st.sampled_from([Path("a/b"), Path("/c")])),
    (datetime, st.datetimes()),
    (date, st.dates()),
    (time, st.times()),
    (Colour, st.sampled_from(Colour)),
    (Size, st.sampled_from(Size)),
    (Corner, st.sampled_from(Corner)),
    (Literal["a", 1, True], st.sampled_from(["a", 1, True])),
    (Literal["b", None], st.sampled_from(["b", None])),
    (Point, st.builds(Point, st.integers(), st.integers())),
]
RECORDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Shape, st.builds(Shape, st.text(max_size=3), st.lists(st.builds(Point, st.integers()), max_size=2))),
    (
        Options,
        st.fixed_dictionaries(
            {}, optional={"depth": st.integers(), "label": st.text(max_size=3), "größe": st.just(1.5)}
        ),
    ),
]

Drawn = tuple[Any, st.SearchStrategy[Any]]


@st.composite
def annotations(draw: st.DrawFn, depth: int = 3) -> Drawn:
    """Draw an annotation and the strategy of its values."""
    kinds = ["scalar", "record"] + ["list", "tuple", "endless", "set", "dict", "optional", "described"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "record":
        return draw(st.sampled_from(RECORDS))
    if kind == "set":
        inner, values = draw(st.sampled_from(SCALARS))
        return set[inner], st.sets(values, max_size=3)
    inner, values = draw(annotations(depth - 1))
    match kind:
        case "list":
            return list[inner], st.lists(values, max_size=3)
        case "endless":
            return tuple[inner, ...], st.lists(values, max_size=3).map(tuple)
        case "tuple":
            other, more = draw(annotations(depth - 1))
            return tuple[inner, other], st.tuples(values, more)
        case "dict":
            return dict[str, inner], st.dictionaries(st.text(max_size=3), values, max_size=3)
        case "optional":
            return Optional[inner], st.none() | values  # noqa: UP045
        case _:
            return Annotated[inner, "More of it."], values


_TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    """Judge a JSON value by the keywords that our schemas use."""
    if "anyOf" in schema:
        return any(is_valid(value, member) for member in schema["anyOf"])
    if "enum" in schema and not any(type(value) is type(one) and value == one for one in schema["enum"]):
        return False
    if "type" in schema:
        is_bool = isinstance(value, bool) and schema["type"] != "boolean"
        if is_bool or not isinstance(value, _TYPES[schema["type"]]):
            return False
    if isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        rest = schema.get("items", {})
        return (
            schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
            and all(is_valid(*pair) for pair in zip(value, prefix, strict=False))
            and all(rest is not False and is_valid(entry, rest) for entry in value[len(prefix) :])
        )
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        return set(schema.get("required", ())) <= value.keys() and all(
            is_valid(inner, properties[key]) if key in properties else more is not False and is_valid(inner, more)
            for key, inner in value.items()
        )
    return True
