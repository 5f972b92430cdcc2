"""The one strict converter between values and plain JSON data. Pure.

Nothing is coerced: "5" is not a number, 1 is not a boolean, a string is not a list. A whole number is accepted
where a float is wanted, as JSON has one number type. Unknown keys are errors, and all errors come together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import GenericAlias
from typing import Any, TypeVar, cast, get_args, get_origin

from cattrs import BaseConverter, BaseValidationError, Converter, transform_error
from cattrs.cols import (
    homogenous_tuple_structure_factory,
    is_frozenset,
    is_mapping,
    is_mutable_sequence,
    list_structure_factory,
    mapping_structure_factory,
)

from kesoku_actors.errors import PeerError

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]
HookFactory = Callable[[Any, BaseConverter], Hook]


class DecodeError(PeerError):
    """Data from outside does not have the wanted shape; `problems` lists each place, as `what @ where`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _exact(wanted: type) -> Hook:
    def structure(value: Any, _wanted: Any) -> Any:
        if type(value) is not wanted:
            raise ValueError(f"expected {wanted.__name__}, got {type(value).__name__}")
        return value

    return structure


def _float(value: Any, _wanted: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value!r:.40}")
    return float(value)


def _member(value: Any, wanted: Any) -> Any:
    if value not in list(wanted):
        raise ValueError(f"expected one of {', '.join(wanted)}, got {value!r:.40}")
    return wanted(value)


def _only(kinds: tuple[type, ...], name: str, factory: HookFactory) -> HookFactory:
    """Return `factory` whose hooks refuse what only iterates like the wanted container."""

    def guarded(wanted: Any, converter: BaseConverter) -> Hook:
        inner = factory(wanted, converter)

        def structure(value: Any, kind: Any) -> Any:
            if not isinstance(value, kinds):
                raise ValueError(f"expected {name}, got {type(value).__name__}")
            return inner(value, kind)

        return structure

    return guarded


def _frozenset_factory(wanted: Any, converter: BaseConverter) -> Hook:
    inner = list_structure_factory(cast(type, GenericAlias(list, get_args(wanted)[:1])), converter)
    return lambda value, _wanted: frozenset(inner(value, list))


def _mapping_factory(wanted: Any, converter: BaseConverter) -> Hook:
    return mapping_structure_factory(wanted, converter, structure_to=dict)


def _is_homogeneous_tuple(wanted: Any) -> bool:
    return get_origin(wanted) is tuple and get_args(wanted)[1:] == (Ellipsis,)


def make_converter() -> Converter:
    """Return a new strict converter; who needs hooks of their own adds them to theirs."""
    converter = Converter(forbid_extra_keys=True)
    for wanted in (str, int, bool):
        converter.register_structure_hook(wanted, _exact(wanted))
    converter.register_structure_hook(float, _float)
    converter.register_structure_hook(StrEnum, _member)  # else the hook for `str` takes it, unchecked
    for predicate, kinds, name, factory in (
        (is_mutable_sequence, (list, tuple), "a list", list_structure_factory),
        (_is_homogeneous_tuple, (list, tuple), "a list", homogenous_tuple_structure_factory),
        (is_frozenset, (list, tuple, frozenset), "a list", _frozenset_factory),
        (is_mapping, (Mapping,), "an object", _mapping_factory),
    ):
        converter.register_structure_hook_factory(predicate, _only(kinds, name, factory))
    converter.register_unstructure_hook(frozenset, lambda values: sorted(values))
    return converter


def decode(converter: Converter, data: Any, wanted: type[T]) -> T:
    """Return `data` as a value of `wanted`. Raises `DecodeError` naming every problem with its place."""
    try:
        return converter.structure(data, wanted)
    except BaseValidationError as error:
        raise DecodeError(transform_error(error, path="value")) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # AttributeError: not a mapping at all
        raise DecodeError([f"{error} @ value"]) from None
