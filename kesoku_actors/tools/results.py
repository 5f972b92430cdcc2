"""What a function returned, as the text a model reads. Pure."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping, Set
from typing import Any

import attrs


def text_of(result: Any) -> str:
    """Return a text as it is, bytes as the UTF-8 they are meant to be, nothing as "", and anything else as JSON."""
    match result:
        case None:
            return ""
        case str():
            return result
        case bytes() | bytearray():
            return result.decode("utf-8", "replace")
        case _:
            try:
                return json.dumps(result, ensure_ascii=False, default=_plain)
            except (TypeError, ValueError, RecursionError):  # keys JSON cannot have, or a value within itself
                return repr(result)


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know as one that it knows, one level deep."""
    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    match value:
        case Mapping():
            return dict(value)
        case Set():
            return sorted(value, key=repr)
        case enum.Enum():
            return value.value
        case bytes() | bytearray():
            return value.decode("utf-8", "replace")
        case _:
            return str(value)
