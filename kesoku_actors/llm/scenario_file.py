"""Scenarios of the scripted model in TOML files, read strictly: a wrong key or value is refused by name."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import fields
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, transform_error
from cattrs.v import format_exception

from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.scripted import Call, Cut, End, Fail, Move, Say, Scenario, Spend, Stall, Think, Wait
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import make_converter

DEMO: Final = Path(__file__).with_name("scenarios") / "demo.toml"
"""A scenario to show: two parallel shell commands, then an answer."""
LARGEST_FILE: Final = 1 << 24
"""Bytes."""

_VERBS: Final[Mapping[str, tuple[type, str | None]]] = {
    "say": (Say, "text"),
    "think": (Think, "thought"),
    "call": (Call, "name"),
    "wait_s": (Wait, "seconds"),
    "spend": (Spend, None),
    "end": (End, "finish"),
    "fail": (Fail, "kind"),
    "stall": (Stall, None),
    "cut": (Cut, None),
}
"""The key that names a move in a file, and the field its value fills; none: the value is the whole move."""


def _make_converter() -> Converter:
    converter = make_converter()

    def structure_move(data: Any, _wanted: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValueError(f"a move is a table such as {{ say = 'Hello' }}, not {data!r:.40}")
        verbs = [key for key in data if key in _VERBS]
        if len(verbs) != 1:
            raise ValueError(f"a move has exactly one of the keys {', '.join(_VERBS)}")
        wanted, filled = _VERBS[verbs[0]]
        value, rest = data[verbs[0]], {key: data[key] for key in data if key != verbs[0]}
        if wanted is Call:
            _check_arguments(rest.get("arguments"))
        if filled is not None:
            return converter.structure({filled: value, **rest}, wanted)
        if wanted is not Spend:
            if value is not True:
                raise ValueError(f"{verbs[0]} is true or absent")
            return converter.structure(rest, wanted)
        if not isinstance(value, Mapping) or rest:
            raise ValueError("spend is a table of token counts and stands alone")
        return converter.structure(value, wanted)

    converter.register_structure_hook_func(lambda wanted: wanted == Move, structure_move)
    converter.register_structure_hook(Any, lambda value, _wanted: value)
    return converter


def _check_arguments(arguments: object) -> None:
    """Raise `ValueError` naming the argument that no model can send: TOML has dates, and numbers that are none."""
    for key, value in arguments.items() if isinstance(arguments, Mapping) else ():
        try:
            well_formed(value)
        except ValueError as error:
            raise ValueError(f"the argument {key} cannot be sent: {error}") from None


def _problem(error: BaseException, wanted: type | None) -> str:
    """Word one problem; our own sentences say more than the type that was wanted."""
    if isinstance(error, ForbiddenExtraKeysError):
        unknown = ", ".join(map(repr, sorted(error.extra_fields)))
        return f"there is no key {unknown} here; the keys are {', '.join(_keys(error.cl))}"
    return str(error) if isinstance(error, ValueError) else format_exception(error, wanted)


def _keys(of: type) -> Iterator[str]:
    spelled = {(kind, filled): verb for verb, (kind, filled) in _VERBS.items()}
    return (spelled.get((of, name.name), name.name) for name in fields(of))


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a TOML file. Raises `ConfigError` naming the file and every key that is wrong."""
    content = _read(path)
    try:
        return _make_converter().structure(tomllib.loads(content.decode("utf-8")), Scenario)
    except RecursionError:
        raise ConfigError(f"scenario {path}: is nested too deeply") from None
    except ValueError as error:  # a TOMLDecodeError, bytes that are not UTF-8, or a number of thousands of digits
        raise ConfigError(f"scenario {path}: not TOML: {error}") from None
    except BaseValidationError as error:
        problems = transform_error(error, path="scenario", format_exception=_problem)
        raise ConfigError(f"{path}: {'; '.join(problems)}") from None


def _read(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK the open of a named pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(f"scenario {path}: is not a regular file; name a TOML file")
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"scenario {path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"scenario {path}: is larger than {LARGEST_FILE:,} bytes")
    return content
