"""Tools in the words of each provider: what its own types take, with the refusals of its service respected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import anthropic.types
import pytest
from google.genai import types as genai
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kesoku_actors.llm.dialects import Declared, Declaring, claude, gemini, openai
from kesoku_actors.llm.dialects.names import NameRule
from kesoku_actors.protocol import ToolSchema
from kesoku_actors.tools.annotations import shape_of
from kesoku_actors.tools.records import Key, object_schema, take_keys

from ..tools.annotated import annotations

DIALECTS = {"openai": openai.declare, "claude": claude.declare, "gemini": gemini.declare}
CLAUDE = TypeAdapter(anthropic.types.ToolParam)
NAMES = st.text(min_size=1, max_size=80)


def tool(parameters: Mapping[str, Any], name: str = "tool", description: str = "Does it.") -> ToolSchema:
    return ToolSchema(name=name, description=description, parameters=parameters)


def of(schema: Mapping[str, Any]) -> ToolSchema:
    """Return a tool whose argument `it` has this schema."""
    return tool({"type": "object", "properties": {"it": schema}, "required": ["it"], "additionalProperties": False})


def nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every schema within a schema."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for key in ("anyOf", "prefixItems"):
        for inner in schema.get(key, ()):
            yield from nodes(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from nodes(schema[key])


def depth(schema: Mapping[str, Any]) -> int:
    inner = max((depth(each) for each in nodes(schema) if each is not schema), default=0)
    return inner + (schema.get("type") in ("OBJECT", "ARRAY"))


GEMINI_KEYWORDS = {
    "type", "format", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties", "required",
    "anyOf", "minimum", "maximum", "minLength", "maxLength", "pattern",
}  # fmt: skip
REFERENCES = {"$ref", "$defs", "definitions", "$schema", "const", "oneOf", "allOf"}


def check_gemini(declared: Declared) -> None:
    """Judge by the SDK's types, and by what the service refuses though the types take it."""
    for entry in declared.tools:
        genai.Tool.model_validate(entry)
        for function in entry["functionDeclarations"]:
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", function["name"])
            top = function.get("parameters", {"type": "OBJECT"})
            assert top["type"] == "OBJECT"
            assert depth(top) <= gemini.DEEPEST
            for node in nodes(top):
                assert set(node) <= GEMINI_KEYWORDS
                assert ("anyOf" in node) == ("type" not in node)
                if "anyOf" in node:
                    assert set(node) == {"anyOf"}
                    assert len(node["anyOf"]) > 1
                if "enum" in node:
                    assert node["type"] == "STRING"
                    assert all(isinstance(value, str) and value for value in node["enum"])
                    assert len(set(node["enum"])) == len(node["enum"])
                if node.get("type") == "ARRAY":
                    assert node["items"]
                if "properties" in node:
                    assert node["properties"]
                    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", key) for key in node["properties"])
                    assert set(node.get("required", ())) <= set(node["properties"])


def check_claude(declared: Declared) -> None:
    for entry in declared.tools:
        assert CLAUDE.validate_python(entry, strict=True) == entry
        assert set(entry) <= {"name", "description", "input_schema"}
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry["name"])
        top = entry["input_schema"]
        assert top["type"] == "object"
        assert not {"anyOf", "enum"} & set(top)
        for node in nodes(top):
            assert not REFERENCES & set(node)
            assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in node.get("properties", {}))
            assert set(node.get("required", ())) <= set(node.get("properties", ()))


def check_openai(declared: Declared) -> None:
    for entry in declared.tools:
        assert set(entry) == {"type", "function"}
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry["function"]["name"])
        top = entry["function"]["parameters"]
        assert top["type"] == "object"
        assert isinstance(top["properties"], dict)
        assert not {"anyOf", "enum", "not"} & set(top)
        for node in nodes(top):
            assert not (REFERENCES | {"prefixItems"}) & set(node)
            assert isinstance(node.get("type", ""), str)
            if node.get("type") == "array":
                assert isinstance(node["items"], Mapping)


CHECKS = {"openai": check_openai, "claude": check_claude, "gemini": check_gemini}


@given(st.lists(st.tuples(NAMES, annotations(4)), max_size=3, unique_by=lambda pair: pair[0]), NAMES)
def test_every_signature_is_said_as_each_provider_takes_it(parameters, name):
    keys = [Key(name=key, attribute=key, shape=shape_of(drawn[0])) for key, drawn in parameters]
    schema = ToolSchema(name=name, description="", parameters=object_schema(keys))
    for dialect, declare in DIALECTS.items():
        CHECKS[dialect](declare([schema]))


def test_tools_without_parameters_and_no_tools_at_all_are_said_too():
    nothing = tool({"type": "object", "properties": {}, "additionalProperties": False})
    for dialect, declare in DIALECTS.items():
        CHECKS[dialect](declare([nothing]))
        assert declare([]).tools == ()
    assert gemini.declare([nothing]).tools == ({"functionDeclarations": [{"name": "tool", "description": "Does it."}]},)


JSON_SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {},
            True,
            {"type": "string", "format": "uri", "minLength": 1},
            {"type": ["integer", "null"], "exclusiveMinimum": 0},
            {"type": "number", "exclusiveMaximum": 1.5, "multipleOf": 0.5},
            {"const": 3},
            {"const": None},
            {"enum": ["", "a", None, 1]},
            {"$ref": "#/$defs/node"},
            {"$ref": "#/nowhere"},
            {"$ref": "elsewhere.json"},
            {"type": "array"},
            {"type": "object"},
            {"type": "object", "additionalProperties": True},
        ]
    ),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda members: {"oneOf": members})
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: {"anyOf": members, "description": "Some."})
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: {"allOf": members})
        | st.lists(inner, min_size=1, max_size=2).map(lambda members: {"type": "array", "items": members})
        | inner.map(lambda item: {"type": "array", "items": item, "uniqueItems": True, "minItems": 1})
        | st.dictionaries(NAMES, inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)[:1]}
        )
        | inner.map(lambda entry: {"type": "object", "additionalProperties": entry})
    ),
    max_leaves=8,
)
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}}}


@given(st.dictionaries(NAMES, JSON_SCHEMAS, max_size=3), JSON_SCHEMAS)
def test_any_json_schema_is_said_as_each_provider_takes_it(properties, top):
    parameters = {"$schema": "x", "$defs": {"node": NODE}, "type": "object", "properties": properties}
    for dialect, declare in DIALECTS.items():
        CHECKS[dialect](declare([tool(parameters), tool({**parameters, "anyOf": [top]}, name="other")]))


def test_a_schema_without_an_end_and_one_of_great_depth_come_to_an_end():
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        deep = {"type": "array", "items": deep}
    twice = {"type": "object", "properties": {"a": {"$ref": "#/$defs/twice"}, "b": {"$ref": "#/$defs/wide"}}}
    wide = {"type": "object", "properties": {f"k{at}": {"$ref": "#/$defs/twice"} for at in range(50)}}
    properties = {"deep": deep, "twice": {"$ref": "#/$defs/twice"}}
    parameters = {"type": "object", "properties": properties, "$defs": {"twice": twice, "wide": wide}}
    for dialect, declare in DIALECTS.items():
        CHECKS[dialect](declare([tool(parameters)]))


def as_gemini_sends(value: Any, schema: Mapping[str, Any], declared: Declared) -> Any:
    """Return a JSON value as a model sends it that keeps to Gemini's schema; in a text keys are what they are."""
    if value is None or "anyOf" in schema:
        return value
    match schema["type"]:
        case "STRING" if not isinstance(value, str):
            return json.dumps(declared.inward("tool.größe", {"it": value})[1]["it"])
        case "OBJECT":
            return {key: as_gemini_sends(inner, schema["properties"][key], declared) for key, inner in value.items()}
        case "ARRAY":
            return [as_gemini_sends(inner, schema["items"], declared) for inner in value]
        case _:
            return value


@given(st.data(), st.sampled_from(["it", "größe", "a b", "from"]))
def test_what_a_model_sends_in_the_words_of_its_provider_is_bound_as_what_was_meant(data, key):
    annotation, values = data.draw(annotations())
    shape = shape_of(annotation)
    keys = {key: Key(name=key, attribute=key, shape=shape)}
    schema = tool(object_schema(tuple(keys.values())), name="tool.größe")
    value = data.draw(values)
    meant = json.loads(json.dumps({key: shape.give(value)}))
    for dialect, declare in DIALECTS.items():
        declared = declare([schema])
        name, sent = declared.outward(schema.name, meant)
        if dialect == "gemini":
            sent = as_gemini_sends(sent, declared.tools[0]["functionDeclarations"][0]["parameters"], declared)
        name, arguments = declared.inward(name, sent)
        assert name == schema.name
        assert take_keys(arguments, keys, "") == {key: value}


RULES = [openai.NAMES, claude.NAMES, claude.KEYS, gemini.NAMES, gemini.KEYS]


@given(st.sampled_from(RULES), st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_names_are_mapped_one_to_one_to_names_that_are_taken(rule, names):
    outward = [rule.outward(name) for name in names]
    assert len(set(outward)) == len(names)
    assert all(rule.allowed.fullmatch(name) and len(name) <= rule.longest for name in outward)


@given(st.sampled_from(RULES), NAMES)
def test_a_name_that_looks_like_a_mapped_one_does_not_meet_it(rule, name):
    once = rule.outward(name)
    assert once == name or rule.outward(once) != once


def test_a_good_name_stays_as_it_is():
    for rule in RULES:
        assert rule.outward("read_file") == "read_file"
    assert re.fullmatch(r"mcp_search_x[0-9a-f]{16}", NameRule(re.compile(r"\w+")).outward("mcp.search"))


@pytest.mark.parametrize("declare", DIALECTS.values(), ids=DIALECTS)
def test_a_call_of_a_tool_that_is_no_more_goes_out_and_an_unknown_name_comes_in(declare):
    declared = declare([])
    assert declared.outward("gone", {"a b": 1}) == ("gone", {"a b": 1})
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", declared.outward("no more.", {})[0])
    assert declared.inward("invented", {"a": 1}) == ("invented", {"a": 1})


def test_gemini_gets_the_nearest_thing_that_it_can_say():
    def it(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        (entry,) = gemini.declare([of(schema)]).tools
        return entry["functionDeclarations"][0]["parameters"]["properties"]["it"]

    text, null = {"type": "string"}, {"type": "null"}
    assert it({"anyOf": [{**text, "description": "A."}, null], "default": None}) == {
        "type": "STRING",
        "description": "A.",
        "nullable": True,
    }
    assert it({"anyOf": [text, {"type": "integer"}, null], "description": "Both."}) == {
        "anyOf": [{"type": "STRING", "description": "Both."}, {"type": "INTEGER"}, {"type": "NULL"}]
    }
    assert it({"enum": [1, 2], "type": "integer"}) == {"type": "STRING", "format": "enum", "enum": ["1", "2"]}
    assert it({"type": "integer", "default": 3}) == {"type": "INTEGER", "description": "Default: 3."}
    assert it({"type": "integer", "exclusiveMinimum": 0}) == {"type": "INTEGER", "minimum": 1}
    assert it({"type": "object", "additionalProperties": {"type": "integer"}}) == {
        "type": "STRING",
        "description": 'A JSON object as text of this schema: {"additionalProperties": {"type": "integer"}}.',
    }
    pair = {"type": "array", "prefixItems": [text, {"type": "integer"}], "items": False, "minItems": 2, "maxItems": 2}
    assert it(pair) == {
        "type": "ARRAY",
        "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
        "minItems": 2,
        "maxItems": 2,
        "description": "In this order: string, integer.",
    }


def test_openai_gets_items_for_every_array_and_claude_the_schema_as_it_is():
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 2}
    (made,) = openai.declare([of(pair)]).tools
    assert made["function"]["parameters"]["properties"]["it"] == {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "minItems": 2,
        "description": "In this order: string, integer.",
    }
    (made,) = claude.declare([of(pair)]).tools
    assert made["input_schema"] == of(pair).parameters


def test_the_same_tools_are_declared_once():
    declaring = Declaring(openai.declare)
    tools = (of({"type": "string"}),)
    first = declaring(tools)
    assert declaring((tools[0],)) is first
    assert declaring((of({"type": "string"}),)) is not first
    assert declaring(()).tools == ()


@pytest.mark.parametrize("declare", DIALECTS.values(), ids=DIALECTS)
def test_what_a_provider_cannot_follow_is_left_out_of_a_foreign_schema(declare: Any) -> None:
    foreign = {
        "$defs": {"A": {"type": "string"}},
        "type": "object",
        "properties": {
            "it": {"not": {"$ref": "#/$defs/A"}, "patternProperties": {"a b": {"$ref": "#/$defs/A"}}, "type": "object"},
            "bound": {
                "type": "integer",
                "minimum": 5,
                "exclusiveMinimum": True,
                "maximum": 9,
                "exclusiveMaximum": False,
            },
            "choice": {"type": "string", "enum": []},
            "many": {"type": "array", "items": {"type": []}, "prefixItems": []},
        },
        "required": ["it", "it"],
        "if": {"properties": {"it": {"const": 1}}},
        "then": {"$ref": "#/$defs/A"},
    }
    said = json.dumps(declare([tool(foreign)]).tools)
    assert [word for word in ("$ref", "patternProperties", '"not"', '"if"', '"enum": []', "true") if word in said] == []
    assert '"required": ["it"]' in said
    assert '"exclusiveMinimum": 5' in said or '"minimum": 6' in said
    assert '"maximum": 9' in said
