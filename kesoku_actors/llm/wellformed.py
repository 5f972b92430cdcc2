"""Makes what a model said fit to be stored and sent on. Pure.

A model's output is untrusted (T1): JSON lets it hold half surrogate pairs, which no UTF-8 can carry, numbers that are
none (`NaN`, `1e999`), which no strict JSON reader takes, and nesting that ends in a stack overflow somewhere. None of
it may reach the store or the next request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from attrs import evolve

from kesoku_actors.llm.port import CallRequest, Reply

DEEPEST: Final = 100
"""Levels of lists and objects within each other."""
_HIGH: Final = ("\ud800", "\udbff")


def whole_text(text: str) -> str:
    """Return the text with surrogate pairs joined and half ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_whole(value: Any) -> bool:
    """Tell whether every text in JSON data can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()  # in C; a walk in Python takes twenty times as long
    except UnicodeEncodeError:
        return False
    return True


def json_size(value: Any) -> int:
    """Return how many bytes JSON data takes on the wire; half characters count as if they were replaced."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


class TextJoiner:
    """Joins a text that comes in pieces, also when a character is cut in two between them."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Take a piece; return what may be shown now."""
        piece, self._half = self._half + piece, ""
        if piece and _HIGH[0] <= piece[-1] <= _HIGH[1]:
            piece, self._half = piece[:-1], piece[-1]
        shown = whole_text(piece)
        self._pieces.append(shown)
        return shown

    def text(self) -> str:
        """Return all of it."""
        return "".join(self._pieces) + whole_text(self._half)


def well_formed(value: Any, depth: int = 0) -> Any:
    """Return JSON data with its texts made whole. Raises `ValueError` for what is none and for deep nesting."""
    if depth > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    match value:
        case str():
            return whole_text(value)
        case float() if value - value != 0:
            raise ValueError(f"{value} is no JSON number")
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {_key(key): well_formed(part, depth + 1) for key, part in value.items()}
        case list() | tuple():
            return [well_formed(part, depth + 1) for part in value]
        case _:
            raise ValueError(f"a {type(value).__name__} is no JSON value")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a {type(key).__name__} is no JSON key")
    return whole_text(key)


def read_object(text: str) -> dict[str, Any] | None:
    """Return the well-formed JSON object that the text is, or none."""
    try:
        value = well_formed(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def whole_reply(reply: Reply) -> Reply:
    """Return the reply fit to be stored, whichever provider made it; a call whose arguments are not is invalid."""
    return evolve(
        reply,
        text=whole_text(reply.text),
        thought=whole_text(reply.thought),
        calls=tuple(map(_whole_call, reply.calls)),
        native=_kept(reply.native),
        finish_reason=whole_text(reply.finish_reason),
        unshown=tuple(map(whole_text, reply.unshown)),
    )


def _whole_call(call: CallRequest) -> CallRequest:
    arguments = _kept(call.arguments)
    invalid = call.invalid if arguments is not None else "the arguments are no JSON that can be kept"
    return evolve(
        call,
        name=whole_text(call.name),
        arguments=arguments or {},
        id=whole_text(call.id),
        signature=None if call.signature is None else whole_text(call.signature),
        invalid=None if invalid is None else whole_text(invalid),
    )


def _kept(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the fields made whole; none when there are none, or none that can be kept."""
    try:
        return None if fields is None else cast("dict[str, Any]", well_formed(dict(fields)))
    except ValueError:
        return None
