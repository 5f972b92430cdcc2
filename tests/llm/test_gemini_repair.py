"""Whatever a history went through, what is sent to Gemini keeps the rules, and what kept them is sent unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.dialects.gemini import NAMES
from kesoku_actors.llm.gemini_body import GeminiOptions, make_body
from kesoku_actors.llm.gemini_repair import repair
from kesoku_actors.llm.gemini_rules import broken
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import Message, Type

from ..wire.gemini_server import MODEL, request_problems, shape_problems, text, thinking, use
from .histories import requests

MODELS = st.sampled_from([MODEL, MODEL, "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-flash-latest"])


def native(rows: Sequence[Message]) -> Mapping[str, Any] | None:
    """What Gemini would have said to be stored as these rows."""
    parts: list[dict[str, Any]] = []
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                parts.append(thinking(row.content))
            case Type.TEXT if row.content.strip():
                parts.append(text(row.content, thoughtSignature="c2ln") if len(row.content) % 2 else text(row.content))
            case Type.TOOL_CALL:
                name, arguments = NAMES.outward(row.metadata["tool_name"]), row.metadata["tool_arguments"]
                signature = None if any("functionCall" in part for part in parts) else "c2lnbmVk"
                parts.append(use(name, signature, row.metadata["tool_call_id"], **arguments))
    return well_formed({"role": "model", "parts": parts})


REQUESTS = requests({("gemini", MODEL): native, ("gemini", "gemini-2.5-flash"): native})


def refusals(body: Mapping[str, Any], model: str) -> list[str]:
    """What the strict server says of a body: its rules were written from the SDK's types, not from ours."""
    return [*shape_problems(body), *request_problems(body, model=model)]


@given(REQUESTS, MODELS)
@settings(max_examples=400)
def test_every_history_becomes_a_request_that_the_strict_server_takes(request: Request, model: str) -> None:
    made = make_body(request, GeminiOptions(provider="gemini", model=model))
    sound = repair(made, model=model)
    assert refusals(sound.body, model) == []
    assert broken(sound.body, model=model) == []
    again = repair(sound.body, model=model)
    assert again.body == sound.body
    assert again.repairs == ()
    assert (sound.body == made) == (not sound.repairs)


@given(REQUESTS, MODELS)
@settings(max_examples=200)
def test_what_the_server_would_take_is_sent_unchanged(request: Request, model: str) -> None:
    made = make_body(request, GeminiOptions(provider="gemini", model=model))
    if not refusals(made, model):
        assert repair(made, model=model).body == made


PARTS = st.one_of(
    st.sampled_from(
        [
            text("Hi"),
            text(""),
            text(" "),
            text("", thoughtSignature="c2ln"),
            text("half \ud800"),
            text("x", thoughtSignature="no signature"),
            thinking("Hm"),
            {},
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
            {"inlineData": {"mimeType": "image/tiff", "data": "AA=="}},
            text("two") | use("date"),
        ]
    ),
    st.builds(
        use, st.sampled_from(["date", "no name!"]), st.sampled_from([None, "c2ln"]), st.sampled_from([None, "a"])
    ),
    st.builds(
        lambda name, id, response: {"functionResponse": {"name": name, "response": response} | id},
        st.sampled_from(["date", "no name!"]),
        st.sampled_from([{}, {"id": "a"}]),
        st.sampled_from([{"result": "x"}, {}]),
    ),
)
BODIES = st.fixed_dictionaries(
    {
        "contents": st.lists(
            st.fixed_dictionaries({"role": st.sampled_from(["user", "model"]), "parts": st.lists(PARTS, max_size=4)}),
            max_size=6,
        )
    },
    optional={"tools": st.just([{"functionDeclarations": [{"name": "date", "description": "Tells the date."}]}])},
)


@given(BODIES, MODELS)
@settings(max_examples=400)
def test_any_body_is_mended(body: dict[str, Any], model: str) -> None:
    before = deepcopy(body)
    sound = repair(body, model=model)
    assert body == before, "the given body is not changed"
    assert refusals(sound.body, model) == []
    assert broken(sound.body, model=model) == []
