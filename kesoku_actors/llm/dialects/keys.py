"""The keys of objects under names that a provider takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesoku_actors.llm.dialects.names import NameRule


def renamed_keys(schema: Mapping[str, Any], rule: NameRule) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a normal schema under such names, and by its own name the other one of every key that has one."""
    names: dict[str, str] = {}
    return _renamed(schema, rule, names), names


def _renamed(schema: Mapping[str, Any], rule: NameRule, names: dict[str, str]) -> dict[str, Any]:
    renamed = dict(schema)
    if "properties" in renamed:
        for name in renamed["properties"]:
            if (outward := rule.outward(name)) != name:
                names[name] = outward
        renamed["properties"] = {
            names.get(name, name): _renamed(inner, rule, names) for name, inner in renamed["properties"].items()
        }
    if "required" in renamed:
        renamed["required"] = [names.get(name, name) for name in renamed["required"]]
    for key in ("anyOf", "prefixItems"):
        if key in renamed:
            renamed[key] = [_renamed(inner, rule, names) for inner in renamed[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(renamed.get(key), Mapping):
            renamed[key] = _renamed(renamed[key], rule, names)
    return renamed
