"""What a value a model sends must look like, and what becomes of it: the shape of one annotation. Pure.

A value of the right JSON type is taken as it is. One of another type is taken only when nothing is lost: `"3"` is 3,
`3.0` is 3, `"true"` is true, a JSON text of a list or an object is what it says. Where a reading is open to doubt the
value is refused, with a sentence that names the place, what was wanted and what came, so that the model can send it
again: a number is no list of one number, `3.10` may have been meant as the text "3.10".

`annotations` makes shapes; `scalars`, `choices`, `containers` and `records` are its kinds. `take` undoes `give`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from kesoku_actors.errors import PeerError, UsageError
from kesoku_actors.values import frozen

_SHOWN_CHARS: Final = 80


class UnsupportedAnnotation(UsageError):
    """A parameter's annotation has no JSON schema; the text names it and what to write instead."""


class InvalidArgument(PeerError):
    """A model sent a value that does not fit; the text says where, what was wanted and what came."""


@frozen(kw_only=True)
class Shape:
    """One annotation."""

    schema: Mapping[str, Any]
    fits: Callable[[Any], bool]
    """Whether a JSON value is right as it stands, all the way down."""
    take: Callable[[Any, str], Any]
    """JSON value and place to the argument; raises `InvalidArgument`."""
    give: Callable[[Any], Any]
    """An argument to the JSON value that stands for it; raises `TypeError` or `ValueError` for what is none."""
    is_hashable: bool = True
    """Whether every argument of this shape can be a member of a set."""
    note: str = ""
    """What the model must know of the notation, whatever else the description says."""


def described(shape: Shape, text: str) -> Shape:
    """Return `shape` with this description, and its own note behind it."""
    description = f"{text} {shape.note}".strip()
    return evolve(shape, schema={**shape.schema, "description": description}) if description else shape


def wrong(value: Any, where: str, wanted: str, hint: str = "") -> InvalidArgument:
    """Return the refusal of `value`, with what to do instead when `hint` is given."""
    shown = shown_json(value)
    return InvalidArgument(f"{where} must be {wanted}, not {shown}{f'; {hint}' if hint else ''}")


def shown_json(value: Any) -> str:
    """Return a JSON value as a short text."""
    try:
        shown = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):  # nested without end, or keys that JSON does not have
        shown = type(value).__name__
    return shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 3] + "..."


def read_json(value: Any, wanted: type) -> Any:
    """Return what a JSON text says, when it is of the `wanted` type: models send nested values as text."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return read if isinstance(read, wanted) else value
    return value


def checked(kind: type | tuple[type, ...]) -> Callable[[Any], Any]:
    """Return a `give` that lets a value of this kind pass and raises `TypeError` for any other."""

    def give(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{value!r:.80} is no {kind}")
        return value

    return give
