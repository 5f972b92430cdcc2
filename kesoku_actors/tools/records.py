"""Objects with known keys: attrs classes, dataclasses and TypedDicts. Pure.

What the class asks for is what the model must send; a key that the class does not know is refused, so that a slip of
the pen is heard of. A value is built by calling the class, whose own validators have the last word.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NotRequired, Required, get_args, get_origin, get_type_hints

import attrs

from kesoku_actors.tools.docstrings import parse
from kesoku_actors.tools.raised import said_by
from kesoku_actors.tools.shapes import (
    InvalidArgument,
    Shape,
    UnsupportedAnnotation,
    described,
    read_json,
    wrong,
)
from kesoku_actors.values import frozen

REQUIRED: Final = object()
"""The default of what has none."""
UNTOLD: Final = object()
"""A default that is made when the value is built, or that is just the absence of the key."""
_LONGEST_NAME: Final = 60
_MOST_PROBLEMS: Final = 8


@frozen(kw_only=True)
class Key:
    """One key of an object."""

    name: str
    """As the model sends it and the class takes it."""
    attribute: str
    """As a built value keeps it."""
    shape: Shape
    default: Any = REQUIRED
    """`REQUIRED`, `UNTOLD` for one that cannot be told, or the value."""

    @property
    def required(self) -> bool:
        """Whether the model must send it."""
        return self.default is REQUIRED


def is_record(annotation: type) -> bool:
    """Tell whether an annotation is an attrs class, a dataclass or a TypedDict."""
    return attrs.has(annotation) or dataclasses.is_dataclass(annotation) or is_typed_dict(annotation)


def is_typed_dict(kind: type) -> bool:
    """Tell whether a class is a TypedDict, of `typing` or of its backport."""
    return issubclass(kind, dict) and hasattr(kind, "__required_keys__") and hasattr(kind, "__total__")


def record_shape(kind: type, shape_of: Callable[[Any], Shape]) -> Shape:
    """Return the shape of a class; `shape_of` makes those of its keys. Raises `UnsupportedAnnotation`."""
    keys = _keys(kind, shape_of)
    is_dict = is_typed_dict(kind)

    def take(value: Any, where: str) -> Any:
        entries = read_json(value, dict)
        if not isinstance(entries, Mapping):
            raise wrong(value, where, f"an object with the keys {', '.join(keys) or 'none'}")
        arguments = take_keys(entries, keys, where)
        if is_dict:
            return arguments
        try:
            return kind(**arguments)
        except BaseException as problem:  # its own validators and converters may raise what they like
            if not isinstance(problem, Exception):
                raise
            raise InvalidArgument(f"{where} is refused by {kind.__name__}: {said_by(problem)}") from problem

    def fits(value: Any) -> bool:
        return (
            isinstance(value, Mapping)
            and value.keys() <= keys.keys()
            and all(key.shape.fits(value[name]) if name in value else not key.required for name, key in keys.items())
        )

    def give(value: Any) -> dict[str, Any]:
        if is_dict:
            if not isinstance(value, Mapping) or not value.keys() <= keys.keys():
                raise TypeError(f"{value!r:.80} is no {kind.__name__}")
            return {name: keys[name].shape.give(inner) for name, inner in value.items()}
        if type(value) is not kind:
            raise TypeError(f"{value!r:.80} is no {kind.__name__}")
        return {key.name: key.shape.give(getattr(value, key.attribute)) for key in keys.values()}

    return Shape(
        schema=object_schema(tuple(keys.values())),
        fits=fits,
        take=take,
        give=give,
        is_hashable=not is_dict and kind.__hash__ is not None and all(key.shape.is_hashable for key in keys.values()),
    )


def object_schema(keys: Sequence[Key]) -> dict[str, Any]:
    """Return the schema of an object with these keys and no others."""
    properties = {key.name: {**key.shape.schema, **_default(key)} for key in keys}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required := [key.name for key in keys if key.required]:
        schema["required"] = required
    return schema


def make_key(name: str, shape: Shape, documentation: str | None, default: Any, attribute: str | None = None) -> Key:
    """Return a key; what its annotation says of it stands, what the documentation says is for want of that."""
    if documentation and shape.schema.get("description", shape.note) == shape.note:
        shape = described(shape, documentation)
    return Key(name=name, attribute=attribute or name, shape=shape, default=default)


def take_keys(entries: Mapping[str, Any], keys: Mapping[str, Key], where: str) -> dict[str, Any]:
    """Return the arguments that `entries` are. Raises `InvalidArgument` that names every mistake."""
    place = f"{where}." if where else ""
    what = "argument" if not where else "key"
    known = ", ".join(keys) or "none"
    problems = [
        f"there is no {what} {f'{place}{name}'[:_LONGEST_NAME]!r}; known are {known}"
        for name in entries
        if name not in keys
    ]
    taken: dict[str, Any] = {}
    for name, key in keys.items():
        absent = name not in entries
        # Models send null for what they leave out: where null is not a value of its own it means the default.
        if absent or (entries[name] is None and not key.required and not key.shape.fits(None)):
            if key.required:
                problems.append(f"the {what} {f'{place}{name}'!r} is missing")
            continue
        try:
            taken[name] = key.shape.take(entries[name], f"{place}{name}")
        except InvalidArgument as problem:
            problems.append(str(problem))
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        raise InvalidArgument("; ".join(problems[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else ""))
    return taken


def _keys(kind: type, shape_of: Callable[[Any], Shape]) -> dict[str, Key]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError) as problem:
        raise UnsupportedAnnotation(f"the annotations of {kind.__name__} cannot be read: {problem}") from problem
    told = parse(kind.__doc__).parameters
    keys: dict[str, Key] = {}
    for name, attribute, default in _typed_dict_fields(kind, hints) if is_typed_dict(kind) else _fields(kind):
        if attribute not in hints:
            raise UnsupportedAnnotation(f"{kind.__name__}.{attribute} has no annotation; give it one")
        try:
            shape = shape_of(_bare(hints[attribute]))
        except UnsupportedAnnotation as problem:
            raise UnsupportedAnnotation(f"{kind.__name__}.{attribute}: {problem}") from problem
        keys[name] = make_key(name, shape, told.get(name) or told.get(attribute), default, attribute)
    return keys


def _fields(kind: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield name, attribute and default of what the class is built from."""
    if attrs.has(kind):
        for field in attrs.fields(kind):
            if field.init:
                is_made = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]  # a class, typed as a function
                default = REQUIRED if field.default is attrs.NOTHING else UNTOLD if is_made else field.default
                yield field.alias, field.name, default
        return
    for one in dataclasses.fields(kind):
        if one.init:
            has_factory = one.default_factory is not dataclasses.MISSING
            absent = UNTOLD if has_factory else REQUIRED
            yield one.name, one.name, absent if one.default is dataclasses.MISSING else one.default


def _typed_dict_fields(kind: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for name, hint in hints.items():
        # With annotations that are texts the class itself cannot have seen these two when it was made.
        is_required = {Required: True, NotRequired: False}.get(get_origin(hint), name in kind.__required_keys__)
        yield name, name, REQUIRED if is_required else UNTOLD


def _bare(hint: Any) -> Any:
    """Return a hint without what only says whether the key may be missing or changed."""
    while get_origin(hint) in (Required, NotRequired) or getattr(get_origin(hint), "_name", "") == "ReadOnly":
        (hint,) = get_args(hint)
    return hint


def _default(key: Key) -> dict[str, Any]:
    """Return the schema's `default`, when JSON can say it."""
    if key.default is REQUIRED or key.default is UNTOLD:
        return {}
    try:
        given = key.shape.give(key.default)
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"default": given}
