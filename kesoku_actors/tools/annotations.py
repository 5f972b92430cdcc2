"""From an annotation to its shape. Pure.

Every annotation is one of these, or is refused when the tool is registered, with what to write instead:
`str int float bool None Any`, `bytes Path datetime date time`, `list tuple set frozenset dict` and their abstract
names, `Literal`, enums, unions, `Annotated`, attrs classes, dataclasses, TypedDicts.
"""

from __future__ import annotations

import collections.abc as abc
import enum
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from kesoku_actors.tools.choices import enum_shape, literal_shape
from kesoku_actors.tools.containers import (
    endless_tuple_shape,
    list_shape,
    set_shape,
    table_shape,
    tuple_shape,
    union_shape,
)
from kesoku_actors.tools.records import is_record, record_shape
from kesoku_actors.tools.scalars import ANYTHING, SCALARS
from kesoku_actors.tools.shapes import Shape, UnsupportedAnnotation, described

_KNOWN: Final = (
    "str, int, float, bool, list, dict, tuple, set, Literal, an Enum, bytes, Path, datetime, an attrs class, "
    "a TypedDict or a union of these"
)


def shape_of(annotation: Any, within: tuple[type, ...] = ()) -> Shape:
    """Return the shape of `annotation`; `within` are the classes it stands in. Raises `UnsupportedAnnotation`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    kind: Any = annotation if origin is None else origin

    def inner(each: Any) -> Shape:
        return shape_of(each, within)

    if origin is Annotated:
        text = next((note for note in arguments[1:] if isinstance(note, str)), None)
        return inner(arguments[0]) if text is None else described(inner(arguments[0]), text)
    if origin is Literal:
        return _literal(annotation)
    if origin is Union or origin is types.UnionType:
        return union_shape([inner(argument) for argument in arguments])
    if not isinstance(kind, abc.Hashable):
        raise _unsupported(annotation)
    if kind in SCALARS:
        return SCALARS[kind]
    if kind in _MAKERS:
        return _MAKERS[kind](annotation, arguments, inner)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return enum_shape(kind)
    if origin is None and isinstance(annotation, type) and is_record(annotation):
        if annotation in within:
            raise UnsupportedAnnotation(f"{annotation.__name__} holds itself, which no schema here can say; use dict")
        return record_shape(annotation, lambda each: shape_of(each, (*within, annotation)))
    return inner(_meant(annotation))


Inner = Callable[[Any], Shape]


def _literal(annotation: Any) -> Shape:
    values = get_args(annotation)
    if None not in values:
        return literal_shape(annotation)
    return union_shape([literal_shape(annotation), SCALARS[None]]) if len(values) > 1 else SCALARS[None]


def _list(_annotation: Any, arguments: tuple[Any, ...], inner: Inner) -> Shape:
    return list_shape(inner(arguments[0]) if arguments else ANYTHING)


def _set(annotation: Any, arguments: tuple[Any, ...], inner: Inner) -> Shape:
    # Without a word on the members they are texts: anything would not be hashable.
    item = inner(arguments[0]) if arguments else SCALARS[str]
    is_frozen = (get_origin(annotation) or annotation) in (frozenset, abc.Set)
    return set_shape(item, frozenset if is_frozen else set, annotation)


def _tuple(annotation: Any, arguments: tuple[Any, ...], inner: Inner) -> Shape:
    if not hasattr(annotation, "__args__"):  # the empty tuple has some, none in number
        return endless_tuple_shape(ANYTHING)
    if arguments[-1:] == (...,):
        return endless_tuple_shape(inner(arguments[0]))
    return tuple_shape([inner(argument) for argument in arguments])


def _table(annotation: Any, arguments: tuple[Any, ...], inner: Inner) -> Shape:
    if arguments and arguments[0] is not str:
        raise UnsupportedAnnotation(f"the keys of {annotation} must be str: JSON objects have no others")
    return table_shape(inner(arguments[1]) if arguments else ANYTHING)


_MAKERS: Final[Mapping[Any, Callable[[Any, tuple[Any, ...], Inner], Shape]]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), _list),
    **dict.fromkeys((set, frozenset, abc.Set, abc.MutableSet), _set),
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), _table),
    tuple: _tuple,
}
"""By the class that an annotation is, or is made from."""


def _meant(annotation: Any) -> Any:
    """Return what stands behind another name. Raises `UnsupportedAnnotation` when nothing does."""
    if isinstance(annotation, TypeVar) and annotation.__bound__ is not None:
        return annotation.__bound__
    for attribute in ("__supertype__", "__value__"):  # of a NewType, of a `type` statement
        if not isinstance(annotation, type) and hasattr(annotation, attribute):
            return getattr(annotation, attribute)
    raise _unsupported(annotation)


def _unsupported(annotation: Any) -> UnsupportedAnnotation:
    shown = annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)
    return UnsupportedAnnotation(f"{shown:.120} has no JSON schema; use {_KNOWN}")
