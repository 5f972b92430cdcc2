"""What a function returns becomes what the model reads, and attachments that are none do no harm (M8)."""

from __future__ import annotations

import dataclasses
import enum
import json
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.protocol import ATTACHMENTS, Outcome, attachments_in
from kesoku_actors.tools import Settled, ToolOutcome
from kesoku_actors.tools.results import text_of
from kesoku_actors.tools.whole import presentable
from tests.tools.journals import bench, call


@frozen
class Point:
    x: int
    names: frozenset[str] = frozenset()


@dataclasses.dataclass
class Plain:
    point: Point


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        ("größe", "größe"),
        (b"caf\xc3\xa9", "café"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (Plain(Point(1, frozenset({"b", "a"}))), '{"point": {"x": 1, "names": ["a", "b"]}}'),
        ([Colour.RED, date(2024, 5, 31), Path("a"), {2, 1}], '["red", "2024-05-31", "a", [1, 2]]'),
        (MappingProxyType({"a": b"b"}), '{"a": "b"}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_what_is_returned_becomes_text_or_json(result, text):
    assert text_of(result) == text


def test_a_value_within_itself_is_told_as_python_tells_it():
    endless: list[Any] = []
    endless.append(endless)
    assert text_of(endless) == "[[...]]"


class Stubborn:
    def __str__(self) -> str:
        raise RuntimeError("no text of me")


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_cannot_be_told_is_an_error_of_the_tool(is_async):
    def plain() -> Stubborn:
        return Stubborn()

    async def waiting() -> Stubborn:
        return Stubborn()

    tool = waiting if is_async else plain
    async with bench([tool]) as made:
        made.start(call("a", tool.__name__))
        await made.heard(Settled, "a")
    assert made.outcome("a").outcome is Outcome.ERROR
    assert made.outcome("a").content == "RuntimeError: no text of me"


ITEMS = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.fixed_dictionaries(
        {"filename": st.sampled_from(["a.png", "", 1]), "mime_type": st.sampled_from(["image/png", "png"])},
        optional={
            "path": st.sampled_from(["a.png", "../a.png", "/a.png", None]),
            "state": st.sampled_from(["saved", "expected", "failed", "late", "?"]),
            "reason": st.just("because"),
            "more": st.just(1),
        },
    ),
)


@given(st.lists(ITEMS, max_size=2) | st.text(max_size=3) | st.none())
async def test_attachments_that_are_none_are_left_out_and_told(attached):
    outcome = ToolOutcome(outcome=Outcome.OK, content="seen", metadata={ATTACHMENTS: attached, "more": 1})
    ready = await presentable(outcome, mask=str, chars=1_000, workspace=Path("/nowhere"), call_id="c")
    kept = attachments_in(json.loads(json.dumps(dict(ready.metadata))))
    assert all(each.state == "saved" for each in kept)
    assert (ATTACHMENTS in ready.metadata) != ("[its attachments were left out: " in ready.content)
    assert ready.metadata["more"] == 1
