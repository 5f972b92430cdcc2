"""Mends a request for Gemini so that it keeps every rule of `gemini_rules`, on a copy (P1). Pure.

`repair` returns a body that `broken` finds nothing in, returns what is right unchanged, and names everything it did.
What it cannot keep it tells of: a response without functions becomes a text, data no model reads a note. A talk that is
too long without its files stays so: a history is made shorter before (`session.ladder`).
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field

from kesoku_actors.llm import gemini_names as names
from kesoku_actors.llm import gemini_rules as rules
from kesoku_actors.llm.repaired import BEGINNING, GO_ON, RepairedBody
from kesoku_actors.llm.talk import EMPTY, NO_RESULT
from kesoku_actors.llm.wellformed import json_size, well_formed
from kesoku_actors.values import define

Part = dict[str, Any]
Content = dict[str, Any]


def repair(body: Mapping[str, Any], *, model: str) -> RepairedBody:
    """Return a copy that keeps the rules. The given body is not changed."""
    if not rules.broken(body, model=model):
        return RepairedBody(body=body, repairs=())
    mending = _Mending(body=well_formed(dict(body)), model=model)
    if mending.body != body:
        mending.repairs.append("replaced half a surrogate pair")
    mending.mend()
    return RepairedBody(body=mending.body, repairs=tuple(mending.repairs))


@define(kw_only=True)
class _Mending:
    """The body as it is mended, and what was done."""

    body: dict[str, Any]
    model: str
    repairs: list[str] = field(factory=list)

    def mend(self) -> None:
        """Do everything, in an order in which nothing is broken again."""
        self._functions()
        contents = [{"role": content["role"], "parts": list(self._parts(content))} for content in self.body["contents"]]
        if not rules.declarations_of(self.body):
            contents = [self._told(content) for content in contents]
        contents = self._alternating(self._paired(contents))
        self._sign(contents)
        self.body["contents"] = contents
        self._fit(contents)

    def _done(self, what: str) -> None:
        self.repairs.append(what)

    def _functions(self) -> None:
        kept: dict[str, Mapping[str, Any]] = {}
        declared = rules.declarations_of(self.body)
        for one in declared:
            if names.FUNCTION_NAME.match(one["name"]):
                kept.setdefault(one["name"], one)
        if len(kept) == len(declared):
            return
        self._done("left out functions that cannot be named so")
        others = [tool for tool in self.body["tools"] if "functionDeclarations" not in tool]
        tools = [*others, *([{"functionDeclarations": list(kept.values())}] if kept else [])]
        self.body = {key: value for key, value in self.body.items() if key != "tools"}
        if tools:
            self.body["tools"] = tools

    def _parts(self, content: Content) -> Iterator[Part]:
        allowed = rules.allowed_in(content["role"])
        for part in content["parts"]:
            if "thoughtSignature" in part and not rules.is_signature(part["thoughtSignature"]):
                self._done("left out a signature that is none")
                part = {key: value for key, value in part.items() if key != "thoughtSignature"}
            if unknown := rules.unknown_fields(part):
                self._done(f"left out the fields {unknown}")
                part = {key: value for key, value in part.items() if key not in unknown}
            things = rules.what(part)
            if len(things) != 1 or things[0] not in allowed:
                self._done(f"left out a part that is {things} in a content of the {content['role']}")
            elif "text" in part and not rules.says_something(part):
                self._done("left out an empty text")
            elif "inlineData" in part and not names.takes_media(mime_type := part["inlineData"]["mimeType"]):
                self._done(f"left out data of type {mime_type}")
                yield {"text": f"[left out here: data of type {mime_type}]"}
            else:
                yield part

    def _told(self, content: Content) -> Content:
        """Without functions nothing may be a call or a response."""
        kept = [part for part in content["parts"] if "functionCall" not in part]
        if len(kept) != len(content["parts"]):
            self._done("left out calls, as no functions are declared")
        return content | {"parts": [self._as_text(part) for part in kept]}

    def _as_text(self, part: Part) -> Part:
        if "functionResponse" not in part:
            return part
        self._done("told of a response in words")
        response = part["functionResponse"].get("response")
        said = "\n".join(map(str, response.values())) if isinstance(response, Mapping) else ""
        return {"text": f"[A tool returned:]\n{said}"}

    def _paired(self, contents: list[Content]) -> list[Content]:
        """Put one response behind each call, in order, with the call's name and id."""
        by_id: defaultdict[tuple[str, str | None], deque[Part]] = defaultdict(deque)
        for content in contents:
            for part in rules.responses_of(content):
                response = part["functionResponse"]
                by_id[response["name"], response.get("id")].append(dict(part))
        paired: list[Content] = []
        for content in contents:
            if content["role"] != "model":
                paired.append(
                    content | {"parts": [part for part in content["parts"] if "functionResponse" not in part]}
                )
                continue
            due: list[Part] = []
            parts = []
            for part in content["parts"]:
                if "functionCall" in part:
                    found = by_id[part["functionCall"]["name"], part["functionCall"].get("id")]
                    part = self._mended_call(part)
                    due.append(self._mended_response(part["functionCall"], found.popleft() if found else None))
                parts.append(part)
            paired.append(content | {"parts": parts})
            if due:
                paired.append({"role": "user", "parts": due})
        if any(by_id.values()):
            self._done("left out responses without a call")
        return paired

    def _mended_call(self, part: Part) -> Part:
        call = dict(part["functionCall"])
        if not names.FUNCTION_NAME.match(call["name"]):
            self._done(f"renamed the function {call['name']!r}")
            name = re.sub(r"[^A-Za-z0-9_.:-]", "_", call["name"])[:63]
            call["name"] = name if names.FUNCTION_NAME.match(name) else f"_{name}"
        if not isinstance(call.get("args", {}), Mapping):
            self._done(f"left out the arguments of {call['name']}")
            call["args"] = {}
        return part | {"functionCall": call}

    def _mended_response(self, call: Part, part: Part | None) -> Part:
        if part is None:
            self._done(f"added the missing response of {call['name']}")
        response = dict(part["functionResponse"]) if part is not None else {"response": {"error": NO_RESULT}}
        if not isinstance(response.get("response", {}), Mapping):
            self._done(f"made an object of the response of {call['name']}")
            response["response"] = {"result": str(response["response"])}
        response["name"] = call["name"]
        if call.get("id"):
            response["id"] = call["id"]
        return {"functionResponse": response}

    def _alternating(self, contents: list[Content]) -> list[Content]:
        joined: list[Content] = []
        for content in contents:
            if not content["parts"]:
                continue
            if joined and joined[-1]["role"] == content["role"]:
                joined[-1] = content | {"parts": [*joined[-1]["parts"], *content["parts"]]}
            else:
                joined.append(content)
        if not joined or joined[0]["role"] != "user":
            self._done("began with the user")
            joined.insert(0, {"role": "user", "parts": [{"text": BEGINNING if joined else EMPTY}]})
        if joined[-1]["role"] != "user":
            self._done("ended with the user")
            joined.append({"role": "user", "parts": [{"text": GO_ON}]})
        return joined

    def _sign(self, contents: list[Content]) -> None:
        if not names.wants_signatures(self.model):
            return
        for index, call in list(rules.unsigned(contents)):
            self._done("marked the call of another model")
            parts = contents[index]["parts"]
            place = next(place for place, part in enumerate(parts) if part is call)
            parts[place] = {**call, "thoughtSignature": names.NO_SIGNATURE}

    def _fit(self, contents: list[Content]) -> None:
        """Leave out data from the oldest on until the whole is as small as the service takes."""
        size = json_size(self.body)
        for content in contents:
            for place, part in enumerate(content["parts"]):
                if size <= names.LARGEST_BODY:
                    return
                if "inlineData" in part:
                    size -= json_size(part)
                    content["parts"][place] = {"text": "[an older file is left out here]"}
                    self._done("left out an older file")
        if size > names.LARGEST_BODY:
            self._done(f"is still {size} bytes")
