"""Tools for chat completions: OpenAI's and those of the many servers that speak like it. Pure.

Names are `[A-Za-z0-9_-]`, 64 at most. Parameters are a JSON schema whose top is an object, and every array says what
its items are; so a tuple is a list of any of its kinds, of fixed length, and its order stands in the description.
Strict mode is not asked for: it knows no optional argument and no table, and other servers refuse the word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kesoku_actors.llm.dialects.declared import Declared
from kesoku_actors.llm.dialects.names import NameRule
from kesoku_actors.llm.dialects.normal import normal
from kesoku_actors.llm.dialects.words import any_of, kind_of, with_sentence
from kesoku_actors.protocol import ToolSchema

NAMES: Final = NameRule(re.compile(r"[A-Za-z0-9_-]+"))


def declare(tools: Sequence[ToolSchema]) -> Declared:
    """Return `tools` as the entries of a request's `tools`."""
    made = tuple(
        {
            "type": "function",
            "function": {
                "name": NAMES.outward(tool.name),
                "description": tool.description,
                "parameters": _plain(normal(tool.parameters)),
            },
        }
        for tool in tools
    )
    return Declared(tools=made, name_rule=NAMES, names={NAMES.outward(tool.name): tool.name for tool in tools})


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    plain = dict(schema)
    if "properties" in plain:
        plain["properties"] = {name: _plain(inner) for name, inner in plain["properties"].items()}
    if "anyOf" in plain:
        plain["anyOf"] = [_plain(member) for member in plain["anyOf"]]
    if isinstance(plain.get("additionalProperties"), Mapping):
        plain["additionalProperties"] = _plain(plain["additionalProperties"])
    prefix = plain.pop("prefixItems", [])
    if plain.get("type") == "array":
        rest = plain.get("items")
        members = [*prefix, *([rest] if isinstance(rest, Mapping) else [])]
        plain["items"] = any_of([_plain(member) for member in members])
        if prefix:
            plain = with_sentence(plain, f"In this order: {', '.join(map(kind_of, prefix))}.")
    return plain
