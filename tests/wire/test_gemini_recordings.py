"""Recorded traffic of Gemini's: its bytes give the right answer, our request of that talk means the recorded one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from attrs import evolve
from google import genai
from google.genai import types

from kesoku_actors.llm.gemini_body import GeminiOptions, make_body
from kesoku_actors.llm.gemini_names import NO_SIGNATURE
from kesoku_actors.llm.gemini_repair import repair
from kesoku_actors.llm.gemini_stream import MALFORMED
from kesoku_actors.llm.media import Media
from kesoku_actors.llm.port import Piece, ProviderError, StepContent
from kesoku_actors.llm.repaired import BEGINNING, GO_ON
from kesoku_actors.llm.talk import EMPTY
from kesoku_actors.protocol import DeltaKind, Message, Outcome, ToolSchema, Type

from ..llm.examples import answered, asking, called, ignore, result, said
from .loopback import Answer
from .recordings import Exchange, Unheld, exchanges, with_requests
from .test_gemini import talking_to

EXCHANGES = exchanges("gemini")
ADDED = {"", EMPTY, BEGINNING, GO_ON, "(ok, no output)"}
"""Texts that say nothing: the rules of a talk ask for some text there."""


def judged_by_the_sdk(answer: Answer) -> list[types.GenerateContentResponse]:
    """What the SDK itself makes of the bytes."""
    [body] = answer.parts
    assert isinstance(body, bytes)
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, headers=list(answer.headers), content=body))
    options = types.HttpOptions(httpx_client=httpx2.Client(transport=transport))
    client = genai.Client(api_key="none", vertexai=False, http_options=options)
    return list(client.models.generate_content_stream(model="m", contents="."))


def first(chunk: types.GenerateContentResponse) -> types.Candidate:
    """The candidate that answers."""
    return next((one for one in chunk.candidates or () if not one.index), types.Candidate())


async def refused(answer: Answer) -> ProviderError:
    """See to it that an answer is an error to our client."""
    async with talking_to(answer) as (_server, _judge, model):
        with pytest.raises(ProviderError) as caught:
            await model.infer(asking(said(1, "Hi")), ignore)
    return caught.value


@pytest.mark.parametrize("exchange", EXCHANGES)
async def test_recorded_bytes_give_what_the_sdk_makes_of_them(exchange: Exchange) -> None:
    if exchange.status >= 400:
        await refused(exchange.answer)
        return
    chunks = judged_by_the_sdk(exchange.answer)
    if any(chunk.prompt_feedback and chunk.prompt_feedback.block_reason for chunk in chunks):
        assert (await refused(exchange.answer)).kind == "filtered"
        return
    reasons = [str(reason.value) for chunk in chunks if (reason := first(chunk).finish_reason)]
    if not reasons:
        assert (await refused(exchange.answer)).kind == "cut"
        return
    parts = [part for chunk in chunks if (content := first(chunk).content) for part in content.parts or ()]
    pieces: list[Piece] = []
    async with talking_to(exchange.answer) as (_server, _judge, model):
        reply = await model.infer(asking(said(1, "Hi")), pieces.append)
    shown = {kind: "".join(piece.text for piece in pieces if piece.kind is kind) for kind in DeltaKind}
    assert shown[DeltaKind.TEXT] == "".join(part.text or "" for part in parts if not part.thought)
    assert shown[DeltaKind.THOUGHT] == "".join(part.text or "" for part in parts if part.thought)
    assert reply.finish_reason == reasons[-1]
    counts = [usage.prompt_token_count for chunk in chunks if (usage := chunk.usage_metadata)]
    assert reply.usage.input == next((count for count in reversed(counts) if count is not None), None)
    if reply.finish_reason in MALFORMED:
        assert (reply.text, reply.calls) == ("", ())
        return
    calls = [call for part in parts if (call := part.function_call)]
    if not any(call.partial_args or call.will_continue for call in calls):
        assert [(call.name, call.arguments) for call in reply.calls] == [(call.name, call.args or {}) for call in calls]
    assert reply.native is not None
    kept = [types.Part.model_validate(part) for part in reply.native["parts"]]
    assert [part.thought_signature for part in kept if part.thought_signature] == [
        part.thought_signature for part in parts if part.thought_signature
    ]
    assert "".join(part.text or "" for part in kept) == "".join(part.text or "" for part in parts)
    assert list(map(things, filter(things, kept))) == list(map(things, filter(things, parts)))


def things(part: types.Part) -> dict[str, Any]:
    """What a part is but a text or a call."""
    fields = ("inline_data", "file_data", "executable_code", "code_execution_result", "tool_call", "tool_response")
    return {name: value for name in fields if (value := getattr(part, name)) is not None}


@pytest.mark.parametrize("exchange", with_requests(EXCHANGES, "contents"))
def test_our_request_of_a_recorded_talk_means_the_recorded_one(exchange: Exchange) -> None:
    recorded, model = exchange.request, exchange.model
    contents = [as_the_sdk_writes(content) for content in recorded["contents"]]
    try:
        talk = Conversation(model).of(contents)
    except Unheld as what:
        pytest.skip(str(what))
    declared = [one["name"] for tool in recorded.get("tools") or () for one in tool.get("functionDeclarations") or ()]
    names = list(dict.fromkeys([*declared, *talk.names]))
    tools = tuple(ToolSchema(name=name, description="", parameters={"type": "object"}) for name in names)
    system = "".join(part["text"] for part in (recorded.get("systemInstruction") or {}).get("parts", ()))
    request = asking(*talk.rows, steps=tuple(talk.steps), tools=tools, system=system)
    body = repair(make_body(request, GeminiOptions(provider="gemini", model=model), media=talk.media), model=model).body
    assert list(meaning(body["contents"])) == list(meaning(contents))
    assert "".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ())) == system
    assert [one["name"] for tool in body.get("tools", ()) for one in tool["functionDeclarations"]] == names


def as_the_sdk_writes(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same content in one spelling."""
    return types.Content.model_validate(content).model_dump(mode="json", by_alias=True, exclude_none=True)


class Conversation:
    """The rows that a recorded talk would have been stored as."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.rows: list[Message] = []
        self.steps: list[StepContent] = []
        self.media: dict[str, list[Media]] = {}
        self._open: list[Message] = []

    @property
    def names(self) -> list[str]:
        """The functions that were called."""
        return [row.metadata["tool_name"] for row in self.rows if row.type is Type.TOOL_CALL]

    def of(self, contents: list[dict[str, Any]]) -> Conversation:
        for content in contents:
            if content.get("role") == "model":
                self._answer(content.get("parts", []))
            else:
                self._hear(content.get("parts", []))
        return self

    def _hear(self, parts: list[dict[str, Any]]) -> None:
        waiting: list[Media] = []
        for part in parts:
            number = len(self.rows) + 1
            if "text" in part:
                self._add(said(number, part["text"]), waiting)
                waiting = []
            elif "inlineData" in part:
                data = types.Part.model_validate(part).inline_data
                assert data is not None
                waiting.append(Media(filename="f", mime_type=data.mime_type or "", data=data.data or b""))
            elif "functionResponse" in part and self._open and not part["functionResponse"].get("parts"):
                response = part["functionResponse"].get("response", {})
                outcome = Outcome.ERROR if "error" in response else Outcome.OK
                self._add(result(number, self._called(part["functionResponse"]), words(response), outcome), [])
            else:
                raise Unheld(f"a part that is {list(part)} from the user")
        if waiting:
            self._add(said(len(self.rows) + 1, ""), waiting)

    def _called(self, response: Mapping[str, Any]) -> Message:
        """Return the call that a response answers."""
        for key, name in (("id", "tool_call_id"), ("name", "tool_name")):
            for call in self._open:
                if response.get(key) and response[key] == call.metadata[name]:
                    self._open.remove(call)
                    return call
        return self._open.pop(0)

    def _add(self, row: Message, media: list[Media]) -> None:
        self.rows.append(row)
        self.media[row.id] = media

    def _answer(self, parts: list[dict[str, Any]]) -> None:
        made: list[Message] = []
        for part in parts:
            number = len(self.rows) + len(made) + 1
            if "functionCall" in part:
                call = part["functionCall"]
                plain = called(number, call["name"], call.get("id", ""))
                made.append(evolve(plain, metadata=plain.metadata | {"tool_arguments": call.get("args", {})}))
                self._open.append(made[-1])
            elif "text" in part and not part.get("thought"):
                made.append(answered(number, part["text"]))
        if not made and parts:
            raise Unheld("an answer without a text and a call, which is none to us")
        ids = tuple(row.id for row in made)
        native = {"role": "model", "parts": parts}
        self.steps.append(StepContent(provider="gemini", model=self.model, native=native, message_ids=ids))
        self.rows += made


def words(response: Mapping[str, Any]) -> str:
    return "".join(map(str, response.values()))


def meaning(contents: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the model is told, but for what the rules of a talk ask us to add."""
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        for part in content.get("parts", ()):
            if "functionCall" in part:
                call, signature = part["functionCall"], part.get("thoughtSignature")
                signature = None if signature == NO_SIGNATURE else signature
                yield (role, "call", call["name"], call.get("args", {}), _bytes(signature))
            elif "functionResponse" in part:
                said_then = words(part["functionResponse"].get("response", {}))
                name, id = part["functionResponse"]["name"], part["functionResponse"].get("id")
                yield (role, "response", name, id, "" if said_then in ADDED else said_then)
            elif "text" in part:
                if part["text"].strip() not in ADDED or "thoughtSignature" in part:
                    yield (role, part["text"], bool(part.get("thought")), _bytes(part.get("thoughtSignature")))
            else:
                yield (role, types.Part.model_validate(part))


def _bytes(signature: str | None) -> bytes | None:
    return types.Part.model_validate({"thoughtSignature": signature}).thought_signature if signature else None
