"""From parsed TOML to the sections' values, with every problem found and none raised. Pure.

Nothing is coerced. A problem names the way to the key and what is wrong in the words of TOML ("a whole number"), not
of Python. Texts quote a value only where it is one of a few words or a number, so a secret is never repeated.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from attrs import fields, has
from cattrs import BaseConverter, Converter
from cattrs.cols import mapping_structure_factory
from cattrs.errors import (
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn

from kesoku_actors.app.sections.rules import SHORT, Rule
from kesoku_actors.app.settings_lines import KeyPath
from kesoku_actors.values import frozen

Hook = Callable[[Any, Any], Any]

_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string in quotes",
    list: "a list",
    dict: "a table",
}
_LONGEST_QUOTE: Final = 40


@frozen
class Problem:
    """What is wrong with the setting at `path`."""

    path: KeyPath
    text: str


@frozen
class _Unknown:
    path: KeyPath
    valid: tuple[str, ...]


class _Refused(ValueError):
    """A value that does not fit; the text is ready for people."""


def settings_converter() -> Converter:
    """Return the strict converter of all sections."""
    converter = Converter(detailed_validation=True)
    for kind in (str, int, bool, float):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook(StrEnum, _enum)  # else the hook for `str` takes it, unchecked
    converter.register_structure_hook(Path, _path)
    converter.register_structure_hook_factory(has, _table)
    for origin, factory in ((tuple, _list), (dict, _named), (Literal, _literal), (Annotated, _ruled)):
        converter.register_structure_hook_factory(_has_origin(origin), factory)
    return converter


def decode_section(
    converter: Converter, data: object, wanted: Any, path: KeyPath, elsewhere: Mapping[str, str]
) -> tuple[Any, list[Problem]]:
    """Return `data` as a value of `wanted`, or `None` and everything that is wrong with it.

    `elsewhere` has the full names of the keys of every section, for a key that stands in the wrong one.
    """
    try:
        return converter.structure(data, wanted), []
    except BaseValidationError as error:
        return None, [_homed(problem, elsewhere) for problem in _problems(error, path)]
    except _Refused as error:
        return None, [Problem(path, str(error))]


def unknown_key(key: str, valid: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """Say that `key` is none of `valid`; `elsewhere` has the full names of keys of other sections."""
    valid = sorted(valid)
    near = difflib.get_close_matches(key, valid, n=1)
    if near:
        return f"unknown key, did you mean '{near[0]}'?"
    if key in elsewhere:
        return f"unknown key here, did you mean '{elsewhere[key]}'?"
    return f"unknown key; valid here: {', '.join(valid)}"


def _homed(problem: Problem | _Unknown, elsewhere: Mapping[str, str]) -> Problem:
    if isinstance(problem, Problem):
        return problem
    return Problem(problem.path, unknown_key(str(problem.path[-1]), problem.valid, elsewhere))


def _problems(error: BaseException, path: KeyPath) -> Iterator[Problem | _Unknown]:
    match error:
        case ClassValidationError():
            noted, bare = error.group_exceptions()
            for inner, note in noted:
                yield from _problems(inner, (*path, note.name))
            for inner in bare:
                yield from _problems(inner, path)
        case IterableValidationError():
            members, bare = error.group_exceptions()
            for inner, place in members:
                yield from _problems(inner, (*path, place.index))
            for inner in bare:
                yield from _problems(inner, path)
        case ForbiddenExtraKeysError():
            valid = tuple(name.name for name in fields(error.cl))
            for key in sorted(error.extra_fields):
                yield _Unknown((*path, key), valid)
        case KeyError():  # the key of a field without a default
            yield Problem(path, "is missing")
        case _Refused():
            yield Problem(path, str(error))
        case _:
            raise error


def _has_origin(origin: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date or time")


def _wrong_kind(wanted: type, value: object) -> _Refused:
    return _Refused(f"must be {_KINDS[wanted]}, not {_kind(value)}")


def _exactly(wanted: type) -> Hook:
    accepted = (int, float) if wanted is float else (wanted,)

    def structure(value: Any, _kind: Any) -> Any:
        if type(value) not in accepted:
            raise _wrong_kind(wanted, value)
        try:
            return wanted(value)
        except OverflowError:
            raise _Refused("is too large a number") from None

    return structure


def _path(value: Any, _kind: Any) -> Path:
    if type(value) is not str:
        raise _wrong_kind(str, value)
    if not value.strip() or "\0" in value:
        raise _Refused("must be a path")
    return Path(value)


def _table(kind: Any, converter: BaseConverter) -> Hook:
    inner = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True)

    short = next((key for key in fields(kind) if key.metadata == SHORT), None)
    alone = converter.get_structure_hook(short.type) if short is not None else None

    def structure(value: Any, wanted: Any) -> Any:
        if short is not None and alone is not None and type(value) is str:
            return kind(**{short.name: alone(value, short.type)})
        if type(value) is not dict:
            raise _wrong_kind(dict, value)
        return inner(value, wanted)

    return structure


def _list(kind: Any, converter: BaseConverter) -> Hook:
    members = GenericAlias(list, get_args(kind)[:1])
    inner = converter.get_structure_hook(members)

    def structure(value: Any, _kind: Any) -> Any:
        if type(value) is not list:
            raise _wrong_kind(list, value)
        return tuple(inner(value, members))

    return structure


def _named(kind: Any, converter: BaseConverter) -> Hook:
    inner = mapping_structure_factory(kind, converter, detailed_validation=True, structure_to=dict)

    def structure(value: Any, _kind: Any) -> Any:
        if type(value) is not dict:
            raise _wrong_kind(dict, value)
        return inner(value, kind)

    return structure


def _one_of(words: tuple[str, ...], value: Any) -> str:
    if type(value) is not str:
        raise _wrong_kind(str, value)
    if value in words:
        return value
    listed = ", ".join(f"'{word}'" for word in words)
    shown = value if len(value) <= _LONGEST_QUOTE else value[:_LONGEST_QUOTE] + "..."
    near = difflib.get_close_matches(value, words, n=1)
    raise _Refused(f"{shown!r} is not one of {listed}" + (f"; did you mean '{near[0]}'?" if near else ""))


def _literal(kind: Any, _converter: BaseConverter) -> Hook:
    return lambda value, _kind: _one_of(get_args(kind), value)


def _enum(value: Any, kind: Any) -> Any:
    return kind(_one_of(tuple(kind), value))


def _ruled(kind: Any, converter: BaseConverter) -> Hook:
    base, *marks = get_args(kind)
    inner = converter.get_structure_hook(base)
    rules = [mark for mark in marks if isinstance(mark, Rule)]

    def structure(value: Any, _kind: Any) -> Any:
        taken = inner(value, base)
        for rule in rules:
            if problem := rule.problem(taken):
                raise _Refused(problem)
        return taken

    return structure
