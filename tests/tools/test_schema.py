"""A callable as a tool: its schema, and the arguments a model sends back (R28)."""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.tools import DuplicateTool, InvalidArgument, InvalidTool, ToolContext, ToolRegistry
from kesoku_actors.tools.schema import signature_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def weather(
    city: str,
    days: int = 3,
    unit: Literal["c", "f"] = "c",
    hours: list[int] | None = None,
    exact: bool = False,
    colour: Colour = Colour.RED,
    extra: Annotated[dict[str, float], "more numbers"] | None = None,
    *,
    context: ToolContext,
) -> str:
    """Tell the weather.

    Args:
        city: The city's name,
            in English.
        days (int): How many days.

    Returns:
        A text.
    """
    return city


def test_the_schema_says_what_annotations_defaults_and_docstring_say():
    schema = signature_of(weather).schema
    assert schema.name == "weather"
    assert schema.description == "Tell the weather."
    assert schema.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "The city's name, in English."},
            "days": {"type": "integer", "default": 3, "description": "How many days."},
            "unit": {"enum": ["c", "f"], "type": "string", "default": "c"},
            "hours": {
                "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
                "default": None,
            },
            "exact": {"type": "boolean", "default": False},
            "colour": {"enum": ["red", "blue"], "type": "string", "default": "red"},
            "extra": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"type": "number"}, "description": "more numbers"},
                    {"type": "null"},
                ],
                "default": None,
            },
        },
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Find it.\n\nArgs:\n    text: What to find.\n    most: At most.\n",
        "Find it.\n\nParameters\n----------\ntext : str\n    What to find.\nmost : int, optional\n    At most.\n",
        "Find it.\n\n:param text: What to find.\n:param int most: At most.\n:returns: a list\n",
    ],
)
def test_three_styles_of_docstring_say_the_same(docstring):
    def find(text: str, most: int = 1) -> list[str]:
        return [text] * most

    find.__doc__ = docstring
    schema = signature_of(find).schema
    assert schema.description == "Find it."
    told = {name: value["description"] for name, value in schema.parameters["properties"].items()}
    assert told == {"text": "What to find.", "most": "At most."}


@pytest.mark.parametrize(
    ("sent", "bound"),
    [
        ({"city": "Oslo"}, {"city": "Oslo"}),
        ({"city": "Oslo", "days": "5"}, {"city": "Oslo", "days": 5}),
        ({"city": "Oslo", "days": 5.0}, {"city": "Oslo", "days": 5}),
        ({"city": "Oslo", "days": None}, {"city": "Oslo"}),
        ({"city": "Oslo", "hours": None}, {"city": "Oslo", "hours": None}),
        ({"city": "Oslo", "hours": "[1, 2]"}, {"city": "Oslo", "hours": [1, 2]}),
        ({"city": "Oslo", "exact": "true"}, {"city": "Oslo", "exact": True}),
        ({"city": "Oslo", "colour": "blue"}, {"city": "Oslo", "colour": Colour.BLUE}),
        ({"city": "Oslo", "extra": {"a": 1}}, {"city": "Oslo", "extra": {"a": 1.0}}),
        ({"city": 12}, {"city": "12"}),
    ],
)
def test_arguments_are_taken_where_nothing_is_lost(sent, bound):
    assert signature_of(weather).bind(sent) == bound


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "'city' is missing"),
        ({"city": None}, "city must be a string, not null"),
        ({"city": True}, "city must be a string, not true"),
        ({"city": "Oslo", "days": "many"}, "days must be an integer"),
        ({"city": "Oslo", "days": 1.5}, "days must be an integer, not 1.5"),
        ({"city": "Oslo", "days": True}, "days must be an integer, not true"),
        ({"city": "Oslo", "days": "9" * 5000}, "days must be an integer"),
        ({"city": "Oslo", "unit": "k"}, 'one of "c", "f"'),
        ({"city": "Oslo", "hours": [1, "x"]}, "hours[1] must be an integer"),
        ({"city": "Oslo", "hours": "[" * 100_000}, "hours must be a list"),
        ({"city": "Oslo", "extra": {"a": float("nan")}}, "extra.a must be a number"),
        ({"city": "Oslo", "exact": 1}, "exact must be true or false"),
        ({"city": "Oslo", "context": "mine"}, "no argument 'context'"),
        ({"city": "Oslo", "wind": 1, "rain": 2}, "no argument 'wind'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_place_and_wish(sent, said):
    with pytest.raises(InvalidArgument) as refused:
        signature_of(weather).bind(sent)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 500


def test_every_mistake_is_named_at_once():
    with pytest.raises(InvalidArgument) as refused:
        signature_of(weather).bind({"days": "x", "wind": 1})
    assert all(said in str(refused.value) for said in ("wind", "'city' is missing", "days must be"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["city", "days", "unit", "hours", "exact", "colour", "extra", "x"]), JSON))
def test_whatever_a_model_sends_is_bound_with_the_right_types_or_refused(sent):
    try:
        bound = signature_of(weather).bind(sent)
    except InvalidArgument:
        return
    assert type(bound["city"]) is str
    assert type(bound.get("days", 0)) is int
    assert bound.get("unit", "c") in ("c", "f")
    assert all(type(hour) is int for hour in bound.get("hours") or ())
    assert type(bound.get("exact", False)) is bool
    assert type(bound.get("colour", Colour.RED)) is Colour
    assert all(type(number) is float for number in (bound.get("extra") or {}).values())


def nothing_in_json(thing: complex) -> None: ...


def keys_that_are_no_text(table: dict[int, str]) -> None: ...


def without_names(*words: str) -> None: ...


def unknown_name(thing: Missing) -> None: ...  # noqa: F821


@pytest.mark.parametrize(
    ("function", "name", "said"),
    [
        (nothing_in_json, None, "'thing'"),
        (keys_that_are_no_text, None, "must be str"),
        (without_names, None, "by name"),
        (unknown_name, None, "Missing"),
        (weather, "two words", "letters, digits"),
        (weather, "x" * 65, "64"),
        (lambda: None, None, "letters, digits"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_registered(function, name, said):
    with pytest.raises(InvalidTool) as refused:
        ToolRegistry().add(function, owner="tests", name=name)
    assert said in str(refused.value)


def test_partials_methods_and_callable_objects_are_tools():
    class Counter:
        def __call__(self, by: int) -> int:
            """Count on."""
            return by

        async def wait(self, seconds: float) -> None:
            """Wait."""

    counted = signature_of(Counter(), name="count")
    assert (counted.schema.description, counted.is_async) == ("Count on.", False)
    waited = signature_of(Counter().wait)
    assert (waited.schema.name, waited.is_async) == ("wait", True)
    fixed = signature_of(functools.partial(weather, days=7))
    assert fixed.bind({"city": "Oslo"}) == {"city": "Oslo"}
    assert fixed.schema.parameters["properties"]["days"]["default"] == 7


def test_sequences_mappings_and_anything_have_schemas():
    def take(items: Sequence[str], table: Mapping[str, int], rest: Any, plain: list) -> None: ...

    properties = signature_of(take).schema.parameters["properties"]
    assert properties == {
        "items": {"type": "array", "items": {"type": "string"}},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "rest": {},
        "plain": {"type": "array", "items": {}},
    }


def test_a_taken_name_is_refused_and_free_again_when_its_owner_disposes():
    registry = ToolRegistry()
    dispose = registry.add(weather, owner="first")
    with pytest.raises(DuplicateTool, match="first"):
        registry.add(weather, owner="second")
    dispose()
    registry.add(weather, owner="second")
    dispose()
    assert registry.owners() == {"weather": "second"}
    assert [json.loads(json.dumps(schema.parameters))["type"] for schema in registry.schemas()] == ["object"]
