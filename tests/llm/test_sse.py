"""Server-sent events survive any cut of their bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kesoku_actors.llm.sse import LIMIT, EventReader, EventTooLong

STREAM = (
    "\ufeffdata: first 🎸\n\n"
    ": a comment\r\n"
    "event: message\r\nid: 3\r\nretry: 10\r\n"
    "data: two\r\ndata:lines\r\n\r\n"
    "data\rdata:  spaced\r\r"
    "\n\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = ["first 🎸", "two\nlines", "\n spaced", "[DONE]"]


def read(*chunks: bytes) -> list[str]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
@example([STREAM.index(b"\n: a") + len(": a comment\r") + 1] * 2)  # nothing between CR and LF
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in pairwise(edges))) == EVENTS


def test_single_bytes_give_the_same_events() -> None:
    assert read(*(STREAM[index : index + 1] for index in range(len(STREAM)))) == EVENTS


def test_an_event_without_its_blank_line_comes_at_the_end() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\n\ndata: [DONE]") == ["a"]
    assert reader.end() == ["[DONE]"]


def test_nothing_comes_out_of_nothing() -> None:
    reader = EventReader()
    assert reader.feed(b"") == []
    assert reader.end() == []


def test_invalid_utf8_is_replaced_not_fatal() -> None:
    assert read(b"data: a\xff b\n\n") == ["a\N{REPLACEMENT CHARACTER} b"]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * (LIMIT + 1)],
        [b"x" * 1000] * (LIMIT // 1000 + 1),
        [b"data: " + b"x" * 1000 + b"\n"] * (LIMIT // 1000 + 1),
    ],
    ids=["one line", "a line in parts", "many lines of one event"],
)
def test_an_endless_event_is_refused(chunks: list[bytes]) -> None:
    with pytest.raises(EventTooLong):
        read(*chunks)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    assert all(isinstance(event, str) for event in read(data))
