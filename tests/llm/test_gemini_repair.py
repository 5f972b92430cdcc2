"""Whatever a history went through, what is sent to Gemini keeps the rules, and what kept them is sent unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kesoku_actors.llm.dialects.gemini import NAMES
from kesoku_actors.llm.gemini_body import GeminiOptions, make_body
from kesoku_actors.llm.gemini_repair import repair
from kesoku_actors.llm.gemini_rules import broken
from kesoku_actors.llm.wellformed import well_formed
from kesoku_actors.protocol import Message, Type

from ..draws import examples
from ..wire.gemini_server import MODEL, refusals, signed, text, thinking, use
from .histories import Talk, crowd, drawn_from, talks

MODELS = (MODEL, "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-flash-latest")
CODE = {"executableCode": {"language": "PYTHON", "code": "print(6*7)"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42"}}


def native(rows: Sequence[Message], besides: str, _model: str) -> Mapping[str, Any] | None:
    """What Gemini would have said to be stored as these rows."""
    parts: list[dict[str, Any]] = []
    for row in rows:
        match row.type:
            case Type.THOUGHT:
                parts.append(thinking(row.content))
            case Type.TEXT if row.content.strip():
                parts.append(signed(text(row.content)) if len(row.content) % 2 else text(row.content))
            case Type.TOOL_CALL:
                name, arguments = NAMES.outward(row.metadata["tool_name"]), row.metadata["tool_arguments"]
                call = use(name, None, row.metadata["tool_call_id"], **arguments)
                parts.append(call if any("functionCall" in part for part in parts) else signed(call))
    match besides:
        case "tools":
            parts[1:1] = [CODE, RAN, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]
        case "half":
            parts[1:1] = [signed(CODE)]
        case "odd":
            parts[1:1] = [{"hologram": {}}, signed(text("")), {"text": "x", "videoMetadata": {}}]
    return well_formed({"role": "model", "parts": parts})


TALKS = talks("gemini", MODELS, native)


@given(TALKS)
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
def test_every_history_becomes_a_request_that_the_strict_server_takes(talk: Talk) -> None:
    model = talk.model
    made = make_body(talk.request, GeminiOptions(provider="gemini", model=model), media=talk.media)
    sound = repair(made, model=model)
    assert refusals(sound.body, model) == []
    assert broken(sound.body, model=model) == []
    again = repair(sound.body, model=model)
    assert again.body == sound.body
    assert again.repairs == ()
    assert (sound.body == made) == (not sound.repairs)
    if not refusals(made, model):
        assert sound.body == made, "what the server would take is sent unchanged"


def test_the_histories_hold_what_a_request_can_break_on() -> None:
    seen: Counter[str] = Counter()
    for talk in drawn_from(TALKS, 500, derandomize=True):
        body = make_body(talk.request, GeminiOptions(provider="gemini", model=talk.model), media=talk.media)
        seen.update({key for one in body["contents"] for part in one["parts"] for key in part})
        seen["native"] += bool(talk.native_steps)
        seen.update(talk.oddities)
        seen["repaired"] += bool(repair(body, model=talk.model).repairs)
        seen["parallel"] += any(sum("functionCall" in part for part in one["parts"]) > 1 for one in body["contents"])
    wanted = ("native", "thought", "thoughtSignature", "functionCall", "repaired")
    assert {what: seen[what] for what in wanted if seen[what] < 25} == {}
    assert {what: seen[what] for what in ("parallel", "executableCode", "inlineData") if seen[what] < 8} == {}
    odd = {"orphan": 25, "no result": 25, "same ids": 8, "beginning lost": 25, "blank": 25, "files": 8, "huge": 1}
    assert {what: seen[what] for what, least in odd.items() if seen[what] < least} == {}


def test_a_thousand_calls_of_one_turn_are_answered_in_order() -> None:
    sound = repair(make_body(crowd(1000), GeminiOptions(provider="gemini", model=MODEL)), model=MODEL)
    assert refusals(sound.body, MODEL) == []
    _, asked, answers = sound.body["contents"]
    assert len(asked["parts"]) == len(answers["parts"]) == 1000


PARTS = st.one_of(
    st.sampled_from(
        [
            text("Hi"),
            text(""),
            text(" "),
            signed(text("")),
            text("half \ud800"),
            text("x", thoughtSignature="no signature"),
            thinking("Hm"),
            {},
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
            {"inlineData": {"mimeType": "image/tiff", "data": "AA=="}},
            {"fileData": {"fileUri": "https://example.com/a", "mimeType": "image/png"}},
            CODE,
            RAN,
            {"hologram": 1},
            text("x") | {"hologram": 1},
            text("two") | use("date"),
        ]
    ),
    st.builds(use, st.sampled_from(["date", "no name!"]), st.none(), st.sampled_from([None, "a"])),
    st.sampled_from([signed(use("date")), signed(use("date", None, "a"))]),
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
    optional={
        "tools": st.lists(st.sampled_from(["date", "date", "time", "no name!", ""]), max_size=3).map(
            lambda functions: [
                {"functionDeclarations": [{"name": name, "description": "Tells."} for name in functions]}
            ]
        )
    },
)


@given(BODIES, st.sampled_from(MODELS))
@settings(max_examples=examples(200))
def test_any_body_is_mended(body: dict[str, Any], model: str) -> None:
    before = deepcopy(body)
    sound = repair(body, model=model)
    assert body == before, "the given body is not changed"
    assert refusals(sound.body, model) == []
    assert broken(sound.body, model=model) == []
