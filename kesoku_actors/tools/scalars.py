"""Values without parts: texts, numbers, times, paths and bytes. Pure.

JSON has no bytes, paths or times: bytes are Base64 text, a path is its text, times are ISO 8601. A path is a text and
no permission: what a tool opens is its own affair.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from pathlib import Path, PurePath
from typing import Any, Final, cast

from kesoku_actors.tools.shapes import Shape, checked, described, wrong

_EXACT: Final = 2**53
"""Up to here a float is the whole number it stands for, and no neighbour of it."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def is_integer(value: Any) -> bool:
    """Tell whether a JSON value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _take_string(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if is_integer(value):
        try:
            return str(value)
        except ValueError:  # thousands of digits
            raise wrong("a very long number", where, "a string") from None
    raise wrong(value, where, "a string", "send it in quotes" if _is_number(value) else "")


def _take_integer(value: Any, where: str) -> int:
    number = _parsed(value)
    if is_integer(number):
        return int(number)
    if isinstance(number, float) and number.is_integer() and abs(number) <= _EXACT:
        return int(number)
    raise wrong(value, where, "an integer")


def _take_number(value: Any, where: str) -> float:
    number = _parsed(value)
    if _is_number(number):
        try:
            real = float(number)
        except OverflowError:
            raise wrong(value, where, "a number") from None
        if math.isfinite(real) and real == number:
            return real
    raise wrong(value, where, "a number")


def _parsed(value: Any) -> Any:
    """Return the JSON value that a text is, as far as it is a number; any other value as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return int(text) if _WHOLE.fullmatch(text) else json.loads(text)
    except (ValueError, RecursionError):  # no number, or one of thousands of digits
        return value


def _take_boolean(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise wrong(value, where, "true or false")


def _take_nothing(value: Any, where: str) -> None:
    if value is not None and value != "null":
        raise wrong(value, where, "null")


def _text(read: Callable[[str], Any], wanted: str, give: Callable[[Any], Any], note: str, **schema: str) -> Shape:
    """Return the shape of what JSON can only say as text; `read` raises `ValueError` for a text that says none."""

    def take(value: Any, where: str) -> Any:
        if isinstance(value, str):
            try:
                return read(value)
            except ValueError:
                pass
        raise wrong(value, where, wanted)

    def fits(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        try:
            read(value)
        except ValueError:
            return False
        return True

    shape = Shape(schema={"type": "string", **schema}, fits=fits, take=take, give=give, note=note)
    return described(shape, "")


def _read_path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError("no path")
    return Path(text)


def _read_bytes(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def _give_bytes(value: Any) -> str:
    return base64.b64encode(checked(bytes)(value)).decode("ascii")


def _give_date(value: Any) -> str:
    if isinstance(value, datetime):
        raise TypeError(f"{value!r} is a date and a time")
    return str(checked(date)(value).isoformat())


def _give_number(value: Any) -> float:
    if not _is_number(value) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no finite number")
    return cast("float", value)


def _give_integer(value: Any) -> int:
    if not is_integer(value):
        raise TypeError(f"{value!r} is no whole number")
    return int(value)


_NULL: Final = Shape(
    schema={"type": "null"}, fits=lambda value: value is None, take=_take_nothing, give=checked(type(None))
)
ANYTHING: Final = Shape(
    schema={}, fits=lambda value: True, take=lambda value, _where: value, give=lambda value: value, is_hashable=False
)
SCALARS: Final[Mapping[Any, Shape]] = {
    str: Shape(schema={"type": "string"}, fits=_is_text, take=_take_string, give=checked(str)),
    int: Shape(schema={"type": "integer"}, fits=is_integer, take=_take_integer, give=_give_integer),
    float: Shape(schema={"type": "number"}, fits=_is_number, take=_take_number, give=_give_number),
    bool: Shape(
        schema={"type": "boolean"},
        fits=lambda value: isinstance(value, bool),
        take=_take_boolean,
        give=checked(bool),
    ),
    type(None): _NULL,
    None: _NULL,
    Any: ANYTHING,
    object: ANYTHING,
    bytes: _text(_read_bytes, "bytes as Base64 text", _give_bytes, "Base64.", contentEncoding="base64"),
    Path: _text(_read_path, "a path", lambda value: str(checked(PurePath)(value)), ""),
    datetime: _text(
        datetime.fromisoformat,
        "a date and a time such as 2024-05-31T18:30:00+02:00",
        lambda value: checked(datetime)(value).isoformat(),
        "ISO 8601, such as 2024-05-31T18:30:00+02:00.",
        format="date-time",
    ),
    date: _text(
        date.fromisoformat, "a date such as 2024-05-31", _give_date, "ISO 8601, such as 2024-05-31.", format="date"
    ),
    time: _text(
        time.fromisoformat,
        "a time of day such as 18:30:00",
        lambda value: checked(time)(value).isoformat(),
        "ISO 8601, such as 18:30:00.",
        format="time",
    ),
}
"""By annotation."""
