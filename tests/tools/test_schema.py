"""A callable as a tool: its schema, and the arguments a model sends back (R28)."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, NotRequired, Optional, Required, TypedDict, Union

import attrs
import pytest
from attrs import define, frozen
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.tools import DuplicateTool, InvalidArgument, InvalidTool, ToolContext, ToolRegistry
from kesoku_actors.tools.annotations import shape_of
from kesoku_actors.tools.schema import signature_of

from .annotated import Colour, Corner, Options, Point, Shape, Size, annotations, is_valid


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
        "Args:\n    text: What to find.\n    most: At most.\n",
        "Args:\n  text (Callable[[int], str], optional): What to\n    find.\n\n  most: At most.\n\nRaises:\n  E: x\n",
        "Parameters\n----------\ntext : str\n    What to find.\nmost : int, optional\n    At most.\n",
        "Parameters\n----------\ntext\n    What to find.\nmost : {1, 2}\n    At most.\n\nReturns\n-------\nx\n",
        ":param text: What to find.\n:param int most: At most.\n:returns: a list\n",
        ":param str text:\n    What to find.\n:type text: str\n:param most: At\n    most.\n:type most: int\n",
    ],
)
def test_three_styles_of_docstring_say_the_same(docstring):
    def find(text: str, most: int = 1) -> list[str]:
        return [text] * most

    find.__doc__ = f"Find it.\n\n{docstring}"
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


@given(st.data())
def test_an_argument_made_from_the_schema_comes_back_as_it_was(data):
    annotation, values = data.draw(annotations())
    shape = shape_of(annotation)
    value = data.draw(values)
    sent = json.loads(json.dumps(shape.give(value)))
    assert is_valid(sent, shape.schema)
    assert shape.fits(sent)
    assert shape.take(sent, "it") == value
    assert type(shape.take(sent, "it")) is type(value)


@given(annotations(), JSON)
def test_whatever_a_model_sends_is_taken_as_a_value_of_the_annotation_or_refused_by_name(drawn, sent):
    shape = shape_of(drawn[0])
    try:
        taken = shape.take(sent, "it")
    except InvalidArgument as refused:
        said = str(refused)
    else:
        said = "it was taken"
        assert is_valid(json.loads(json.dumps(shape.give(taken))), shape.schema)
    assert said.startswith(("it", "there is no key 'it", "the key 'it"))


def nothing_in_json(thing: complex) -> None: ...


def keys_that_are_no_text(table: dict[int, str]) -> None: ...


def without_names(*words: str) -> None: ...


def unknown_name(thing: Missing) -> None: ...  # noqa: F821


def keyword_words(**words: str) -> None: ...


def only_by_place(first: str, /) -> None: ...


def without_annotation(thing, other: int) -> None: ...


def yielding(count: int) -> Iterator[int]:
    yield count


@frozen
class Tree:
    children: list[Tree]


@define
class Bare:
    thing = attrs.field()


def holding_itself(tree: Tree) -> None: ...


def holding_bare(bare: Bare) -> None: ...


def set_of_lists(sets: set[list[int]]) -> None: ...


def deep_down(shape: dict[str, list[complex]]) -> None: ...


@pytest.mark.parametrize(
    ("function", "name", "said"),
    [
        (nothing_in_json, None, "'thing'"),
        (keys_that_are_no_text, None, "must be str"),
        (without_names, None, "by name"),
        (unknown_name, None, "Missing"),
        (unknown_name, None, "'thing'"),
        (keyword_words, None, "'**words'"),
        (keyword_words, None, "name each argument"),
        (without_names, None, "'*words'"),
        (only_by_place, None, "remove the '/'"),
        (without_annotation, None, "'thing': it has no annotation; write `thing: str`"),
        (yielding, None, "return a list"),
        (holding_itself, None, "Tree.children: Tree holds itself"),
        (holding_bare, None, "Bare.thing has no annotation"),
        (set_of_lists, None, "use a list"),
        (deep_down, None, "'shape': complex has no JSON schema; use str"),
        (print, None, "'*args'"),
        (weather, "two words", "letters, digits"),
        (weather, "1st", "begins with"),
        (weather, "x" * 65, "64"),
        (lambda: None, None, "letters, digits"),
        (Point, None, "is no function"),
        (42, "answer", "is no function"),
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


def test_the_context_is_never_asked_of_the_model():
    def plain(context: ToolContext) -> None: ...
    def optional(context: ToolContext | None = None) -> None: ...
    def described(*, where: Annotated[ToolContext, "Where."]) -> None: ...

    for function, name in ((plain, "context"), (optional, "context"), (described, "where")):
        signature = signature_of(function)
        assert signature.schema.parameters["properties"] == {}
        assert signature.context_parameter == name


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


def of(annotation: Any) -> Mapping[str, Any]:
    """Return the schema of an annotation."""
    return shape_of(annotation).schema


def test_every_kind_of_annotation_has_its_schema():
    text, number, null = {"type": "string"}, {"type": "integer"}, {"type": "null"}
    assert of(list) == {"type": "array", "items": {}}
    assert of(list[int]) == {"type": "array", "items": number}
    assert of(dict[str, int]) == {"type": "object", "additionalProperties": number}
    assert of(set[str]) == of(frozenset[str]) == {"type": "array", "items": text, "uniqueItems": True}
    assert of(tuple[int, ...]) == {"type": "array", "items": number}
    assert of(tuple) == {"type": "array", "items": {}}
    pair = {"type": "array", "prefixItems": [number, text], "items": False, "minItems": 2, "maxItems": 2}
    assert of(tuple[int, str]) == pair
    assert of(Literal["a", "b"]) == {"enum": ["a", "b"], "type": "string"}
    assert of(Literal[1, "b", True]) == {"enum": [1, "b", True]}
    assert of(Literal["a", None]) == {"anyOf": [{"enum": ["a"], "type": "string"}, null]}
    assert of(Colour) == {"enum": ["red", "blue"], "type": "string"}
    assert of(Size) == {"enum": [1, 2], "type": "integer"}
    assert of(Corner) == {"enum": ["TOP", "BOTTOM"], "type": "string"}
    assert of(int | None) == of(Optional[int]) == of(Union[int, None]) == {"anyOf": [number, null]}  # noqa: UP007, UP045
    assert of(Annotated[int, "How many."]) == {"type": "integer", "description": "How many."}
    assert of(NewType("Name", str)) == text
    assert of(datetime) == {
        "type": "string",
        "format": "date-time",
        "description": "ISO 8601, such as 2024-05-31T18:30:00+02:00.",
    }
    assert of(Annotated[date, "The day."])["description"] == "The day. ISO 8601, such as 2024-05-31."
    assert of(bytes) == {"type": "string", "contentEncoding": "base64", "description": "Base64."}
    assert of(Path) == {"type": "string"}


def test_objects_have_the_keys_of_their_classes_with_defaults_and_descriptions():
    point = {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "To the right."},
            "y": {"type": "integer", "description": "Down.", "default": 0},
        },
        "additionalProperties": False,
        "required": ["x"],
    }
    assert of(Point) == point
    assert of(Shape) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "corners": {"type": "array", "items": point},
            "secret": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        },
        "additionalProperties": False,
        "required": ["name"],
    }
    assert "required" not in of(Options)


class Base(TypedDict):
    always: int
    sometimes: NotRequired[str]


class Loose(Base, total=False):
    maybe: int
    surely: Required[str]


def test_the_keys_of_a_typed_dict_are_required_as_it_says():
    assert of(Loose)["required"] == ["always", "surely"]
    assert shape_of(Loose).take({"always": "1", "surely": "x"}, "it") == {"always": 1, "surely": "x"}


@dataclasses.dataclass
class Plain:
    name: str
    count: int = 2


@frozen
class Even:
    number: int = attrs.field()

    @number.validator
    def _check(self, _attribute: object, value: int) -> None:
        if value % 2:
            raise RuntimeError(f"{value} is odd")


HERE = Point(1, 2)


def draw(shape: Shape, at: Point = HERE, plain: Plain | None = None, even: Even | None = None) -> None:
    """Draw it."""


@pytest.mark.parametrize(
    ("sent", "bound"),
    [
        ({"shape": {"name": "box"}}, {"shape": Shape("box")}),
        ({"shape": '{"name": "box", "secret": "3"}'}, {"shape": Shape("box", secret=3)}),
        ({"shape": {"name": "b", "corners": [{"x": "1"}]}}, {"shape": Shape("b", [Point(1)])}),
        ({"shape": {"name": "b"}, "plain": {"name": "p"}}, {"shape": Shape("b"), "plain": Plain("p")}),
        ({"shape": {"name": "b"}, "even": {"number": 2.0}}, {"shape": Shape("b"), "even": Even(2)}),
    ],
)
def test_objects_are_built_of_what_the_model_sends(sent, bound):
    assert signature_of(draw).bind(sent) == bound
    assert signature_of(draw).schema.parameters["properties"]["at"]["default"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"shape": {}}, "the key 'shape.name' is missing"),
        ({"shape": {"name": "b", "nmae": "c"}}, "there is no key 'shape.nmae'; known are name, corners, secret"),
        ({"shape": {"name": "b", "corners": [{"x": "one"}]}}, 'shape.corners[0].x must be an integer, not "one"'),
        ({"shape": "box"}, "shape must be an object with the keys name, corners, secret"),
        ({"shape": {"name": "b"}, "even": {"number": 3}}, "even is refused by Even: 3 is odd"),
    ],
)
def test_what_is_wrong_in_an_object_is_named_by_its_place(sent, said):
    with pytest.raises(InvalidArgument) as refused:
        signature_of(draw).bind(sent)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("annotation", "sent", "taken"),
    [
        (int, "3", 3),
        (int, 3.0, 3),
        (int, "3.0", 3),
        (int, " -7 ", -7),
        (float, 3, 3.0),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (bool, "False", False),
        (str, 12, "12"),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], ["1", 2.0], [1, 2]),
        (set[int], [1, 1, 2], {1, 2}),
        (tuple[int, str], ["1", 2], (1, "2")),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (int | None, "null", None),
        (str | None, "null", "null"),
        (int | str, "3", "3"),
        (Point | Shape, {"name": "b"}, Shape("b")),
        (Literal[1, "1"], "1", "1"),
        (Literal[1, 2], "2", 2),
        (Colour, "RED", Colour.RED),
        (Size, "2", Size.LARGE),
        (Size, "LARGE", Size.LARGE),
        (Corner, "TOP", Corner.TOP),
        (datetime, "2024-05-31T18:30:00Z", datetime.fromisoformat("2024-05-31T18:30:00+00:00")),
        (bytes, "aGk=", b"hi"),
    ],
)
def test_what_loses_nothing_is_taken(annotation, sent, taken):
    value = shape_of(annotation).take(sent, "it")
    assert value == taken
    assert type(value) is type(taken)


@pytest.mark.parametrize(
    ("annotation", "sent", "said"),
    [
        (str, 3.10, "it must be a string, not 3.1; send it in quotes"),
        (int, 1e300, "it must be an integer"),
        (float, 2**60 + 1, "it must be a number"),
        (float, "NaN", "it must be a number"),
        (list[int], 3, "it must be a list, not 3; send [3]"),
        (list[str], "a", 'it must be a list, not "a"; send ["a"]'),
        (list[str], "a, b", 'it must be a list, not "a, b"'),
        (tuple[int, int], [1], "it must be a list of exactly 2 values, not [1]"),
        (dict[str, int], "a=1", 'it must be an object, not "a=1"'),
        (bytes, "?", "it must be bytes as Base64 text"),
        (datetime, "soon", "it must be a date and a time such as 2024"),
        (Path, "a\0b", "it must be a path"),
        (Colour, "green", 'it must be one of "red", "blue", not "green"'),
        (int | bool, "x", 'it must be an integer, not "x"; or it must be true or false'),
    ],
)
def test_what_would_lose_something_or_is_open_to_doubt_is_refused_with_what_to_send(annotation, sent, said):
    with pytest.raises(InvalidArgument) as refused:
        shape_of(annotation).take(sent, "it")
    assert said in str(refused.value)


if TYPE_CHECKING:
    from decimal import Decimal


def returns_what_only_checkers_know(count: int = None) -> Decimal:  # noqa: RUF013
    """Count."""


def test_only_the_annotations_of_parameters_are_read():
    signature = signature_of(returns_what_only_checkers_know)
    assert signature.schema.parameters["properties"] == {"count": {"type": "integer"}}
    assert signature.bind({"count": None}) == {}


def test_a_wrapped_function_takes_what_the_function_beneath_takes():
    @functools.wraps(weather)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return weather(*args, **kwargs)

    assert signature_of(wrapper).schema == signature_of(weather).schema
    assert signature_of(functools.lru_cache(weather)).schema == signature_of(weather).schema


def test_a_name_in_any_script_is_a_name():
    def größe(länge: float) -> str:
        """Tell the size."""
        return str(länge)

    assert signature_of(größe).schema.name == "größe"
    assert signature_of(größe, name="mcp.size-of").schema.name == "mcp.size-of"


def test_a_thousand_mistakes_are_told_in_few_words():
    with pytest.raises(InvalidArgument, match="and 993 more") as refused:
        signature_of(weather).bind({f"{'x' * 300}{number}": number for number in range(1_000)})
    assert len(str(refused.value)) < 3_000


def test_an_underlined_title_of_the_authors_own_stays_in_the_description():
    def weather(city: str) -> str:
        """Weather
        -------

        Tell the weather.

        Caution
        -------
        Costs money.

        Parameters
        ----------
        city : str
            Its name.

        Returns
        -------
        str
            Left out.
        """
        return city

    schema = signature_of(weather).schema
    assert schema.description == "Weather\n-------\n\nTell the weather.\n\nCaution\n-------\nCosts money."
    assert schema.parameters["properties"]["city"]["description"] == "Its name."
