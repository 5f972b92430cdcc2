"""Tools for Google's Gemini. Pure.

Its schema is a part of OpenAPI's: no references, constants, tuples, open tables and exclusive bounds; formats only a
few, enums only of texts and none of them empty, an object has keys, an array items, a union stands alone, and nothing
nests deeper than a few levels. Function names are `[A-Za-z_][A-Za-z0-9_-]*`, keys `[A-Za-z_][A-Za-z0-9_]*`.

What it cannot say becomes the nearest thing it can: a number among few values is a text, a table or what lies too deep
is JSON as text, and a sentence of the description tells so. The reader of the arguments takes all of these for what
they say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kesoku_actors.llm.dialects.declared import Declared
from kesoku_actors.llm.dialects.keys import renamed_keys
from kesoku_actors.llm.dialects.names import NameRule
from kesoku_actors.llm.dialects.normal import is_null, normal
from kesoku_actors.llm.dialects.words import any_of, kind_of, shown, with_sentence
from kesoku_actors.protocol import ToolSchema

NAMES: Final = NameRule(re.compile(r"[A-Za-z_][A-Za-z0-9_-]*"), longest=63)
KEYS: Final = NameRule(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"))
DEEPEST: Final = 4
"""Objects and arrays within each other, the parameters themselves included."""
_FORMATS: Final = {
    "string": ("date-time",),
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}
_KEYWORDS: Final = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "null": (),
}


def declare(tools: Sequence[ToolSchema]) -> Declared:
    """Return `tools` as one entry of a request's `tools`, or as none."""
    made: list[dict[str, Any]] = []
    keys: dict[str, dict[str, str]] = {}
    for tool in tools:
        # Renamed last: JSON in a text keeps its keys.
        parameters, keys[tool.name] = renamed_keys(_object(normal(tool.parameters), 1), KEYS)
        described = {"description": tool.description} if tool.description else {}
        # An object without keys is refused: a function without parameters says nothing of them.
        with_parameters = {"parameters": parameters} if parameters["properties"] else {}
        made.append({"name": NAMES.outward(tool.name), **described, **with_parameters})
    return Declared(
        tools=({"functionDeclarations": made},) if made else (),
        name_rule=NAMES,
        names={NAMES.outward(tool.name): tool.name for tool in tools},
        keys=keys,
    )


def _schema(schema: Mapping[str, Any], level: int) -> dict[str, Any]:
    """Return one schema; `level` counts the objects and arrays it would be the innermost of."""
    said = _told(schema)
    if "anyOf" in schema:
        return _union(schema["anyOf"], said, level)
    if "enum" in schema:
        return _choice(schema, said)
    kind = schema.get("type")
    if kind == "object" and schema.get("properties") and level <= DEEPEST:
        return {**said, **_object(schema, level)}
    if kind == "array" and level <= DEEPEST:
        return {**said, **_array(schema, level)}
    if kind in ("object", "array"):
        return _as_text(schema, said)
    if kind in _KEYWORDS:
        kept = {key: schema[key] for key in _KEYWORDS[kind] if key in schema}
        format = {"format": schema["format"]} if schema.get("format") in _FORMATS.get(kind, ()) else {}
        return {**said, "type": kind.upper(), **kept, **format, **_inclusive(schema, kind)}
    said = with_sentence(said, "Any value; a list or an object as JSON text.")
    return {"anyOf": [{**said, "type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]}


def _told(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description, and in it what has no keyword."""
    told = {"description": schema["description"]} if schema.get("description") else {}
    if (default := schema.get("default")) is not None:
        told = with_sentence(told, f"Default: {shown(default)}.")
    for keyword, words in (("exclusiveMinimum", "More than"), ("exclusiveMaximum", "Less than")):
        if keyword in schema and schema.get("type") != "integer":
            told = with_sentence(told, f"{words} {schema[keyword]}.")
    if "multipleOf" in schema:
        told = with_sentence(told, f"A multiple of {schema['multipleOf']}.")
    if schema.get("uniqueItems") is True:
        told = with_sentence(told, "No value twice.")
    return told


def _inclusive(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    bounds = (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1))
    return {
        inclusive: int(schema[exclusive]) + step
        for exclusive, inclusive, step in bounds
        if kind == "integer" and exclusive in schema
    }


def _union(members: Sequence[Mapping[str, Any]], said: Mapping[str, Any], level: int) -> dict[str, Any]:
    kept = [member for member in members if not is_null(member)]
    may_be_null = len(kept) < len(members)
    made = any_of([_schema(member, level) for member in kept])
    if not made:
        return {**said, "type": "NULL"}
    # A union stands alone: null is a member of it, and what is said of it is said of its first member.
    inner = made.get("anyOf", [made])
    flat = [leaf for member in inner for leaf in member.get("anyOf", [member])]
    flat = [leaf for at, leaf in enumerate(flat) if leaf not in flat[:at]]
    sentences = [text for text in (said.get("description"), flat[0].get("description")) if text]
    if sentences:
        flat[0] = {**flat[0], "description": " ".join(sentences)}
    if len(flat) == 1:
        return {**flat[0], **({"nullable": True} if may_be_null else {})}
    return {"anyOf": [*flat, *([{"type": "NULL"}] if may_be_null else [])]}


def _choice(schema: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    values = [value for value in schema["enum"] if value is not None]
    texts = list(dict.fromkeys(value if isinstance(value, str) else shown(value) for value in values))
    nullable = {"nullable": True} if len(values) < len(schema["enum"]) else {}
    if not texts or not all(texts):
        return {**with_sentence(said, f"One of {shown(schema['enum'])}."), "type": "STRING", **nullable}
    return {**said, "type": "STRING", "format": "enum", "enum": texts, **nullable}


def _object(schema: Mapping[str, Any], level: int) -> dict[str, Any]:
    properties = {name: _schema(inner, level + 1) for name, inner in schema["properties"].items()}
    made: dict[str, Any] = {"type": "OBJECT", "properties": properties}
    if required := [name for name in schema.get("required", ()) if name in properties]:
        made["required"] = required
    return made


def _array(schema: Mapping[str, Any], level: int) -> dict[str, Any]:
    prefix, rest = schema.get("prefixItems", []), schema.get("items", {})
    members = [*prefix, *([rest] if isinstance(rest, Mapping) and (rest or not prefix) else [])]
    items = _union(members, {}, level + 1) if members else {"type": "STRING"}
    bounds = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
    made: dict[str, Any] = {"type": "ARRAY", "items": items, **bounds}
    if prefix:
        order = f"In this order: {', '.join(map(kind_of, prefix))}."
        made = with_sentence({**made, **_told(schema)}, order)
    return made


def _as_text(schema: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    what = "object" if schema["type"] == "object" else "list"
    known = {key: schema[key] for key in ("properties", "required", "items", "prefixItems") if schema.get(key)}
    if isinstance(schema.get("additionalProperties"), Mapping):
        known["additionalProperties"] = schema["additionalProperties"]
    more = f" of this schema: {shown(known)}" if known else ""
    return {**with_sentence(said, f"A JSON {what} as text{more}."), "type": "STRING"}
