"""A request as the JSON body of a chat completion. Pure.

An answer (`talk`) is one assistant message; of its thoughts go back those that this provider and model gave beside
calls, unchanged (`StepContent.native`). Each result is a message behind its call. What was said between two answers is
one user message. `openai_rules` is the net beneath all this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.dialects.openai import declare
from kesoku_actors.llm.openai_rules import CALL, join
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.talk import Answered, IdRule, Made, Part, Said, Stretch, call_ids, make, result_text
from kesoku_actors.values import define

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_OWN_KEYS: Final = frozenset({"role", "content", "tool_calls"})


def make_body(
    request: Request,
    *,
    provider: str,
    model: str,
    output_limit: str = "max_tokens",
    declared: Declared | None = None,
) -> dict[str, Any]:
    """Return the body of a streaming request; `output_limit` is the server's name of that parameter.

    `declared` is what `declare` says of the request's tools, where that is known already.
    """
    declared = declare(request.tools) if declared is None else declared
    messages = make_messages(request, provider=provider, model=model, declared=declared)
    return {**make_frame(request, model=model, output_limit=output_limit, declared=declared), "messages": messages}


def make_frame(request: Request, *, model: str, output_limit: str, declared: Declared) -> dict[str, Any]:
    """Return the body of a request without its messages."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if declared.tools:
        body["tools"] = list(declared.tools)
    if request.max_output_tokens is not None:
        body[output_limit] = request.max_output_tokens
    return body


def make_messages(
    request: Request, *, provider: str, model: str, declared: Declared | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a request, in order."""
    declared = declare(request.tools) if declared is None else declared
    stretch = Stretch.of(request)
    ids = call_ids(stretch, id_rule(provider)).by_row
    talk = make_talk(stretch, ids, provider=provider, model=model, declared=declared)
    return [*system_message(request), *talk.messages]


def system_message(request: Request) -> list[dict[str, Any]]:
    """Return the message that stands before the talk, if there is one."""
    return [{"role": "system", "content": request.system}] if request.system.strip() else []


def id_rule(provider: str) -> IdRule:
    """Return which ids of calls go to a provider."""
    return IdRule(provider=provider, allowed=_ID, prefix=CALL)


def make_talk(stretch: Stretch, ids: Mapping[str, str], *, provider: str, model: str, declared: Declared) -> Made:
    """Return the messages of a stretch, in order."""
    talk = _Talk(provider=provider, model=model, declared=declared, ids=ids)
    return make(stretch, talk.messages, talk.add, "assistant")


@define(kw_only=True)
class _Talk:
    """The messages so far."""

    provider: str
    model: str
    declared: Declared
    ids: Mapping[str, str]
    messages: list[dict[str, Any]] = field(factory=list)

    def add(self, part: Part) -> None:
        """Add a part."""
        match part:
            case Said():
                self.append({"role": "user", "content": part.text})
            case Answered():
                self.answer(part)

    def answer(self, answered: Answered) -> None:
        """Add an answer, and the results of its calls as far as they are known."""
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(answered.texts) or None}
        native = answered.native_of(self.provider, self.model) or {}
        if answered.calls:
            message["tool_calls"] = self._tool_calls(answered, native)
            message |= {key: value for key, value in native.items() if key not in _OWN_KEYS}
        if answered.texts or answered.calls:
            self.append(message)
        for call in answered.calls:
            if (result := answered.results.get(call.id)) is not None:
                self.append({"role": "tool", "tool_call_id": self.ids[call.id], "content": result_text(result)})

    def append(self, message: dict[str, Any]) -> None:
        """Add a message, joined with the one before it where both are of one role."""
        before = self.messages[-1] if self.messages else {"role": "none"}
        if before["role"] == message["role"] and message["role"] != "tool":
            self.messages[-1] = dict(join(before, message))
        else:
            self.messages.append(message)

    def _tool_calls(self, answered: Answered, native: Mapping[str, Any]) -> list[dict[str, Any]]:
        natives = native.get("tool_calls") or []
        made: list[dict[str, Any]] = []
        for index, call in enumerate(answered.calls):
            # What the server put beside a call (a signature, say) belongs to it and goes back with it.
            beside = natives[index] if len(natives) == len(answered.calls) else {}
            name, arguments = self.declared.outward(call.metadata["tool_name"], call.metadata["tool_arguments"])
            written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            function = {"name": name, "arguments": written}
            made.append({**beside, "id": self.ids[call.id], "type": "function", "function": function})
        return made
