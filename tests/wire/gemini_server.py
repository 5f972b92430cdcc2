"""A strict server that speaks Gemini's wire.

Its rules are those of the published API. The shapes are taken from the SDK's own types, which refuse unknown fields;
what no type can say (roles, pairing, signatures, what a part is, what a model can do) is written from the reference.
`refusals` is all of it. It signs what it says so that no signed part can be changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pydantic
from attrs import define, field
from google.genai import types

from .loopback import Answer, LoopbackServer, serving
from .signatures import sign

KEY: Final = "AIza-test"
MODEL: Final = "gemini-3-flash"
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")
_TOP: Final = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"})
_THINKS_NOT: Final = re.compile(r"gemini-(?:1|2\.0)")
_ANYBODYS: Final = "skip_thought_signature_validator"
"""Documented for calls of other models."""
_SIGNED_FROM: Final = re.compile(r"gemini-(?:[3-9]|[1-9]\d|[a-z]+-latest)")


def content(*parts: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chunk with these parts of an answer."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r1", **more}


def usage(prompt: int = 10, said: int = 5, thought: int = 0, cached: int = 0) -> dict[str, Any]:
    """Return the counts of a chunk."""
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": said, "totalTokenCount": prompt + said + thought}
    if thought:
        counts["thoughtsTokenCount"] = thought
    if cached:
        counts["cachedContentTokenCount"] = cached
    return {"usageMetadata": counts}


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return a part that is a text."""
    return {"text": words, **more}


def thinking(words: str) -> dict[str, Any]:
    """Return a part that is a thought."""
    return {"text": words, "thought": True}


def use(name: str, signature: str | None = None, id: str | None = None, **args: Any) -> dict[str, Any]:
    """Return a part that is a call."""
    call = {"name": name, "args": args} | ({"id": id} if id else {})
    return {"functionCall": call} | ({"thoughtSignature": signature} if signature else {})


def signed(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part with its signature."""
    return {**part, "thoughtSignature": _signature_of(part)}


def _signature_of(part: Mapping[str, Any]) -> str:
    return sign({key: value for key, value in part.items() if key in _THINGS})


def sse(*chunks: Mapping[str, Any]) -> bytes:
    """Return chunks as they go over the wire."""
    return "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n" for chunk in chunks).encode()


def answering(*parts: Mapping[str, Any], finish: str = "STOP", **more: Any) -> Answer:
    """Return a whole answer, a chunk for each part and one that ends it."""
    chunks = [content(part) for part in parts]
    return Answer(parts=(sse(*chunks, content({"text": ""}, finish=finish, **(usage() | more))),))


def error_answer(status: int, word: str, message: str = "no", *, headers: Iterable[tuple[str, str]] = ()) -> Answer:
    """Return an error as the service words it."""
    body = json.dumps({"error": {"code": status, "message": message, "status": word}}).encode()
    return Answer(status=status, headers=(("content-type", "application/json"), *headers), parts=(body,))


@define
class GeminiJudge:
    """Judges requests, and keeps what they were."""

    path: re.Pattern[str] = re.compile(r"/v1(?:beta)?/models/([^/:]+):streamGenerateContent\?alt=sse\Z")
    header: tuple[str, str] = ("x-goog-api-key", KEY)
    more_rules: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _body: ()
    """What it refuses beside, in the words it is told with."""
    bodies: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)

    def __call__(self, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        self.headers.append(headers)
        found = self.path.match(target)
        if found is None:
            return error_answer(404, "NOT_FOUND", f"no such method: {target}")
        name, value = self.header
        if headers.get(name) != value:
            return error_answer(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        try:
            data = json.loads(body.decode("utf-8"))
        except ValueError as problem:
            return error_answer(400, "INVALID_ARGUMENT", f"Invalid JSON payload received. {problem}")
        self.bodies.append(data)
        if not found[1].startswith("gemini"):
            return error_answer(404, "NOT_FOUND", f"models/{found[1]} is not found for API version v1")
        problems = [*refusals(data, found[1]), *self.more_rules(data)]
        return error_answer(400, "INVALID_ARGUMENT", "; ".join(problems)) if problems else None


@asynccontextmanager
async def serving_gemini(*answers: Answer, **judge: Any) -> AsyncIterator[tuple[LoopbackServer, GeminiJudge]]:
    """Run a strict server on a free loopback port."""
    judging = GeminiJudge(**judge)
    async with serving(judging, *answers) as server:
        yield server, judging


def refusals(body: Mapping[str, Any], model: str) -> list[str]:
    """Return what the service refuses in a request for a model, in its own words where they are known."""
    wrong = list(shape_problems(body))
    if wrong:
        return wrong
    # A field may be written in either of two ways: here each is in the one that it is told in.
    told = {**body, "contents": [_told(types.Content, one) for one in body.get("contents", ())]}
    told["generationConfig"] = _told(types.GenerationConfig, body.get("generationConfig") or {})
    return [*request_problems(told, model=model), *_forgeries(told["contents"])]


def _told(shape: type[pydantic.BaseModel], value: Mapping[str, Any]) -> dict[str, Any]:
    return shape.model_validate(value).model_dump(mode="json", by_alias=True, exclude_none=True)


def shape_problems(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a request's body does not have the shape that the SDK's types give it."""
    yield from (f'Unknown name "{key}": Cannot find field.' for key in body if key not in _TOP)
    wanted: list[tuple[Any, Any, str]] = [
        *((one, types.Content, f"contents[{index}]") for index, one in enumerate(body.get("contents", ()))),
        *((one, types.Tool, f"tools[{index}]") for index, one in enumerate(body.get("tools", ()))),
        (body.get("systemInstruction", {}), types.Content, "system_instruction"),
        (body.get("generationConfig", {}), types.GenerationConfig, "generation_config"),
    ]
    for value, shape, at in wanted:
        try:
            shape.model_validate(value)
        except pydantic.ValidationError as problem:
            yield from (f"{at}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problem.errors())


def request_problems(body: Mapping[str, Any], *, model: str) -> Iterator[str]:
    """Yield what the service refuses in a body of the right shape."""
    contents = body.get("contents", [])
    if not contents:
        yield "contents is not specified"
        return
    if contents[0]["role"] != "user":
        yield "Please ensure that the conversation begins with a user turn"
    if contents[-1]["role"] != "user":
        yield "Please ensure that single turn requests end with a user role or the role field is empty"
    yield from _part_problems(contents)
    yield from _pair_problems(contents)
    if _SIGNED_FROM.match(model):
        yield from _signature_problems(contents)
    declared = [one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    if len(declared) != len(set(declared)):
        yield "Duplicate function declaration found"
    yield from (f"Invalid function name {name!r}" for name in declared if not _NAME.match(name))
    if not declared and any("functionCall" in part for one in contents for part in one["parts"]):
        yield "Function calls without function declarations"
    yield from _thinking_problems(body.get("generationConfig", {}), model)
    if len(json.dumps(body)) > 20 << 20:
        yield "Request payload size exceeds the limit: 20971520 bytes."


_ROLES: Final = {
    "user": frozenset({"text", "functionResponse", "inlineData", "fileData"}),
    "model": frozenset({"text", "functionCall", "inlineData", "fileData"})
    | {"executableCode", "codeExecutionResult", "toolCall", "toolResponse"},
}
_TYPES: Final = re.compile(r"image/(?:png|jpeg|webp|heic|heif)\Z|application/pdf\Z|text/|audio/|video/")
_THINGS: Final = _ROLES["user"] | _ROLES["model"]


def _part_problems(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    before = ""
    for index, one in enumerate(contents):
        if one["role"] == before:
            yield f"contents[{index}]: Please ensure that multiturn requests alternate between user and model"
        before = one["role"]
        if not one.get("parts"):
            yield f"contents[{index}].parts must not be empty"
        for part in one.get("parts", ()):
            things = _THINGS & part.keys()
            if len(things) != 1:
                yield f"contents[{index}].parts: required oneof field 'data' must have one initialized field"
            elif not things <= _ROLES[before]:
                yield f"contents[{index}]: a {things} in a content of role {before}"
            elif part.get("text", "x") == "" and "thoughtSignature" not in part:
                yield f"contents[{index}].parts: Unable to submit request because it must have a text parameter"
            if not _TYPES.match((part.get("inlineData") or {}).get("mimeType", "text/plain")):
                yield f"contents[{index}]: Unsupported MIME type: {part['inlineData']['mimeType']}"
            for key in things & {"functionCall", "functionResponse"}:
                if not _NAME.match(part[key]["name"]):
                    yield f"contents[{index}]: Invalid function name: {part[key]['name']!r}"


def _pair_problems(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    due: list[Mapping[str, Any]] = []
    for index, one in enumerate(contents):
        responses = [part["functionResponse"] for part in one["parts"] if "functionResponse" in part]
        if len(responses) != len(due):
            yield (
                f"contents[{index}]: Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn"
            )
        for call, response in zip(due, responses, strict=False):
            if call["name"] != response["name"] or call.get("id") != response.get("id"):
                yield f"contents[{index}]: the response of {response['name']} does not match the call of {call['name']}"
        if any("functionResponse" in part for part in one["parts"][len(responses) :]):
            yield f"contents[{index}]: responses behind other parts"
        due = [part["functionCall"] for part in one["parts"] if "functionCall" in part]
    if due:
        yield "a function call turn must be followed by a function response turn"


def _signature_problems(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    people = [
        index
        for index, one in enumerate(contents)
        if one["role"] == "user" and not any("functionResponse" in part for part in one["parts"])
    ]
    for index in range(people[-1] if people else 0, len(contents)):
        calls = [part for part in contents[index]["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            yield f"Function call is missing a thought_signature in functionCall parts: {name}, position {index}"


def _forgeries(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whatever is signed comes back on the part that it came with, and that part as it came."""
    for index, one in enumerate(contents):
        for part in one["parts"]:
            given = part.get("thoughtSignature")
            if given == _ANYBODYS and "functionCall" in part:
                continue
            if given is not None and given != _signature_of(part):
                yield f"contents[{index}]: Thought signature is not valid"


def _thinking_problems(config: Mapping[str, Any], model: str) -> Iterator[str]:
    thinking = config.get("thinkingConfig", {})
    by_level, by_budget = "thinkingLevel" in thinking, "thinkingBudget" in thinking
    if by_level and not _SIGNED_FROM.match(model):
        yield "Thinking level is not supported for this model."
    if by_level and by_budget:
        yield "You can only set only one of thinking budget and thinking level."
    if thinking and _THINKS_NOT.match(model):
        yield "Thinking is not enabled for this model."
