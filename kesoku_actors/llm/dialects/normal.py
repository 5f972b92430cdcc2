"""Any JSON schema in few keywords, as the dialects read it. Pure.

Afterwards there is no `$ref`, `const`, `oneOf`, `allOf` and no list of types, at no depth: references are put in
place, `const` is an `enum` of one, `oneOf` an `anyOf`, the members of an `allOf` are one. At the top stands an object.
What only narrows a value by a further schema (`not`, `if`, `patternProperties` ...) is left out, and so is what says
nothing or what newer drafts refuse: an empty list of choices, a key that is required twice, a bound that is true.
A schema that refers to itself ends, where it would begin again, in one that takes anything; so does an endless one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from attrs import field

from kesoku_actors.values import define

_MOST_NODES: Final = 2_000
_DEEPEST: Final = 60
_DROPPED: Final = (
    frozenset(
        {"$schema", "$id", "$comment", "$defs", "$anchor", "definitions", "$ref", "const", "oneOf", "allOf", "examples"}
    )
    | frozenset(
        {
            "not",
            "if",
            "then",
            "else",
            "patternProperties",
            "propertyNames",
            "dependentSchemas",
            "dependencies",
            "contains",
        }
    )
    | frozenset({"unevaluatedProperties", "unevaluatedItems", "contentSchema", "$dynamicRef", "$dynamicAnchor"})
)
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "prefixItems", "uniqueItems", "minItems", "maxItems"}),
}
_TYPES: Final[Mapping[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def normal(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's parameters in few keywords."""
    return _object_on_top(_Reader(root=schema).read({"type": "object", **schema}, ()))


def is_null(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema takes null and nothing else."""
    return schema.get("type") == "null" or schema.get("enum") == [None]


@define
class _Reader:
    root: Mapping[str, Any]
    nodes: int = field(default=0, init=False)
    depth: int = field(default=0, init=False)

    def read(self, schema: Any, within: tuple[str, ...]) -> dict[str, Any]:
        """Return one schema; `within` are the references it was reached through."""
        self.nodes += 1
        if not isinstance(schema, Mapping) or self.nodes > _MOST_NODES or self.depth == _DEEPEST:
            return {}
        self.depth += 1
        read = self._read(schema, within)
        self.depth -= 1
        return read

    def _read(self, schema: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
        read = {key: value for key, value in schema.items() if key not in _DROPPED}
        if isinstance(reference := schema.get("$ref"), str):
            found = None if reference in within else self._find(reference)
            read = {**self.read(found, (*within, reference)), **read}
        for member in _schemas(schema.get("allOf")):
            read = _merged(read, self.read(member, within))
        if "const" in schema:
            read["enum"] = [schema["const"]]
            if type(schema["const"]) in _TYPES:
                read.setdefault("type", _TYPES[type(schema["const"])])
        if one_of := _schemas(schema.get("oneOf")):
            read["anyOf"] = [*_schemas(read.get("anyOf")), *one_of]
        return self._parts(_fitting(_one_type(_sound(read))), within)

    def _parts(self, read: dict[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
        if isinstance(properties := read.get("properties"), Mapping):
            read["properties"] = {str(name): self.read(inner, within) for name, inner in properties.items()}
        for key in ("anyOf", "prefixItems"):
            if key in read:
                read[key] = [self.read(inner, within) for inner in _schemas(read[key])]
        if isinstance(read.get("items"), list):  # how tuples were written before 2020
            read["prefixItems"] = [self.read(inner, within) for inner in read.pop("items")]
        for key in ("items", "additionalProperties"):
            if isinstance(read.get(key), Mapping):
                read[key] = self.read(read[key], within)
        for key in ("anyOf", "prefixItems"):
            if not read.get(key, True):
                del read[key]
        return read

    def _find(self, reference: str) -> Any:
        place: Any = self.root
        for word in reference.removeprefix("#").split("/")[1:]:
            word = unquote(word).replace("~1", "/").replace("~0", "~")
            place = place.get(word) if isinstance(place, Mapping) else None
        return place if reference.startswith("#") else None


def _schemas(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _sound(read: dict[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing, and write the bounds of old drafts as newer ones do."""
    sound = dict(read)
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(is_exclusive := sound.get(exclusive), bool):
            del sound[exclusive]
            if is_exclusive and inclusive in sound:
                sound[exclusive] = sound.pop(inclusive)
    if not _schemas(sound.get("enum", [None])):
        del sound["enum"]
    if "required" in sound:
        sound["required"] = list(dict.fromkeys(name for name in _schemas(sound["required"]) if isinstance(name, str)))
    return sound


def _one_type(read: dict[str, Any]) -> dict[str, Any]:
    """Write a list of types as a union."""
    kinds = read.get("type")
    if not isinstance(kinds, list | tuple):
        return read
    if len(kinds) < 2:
        return {**{key: value for key, value in read.items() if key != "type"}, **({"type": kinds[0]} if kinds else {})}
    shared: dict[str, Any] = {key: read[key] for key in ("description", "default") if key in read}
    rest = {key: value for key, value in read.items() if key not in shared and key != "type"}
    members = [{"type": "null"} if kind == "null" else {**rest, "type": kind} for kind in kinds]
    return {**shared, "anyOf": members}


def _fitting(read: dict[str, Any]) -> dict[str, Any]:
    """Name the type of what has parts, and leave out parts that a type does not have."""
    if "type" not in read and not {"anyOf", "enum"} & set(read):
        read = {**read, **next(({"type": kind} for kind, parts in _PARTS.items() if parts & set(read)), {})}
    foreign = {part for kind, parts in _PARTS.items() if kind != read.get("type") for part in parts}
    return {key: value for key, value in read.items() if key not in foreign}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**second, **first}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**second["properties"], **first["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged


def _object_on_top(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object without a union at its top, which no provider takes: all keys, none required."""
    merged: dict[str, Any] = {**schema, "type": "object"}
    members = [member for member in merged.pop("anyOf", ()) if member.get("properties")]
    properties = dict(schema.get("properties", {}))
    for member in members:
        properties = {**member["properties"], **properties}
    merged["properties"] = properties
    return merged
