"""What a schema says, in words: for what a dialect has no keyword for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

_LONGEST: Final = 400


def with_sentence(schema: Mapping[str, Any], sentence: str) -> dict[str, Any]:
    """Return `schema` with one sentence more in its description."""
    before = str(schema.get("description", "")).strip()
    return {**schema, "description": f"{before} {sentence}".strip()} if sentence else dict(schema)


def any_of(members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the union of `members`, each once; of none it is what takes anything."""
    distinct = [member for at, member in enumerate(members) if member not in members[:at]]
    return dict(distinct[0]) if len(distinct) == 1 else {"anyOf": distinct} if distinct else {}


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return what kind of value a schema wants, in a few words."""
    if "enum" in schema:
        return f"one of {shown(schema['enum'])}"
    if "anyOf" in schema:
        return " or ".join(kind_of(member) for member in schema["anyOf"])
    return str(schema.get("type", "anything"))


def shown(value: Any) -> str:
    """Return a JSON value as a text of bounded length."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
