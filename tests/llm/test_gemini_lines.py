"""Gemini's lines reach its SDK as it reads them, wherever their bytes are cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kesoku_actors.llm.gemini_lines import MOST_LOOSE, GeminiLines

STREAM = (
    "\ufeffdata: {1}\r\n\r\n"
    ": a comment 🎸\r\n\r\n"
    "event: message\nid: 3\nretry: 10\nevent\n"
    'data:{"two": "data: x"}\r\r'
    ":\n"
    '{"error":\n  {"code": 503}}\n'
    "data: {\ndata: }\n\n"
    "data: [DONE]\n\n"
    "data: last"
).encode()
LOOSE = b'{"error": {"code": 503}}'
EVENTS = [b"{1}", b'{"two": "data: x"}', b"{\n}", b"last"]
TIDY = b'data: {1}\n\ndata: {"two": "data: x"}\n\ndata: {\ndata: }\n\ndata: last\n\ndata: ' + LOOSE + b"\n\n"


def tidied(*chunks: bytes) -> tuple[bytes, list[bytes]]:
    checked: list[bytes] = []
    lines = GeminiLines(checked.append)
    return b"".join((*(line for chunk in chunks for line in lines.feed(chunk)), *lines.end())), checked


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
@example([STREAM.index(b"\r") + 1] * 2)  # nothing between CR and LF
@example(list(range(len(STREAM))))
def test_lines_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert tidied(*(STREAM[start:end] for start, end in pairwise(edges))) == (TIDY, [*EVENTS, LOOSE])


@given(st.binary(max_size=60))
def test_what_is_no_json_is_told_as_it_is(data: bytes) -> None:
    line = b"{" + data.translate(None, b"\r\n")
    assert tidied(line) == (b"data: " + line + b"\n\n", [line])
    assert tidied(b"") == (b"", [])


def test_too_much_that_is_no_event_is_none() -> None:
    lines, line = GeminiLines(lambda _: None), b"x" * (MOST_LOOSE // 2) + b"\n"
    assert list(lines.feed(line + line)) == [b""]
    with pytest.raises(ValueError, match="no event"):
        list(lines.feed(line))


def test_what_the_check_raises_is_raised_behind_the_events_before_it() -> None:
    lines = GeminiLines(json.loads)
    events = lines.feed(b"data: {}\n\ndata: x\n\n")
    assert next(events) == b"data: {}\n\n"
    with pytest.raises(ValueError, match="Expecting value"):
        next(events)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_chunks_is_its_events(indent: int | None) -> None:
    chunks = [{"candidates": []}, {"usageMetadata": {"promptTokenCount": 5}}]
    tidy, checked = tidied(json.dumps(chunks, indent=indent).encode())
    assert list(map(json.loads, checked)) == chunks
    assert tidy == b"".join(b"data: " + chunk + b"\n\n" for chunk in checked)
