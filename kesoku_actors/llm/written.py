"""A request's body and the bytes of its talk: what a service is sent. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.values import frozen

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@frozen(kw_only=True)
class Written:
    """A request that keeps its provider's rules, and what had to be done for it (P1)."""

    body: Mapping[str, Any]
    key: str
    """Which field of the body is the talk: a list."""
    talk: bytes
    """That list as JSON."""
    repairs: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many bytes its JSON is. Raises `UnicodeEncodeError` for half a surrogate pair beside the talk."""
        return len(splice(self.body, self.key, b"")) + len(self.talk)

    @property
    def content(self) -> bytes:
        """The body as JSON."""
        return splice(self.body, self.key, self.talk)


def whole(key: str, sound: RepairedBody) -> Written:
    """Return a body that was made anew as it is sent."""
    return Written(body=sound.body, key=key, talk=encode(sound.body[key]), repairs=sound.repairs)


def encode(value: Any) -> bytes:
    """Return JSON as it goes on the wire. Raises `UnicodeEncodeError` for half a surrogate pair."""
    return _ENCODER.encode(value).encode()


def encode_items(items: Iterable[Any]) -> bytes:
    """Return the JSON of a list without its brackets."""
    return encode(list(items))[1:-1]


def join_items(parts: Iterable[bytes]) -> bytes:
    """Return the list whose parts are JSON already, without brackets; one may be empty. It is copied once."""
    first, *others = [part for part in parts if part] or [b""]
    return b"".join([b"[", first, *[piece for part in others for piece in (b",", part)], b"]"])


def splice(body: Mapping[str, Any], key: str, value: bytes) -> bytes:
    """Return the JSON of a body whose field `key` is JSON already."""
    parts = [
        part
        for name, field in body.items()
        for part in (b",", encode(name), b":", value if name == key else encode(field))
    ]
    return b"".join([b"{", *parts[1:], b"}"])  # the value is copied once
