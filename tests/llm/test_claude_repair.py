"""Whatever a history went through, what is sent to Claude keeps the rules, and what kept them is sent unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.claude_body import ClaudeOptions, make_body
from kesoku_actors.llm.claude_repair import repair
from kesoku_actors.llm.claude_rules import broken
from kesoku_actors.llm.dialects.claude import NAMES
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import Message, Type

from ..draws import examples
from ..wire.claude_rules import refusals
from ..wire.claude_server import MODEL, redacted, text, thinking, use
from .histories import Talk, crowd, drawn_from, talks

LEVELS = st.sampled_from([None, "minimal", "high"])
MODELS = (MODEL, "claude-3-5-sonnet@20241022", "claude-opus-4-7")
CITED = {"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None}
CITED |= {"start_char_index": 0, "end_char_index": 1, "file_id": "file_1"}


def native(rows: Sequence[Message], besides: str, model: str) -> Mapping[str, Any] | None:
    """What a model of Claude's would have said to be stored as these rows."""
    blocks: list[dict[str, Any]] = []
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                blocks.append((thinking if len(row.content) % 3 else redacted)(row.content, model=model))
            case Type.TEXT if row.content.strip():
                blocks.append(text(row.content) | ({"citations": [CITED]} if besides == "odd" else {}))
            case Type.TOOL_CALL:
                name, arguments = NAMES.outward(row.metadata["tool_name"]), row.metadata["tool_arguments"]
                blocks.append(
                    {"type": "tool_use", "id": row.metadata["tool_call_id"], "name": name, "input": arguments}
                )
    search = {"type": "server_tool_use", "id": f"srvtoolu_{rows[0].id if rows else 0}", "name": "web_search"}
    search |= {"input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": search["id"], "content": []}
    if besides in ("tools", "half"):
        blocks.insert(1, search)
    if besides == "tools":
        blocks.insert(blocks.index(search) + 1, found)
    return well_formed({"content": blocks})


TALKS = talks("claude", MODELS, native)


@given(TALKS, LEVELS)
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_every_history_becomes_a_request_that_the_strict_server_takes(talk: Talk, level: Any) -> None:
    options = ClaudeOptions(provider="claude", model=talk.model, thinking_level=level)
    made = make_body(talk.request, options, media=talk.media)
    sound = repair(made)
    assert refusals(sound.body, talk.model) == []
    assert broken(sound.body) == []
    again = repair(sound.body)
    assert again.body == sound.body
    assert again.repairs == ()
    assert (sound.body == made) == (not sound.repairs)
    if not refusals(made, talk.model):
        assert sound.body == made, "what the server would take is sent unchanged"


def test_the_histories_hold_what_a_request_can_break_on() -> None:
    seen: Counter[str] = Counter()
    for talk in drawn_from(TALKS, 500, derandomize=True):
        body = make_body(talk.request, ClaudeOptions(provider="claude", model=talk.model), media=talk.media)
        blocks = [block for message in body["messages"] for block in message["content"]]
        kinds = {block["type"] for block in blocks}
        seen.update(kinds)
        seen["native"] += bool(talk.native_steps)
        seen.update(talk.oddities)
        seen["thoughts"] += bool(kinds & {"thinking", "redacted_thinking"})
        seen["repaired"] += bool(repair(body).repairs)
        seen["parallel"] += any(
            [block["type"] for block in message["content"]].count("tool_use") > 1 for message in body["messages"]
        )
    assert {what: seen[what] for what in ("native", "thoughts", "tool_use", "repaired") if seen[what] < 25} == {}
    assert {what: seen[what] for what in ("parallel", "server_tool_use", "image") if seen[what] < 8} == {}
    odd = {"orphan": 25, "no result": 25, "same ids": 8, "beginning lost": 25, "blank": 25, "files": 8, "huge": 1}
    assert {what: seen[what] for what, least in odd.items() if seen[what] < least} == {}


def test_a_thousand_calls_of_one_turn_are_answered_in_order() -> None:
    sound = repair(make_body(crowd(1000), ClaudeOptions(provider="claude", model=MODEL)))
    assert refusals(sound.body, MODEL) == []
    _, asked, answers = sound.body["messages"]
    assert len(asked["content"]) == 1000
    assert [block["tool_use_id"] for block in answers["content"]] == [block["id"] for block in asked["content"]]


BLOCKS = st.one_of(
    st.sampled_from(
        [
            text("Hi"),
            text(" "),
            text("half \ud800"),
            thinking("Hm"),
            thinking("Hm", ""),
            {"type": "redacted_thinking", "data": ""},
            redacted("Hm"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AA=="}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "container_upload", "file_id": "f"},
            {"type": "hologram", "light": 1},
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
@settings(max_examples=examples(200))
def test_any_body_is_mended(body: dict[str, Any]) -> None:
    before = deepcopy(body)
    sound = repair(body)
    assert body == before, "the given body is not changed"
    assert refusals(sound.body, MODEL) == []
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
