"""A request as the body of Gemini's `generateContent`. Pure.

What one inference of this model said goes back as the content it came as, whole and in order: signatures return on the
parts they came with (M4). Another's answer is made anew from its rows, without thoughts. The results of the calls of
one content are the first parts of the user content behind it, in the order of the calls. `gemini_rules` is the net
beneath all this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field

from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.dialects.gemini import declare
from kesoku_actors.llm.gemini_names import (
    BUDGETS,
    NO_SIGNATURE,
    ThinkingLevel,
    level_within,
    thinking_config,
    wants_signatures,
)
from kesoku_actors.llm.gemini_rules import unsigned
from kesoku_actors.llm.media import MediaByRow, gemini_part
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.talk import Answered, Made, Said, Stretch, make, result_text, told
from kesoku_actors.llm.talk import Part as TalkPart
from kesoku_actors.protocol import Message, Outcome
from kesoku_actors.values import define, frozen

Part = dict[str, Any]


@frozen(kw_only=True)
class GeminiOptions:
    """What a request says beside the talk."""

    provider: str
    model: str
    thinking_level: ThinkingLevel = "high"


def make_body(
    request: Request,
    options: GeminiOptions,
    *,
    declared: Declared | None = None,
    media: MediaByRow | None = None,
) -> dict[str, Any]:
    """Return the body of a request; the model stands in its path.

    `declared` is what `declare` says of the request's tools, where that is known already; `media` are the attachments
    to be sent as such, by the id of their message.
    """
    declared = declare(request.tools) if declared is None else declared
    contents = make_talk(Stretch.of(request), options, declared, media or {}, has_tools=request.shows_calls).messages
    for index, content in marked(contents, options.model).items():
        contents[index] = content
    return {**make_frame(request, options, declared), "contents": contents}


def make_frame(request: Request, options: GeminiOptions, declared: Declared) -> dict[str, Any]:
    """Return the body of a request without its contents."""
    body: dict[str, Any] = {"contents": []}
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if declared.tools:
        body["tools"] = list(declared.tools)
    if config := _config(request, options):
        body["generationConfig"] = config
    return body


def _config(request: Request, options: GeminiOptions) -> dict[str, Any]:
    """Return how it is to be answered: thoughts have room of their own beside an answer that is to be short."""
    level, answer = options.thinking_level, request.max_output_tokens
    if answer is not None:
        level = level_within(level, answer)
    config: dict[str, Any] = {}
    thinking = None if request.is_plain else thinking_config(level, options.model)
    if answer is not None:
        config["maxOutputTokens"] = answer if thinking is None else answer + BUDGETS[level]
    if thinking is not None:
        config["thinkingConfig"] = thinking
    return config


def make_talk(
    stretch: Stretch, options: GeminiOptions, declared: Declared, media: MediaByRow, *, has_tools: bool
) -> Made:
    """Return the contents of a stretch, in order."""
    talk = _Talk(options=options, declared=declared, media=media, has_tools=has_tools)
    return make(stretch, talk.contents, talk.add, "model")


def marked(contents: Sequence[Mapping[str, Any]], model: str) -> dict[int, dict[str, Any]]:
    """Return those contents of the turn being answered whose calls another model made, marked so, by their places."""
    found = {}
    for index, call in unsigned(contents) if wants_signatures(model) else ():
        parts = contents[index]["parts"]
        signed = [{**part, "thoughtSignature": NO_SIGNATURE} if part is call else part for part in parts]
        found[index] = {**contents[index], "parts": signed}
    return found


@define
class _Talk:
    """The contents so far."""

    options: GeminiOptions
    declared: Declared
    media: MediaByRow
    has_tools: bool
    contents: list[dict[str, Any]] = field(factory=list)

    def add(self, part: TalkPart) -> None:
        """Add a part."""
        match part:
            case Said():
                self.say(part)
            case Answered() if self.has_tools or not part.calls:
                self.answer(part)
            case Answered():
                self.tell(part)

    def say(self, said: Said) -> None:
        """Add a text on the user's side, behind what came with it."""
        self._append("user", [*self._media(said.row), {"text": said.text}])

    def answer(self, answered: Answered) -> None:
        """Add an answer and the results of its calls."""
        parts = self._native(answered) or self._made(answered)
        self._append("model", parts)
        ids = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
        results: list[Part] = []
        for call, id in zip(answered.calls, ids, strict=True):
            results.append(self._result(call, answered.results.get(call.id), id))
        seen = [part for call in answered.calls for part in self._media(answered.results.get(call.id))]
        self._append("user", [*results, *seen])

    def tell(self, answered: Answered) -> None:
        """Add an answer for a model that is offered no tools: what they did is told."""
        self._append("model", [{"text": text} for text in answered.texts])
        for call in answered.calls:
            arguments = json.dumps(call.metadata["tool_arguments"], ensure_ascii=False)
            result = result_text(answered.results.get(call.id))
            self._append("user", [{"text": told(call.metadata["tool_name"], arguments, result)}])

    def _append(self, role: str, parts: Iterable[Part]) -> None:
        added = list(parts)
        if not added:
            return
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"] += added
        else:
            self.contents.append({"role": role, "parts": added})

    def _made(self, answered: Answered) -> list[Part]:
        texts: list[Part] = [{"text": text} for text in answered.texts]
        return texts + [{"functionCall": self._call(call)} for call in answered.calls]

    def _call(self, call: Message) -> dict[str, Any]:
        name, arguments = self.declared.outward(call.metadata["tool_name"], call.metadata["tool_arguments"])
        return {"name": name, "args": dict(arguments)}

    def _native(self, answered: Answered) -> list[Part]:
        """Return the parts this model itself said; none when they do not tell of the same calls as the rows."""
        native = answered.native_of(self.options.provider, self.options.model)
        parts = native.get("parts") if native is not None else None
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            return []
        names = [part["functionCall"].get("name") for part in parts if isinstance(part.get("functionCall"), dict)]
        if names != [self._call(call)["name"] for call in answered.calls]:
            return []
        return [dict(part) for part in parts]

    def _result(self, call: Message, result: Message | None, id: str | None) -> Part:
        failed = result is None or result.metadata["outcome"] == Outcome.ERROR
        response: dict[str, Any] = {
            "name": self._call(call)["name"],
            "response": {"error" if failed else "result": result_text(result)},
        }
        return {"functionResponse": response | ({"id": id} if id else {})}

    def _media(self, row: Message | None) -> list[Part]:
        return [gemini_part(item) for item in self.media.get(row.id, ())] if row is not None else []
