"""Whatever a history went through, what is sent to Claude keeps the rules, and what kept them is sent unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.claude_body import ClaudeOptions, make_body
from kesoku_actors.llm.claude_repair import repair
from kesoku_actors.llm.claude_rules import broken
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import Message, Type

from ..wire.claude_server import MODEL, request_problems, shape_problems, text, thinking, use
from .histories import requests

LEVELS = st.sampled_from([None, "minimal", "high"])
MODELS = st.sampled_from([MODEL, MODEL, MODEL, "claude-3-5-sonnet@20241022", "claude-opus-4-7"])


def native(rows: Sequence[Message]) -> Mapping[str, Any] | None:
    """What Claude would have said to be stored as these rows."""
    blocks: list[dict[str, Any]] = []
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                blocks.append(
                    thinking(row.content) if len(row.content) % 3 else {"type": "redacted_thinking", "data": "x"}
                )
            case Type.TEXT if row.content.strip():
                blocks.append(text(row.content))
            case Type.TOOL_CALL:
                name, arguments = row.metadata["tool_name"], row.metadata["tool_arguments"]
                blocks.append(
                    {"type": "tool_use", "id": row.metadata["tool_call_id"], "name": name, "input": arguments}
                )
    return well_formed({"content": blocks})


REQUESTS = requests({("claude", MODEL): native, ("claude", "claude-opus-4-7"): native})


def refusals(body: Mapping[str, Any]) -> list[str]:
    """What the strict server says of a body: its rules were written from the SDK's types, not from ours."""
    return [*shape_problems(body), *request_problems(body)]


@given(REQUESTS, MODELS, LEVELS)
@settings(max_examples=400)
def test_every_history_becomes_a_request_that_the_strict_server_takes(request: Request, model: str, level: Any) -> None:
    made = make_body(request, ClaudeOptions(provider="claude", model=model, thinking_level=level))
    sound = repair(made)
    assert refusals(sound.body) == []
    assert broken(sound.body) == []
    again = repair(sound.body)
    assert again.body == sound.body
    assert again.repairs == ()
    assert (sound.body == made) == (not sound.repairs)


@given(REQUESTS, MODELS, LEVELS)
@settings(max_examples=200)
def test_what_the_server_would_take_is_sent_unchanged(request: Request, model: str, level: Any) -> None:
    made = make_body(request, ClaudeOptions(provider="claude", model=model, thinking_level=level))
    if not refusals(made):
        assert repair(made).body == made


BLOCKS = st.one_of(
    st.sampled_from(
        [
            text("Hi"),
            text(" "),
            text("half \ud800"),
            thinking("Hm"),
            thinking("Hm", ""),
            {"type": "redacted_thinking", "data": ""},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AA=="}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            text("marked") | {"cache_control": {"type": "ephemeral"}},
        ]
    ),
    st.builds(use, st.sampled_from(["date", "no name!"]), st.sampled_from(["a", "b", "", "é"])),
    st.builds(
        lambda id, content: {"type": "tool_result", "tool_use_id": id, "content": content},
        st.sampled_from(["a", "b", ""]),
        st.sampled_from([[text("x")], [text("")], [], "plain"]),
    ),
)
BODIES = st.fixed_dictionaries(
    {
        "model": st.just(MODEL),
        "max_tokens": st.sampled_from([0, 1, 1024, 4096]),
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(BLOCKS, max_size=4)}
            ),
            max_size=6,
        ),
    },
    optional={
        "thinking": st.sampled_from([{"type": "enabled", "budget_tokens": n} for n in (5, 1024, 4096)]),
        "tools": st.just([{"name": "date", "description": "", "input_schema": {"type": "object"}}]),
    },
)


@given(BODIES)
@settings(max_examples=400)
def test_any_body_is_mended(body: dict[str, Any]) -> None:
    before = deepcopy(body)
    sound = repair(body)
    assert body == before, "the given body is not changed"
    assert refusals(sound.body) == []
    assert broken(sound.body) == []


@pytest.mark.parametrize(
    ("images", "kept"),
    [(100, 100), (101, 100), (130, 100)],
)
def test_of_too_many_images_the_oldest_become_notes(images: int, kept: int) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    content = [{**image} for _ in range(images)]
    sound = repair({"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": content}]})
    blocks = sound.body["messages"][0]["content"]
    assert len(blocks) == images
    assert sum(block["type"] == "image" for block in blocks) == kept
    assert all(block["type"] == "image" for block in blocks[images - kept :])
