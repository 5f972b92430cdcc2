"""A request as the JSON body of a chat completion. Pure.

How rows become messages:

* the rows of one inference (texts and calls) are one assistant message; thoughts stay at home, except those a provider
  gave beside calls, which go back to the same provider and model unchanged (`StepContent.native`);
* a result is found by its parent and stands behind its call, whatever its place;
* people and notices between two answers are one user message: the sender's name before a text unless it is the
  anonymous one, a notice quoted and marked as no person's;
* a partial answer is followed by a remark in the next user message, never in the model's own words;
* a row is shown the same way in every request, so that the prefix stays the same bytes for the server's cache.

A call keeps the provider's id where that provider gave it and it is the first of its name; else it gets one that is
unique in the request (M4). `openai_rules` is the net beneath all this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.dialects.openai import declare
from kesoku_actors.llm.openai_rules import EMPTY, fresh_ids, join
from kesoku_actors.llm.port import Request, StepContent
from kesoku_actors.protocol import ANONYMOUS, Message, Role, Type

CUT_OFF: Final = "[The answer above was cut off there; the user has read no more of it.]"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_OWN_KEYS: Final = frozenset({"role", "content", "tool_calls"})
_LONGEST_NAME: Final = 64


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
    body: dict[str, Any] = {
        "model": model,
        "messages": make_messages(request, provider=provider, model=model, declared=declared),
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
    talk = _Talk(request, provider, model, declare(request.tools) if declared is None else declared)
    if request.system.strip():
        talk.messages.append({"role": "system", "content": request.system})
    for row in request.history:
        talk.add(row)
    talk.finish_answer()
    if request.nudge:
        talk.say(request.nudge)
    return talk.messages


def _arguments(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _spoken(row: Message) -> str:
    """Return a person's text or a notice as the model reads it."""
    if row.role is Role.SYSTEM:
        quoted = "\n".join(f"> {line}" for line in row.content.splitlines())
        return f"[Notice of the system, not said by a person]\n{quoted}"
    text = row.content if row.content.strip() else EMPTY
    # A name is one line without the colon that ends it, or a sender could speak as somebody else.
    name = " ".join(row.sender.replace(":", " ").split())[:_LONGEST_NAME]
    return text if row.sender == ANONYMOUS else f"{name}: {text}"


@define
class _Answer:
    """The assistant message being collected: rows of one step, or rows in a row without steps."""

    step: StepContent | None
    texts: list[str] = field(factory=list)
    calls: list[Message] = field(factory=list)
    is_partial: bool = False


class _Talk:
    """The messages so far, and the answer that is being collected."""

    def __init__(self, request: Request, provider: str, model: str, declared: Declared) -> None:
        self.messages: list[dict[str, Any]] = []
        self._provider, self._model, self._declared = provider, model, declared
        self._step_of = {message_id: step for step in request.steps for message_id in step.message_ids}
        self._result_of: dict[str, Message] = {}
        for row in request.history:
            if row.type is Type.TOOL_RESULT and row.parent_id is not None:
                self._result_of.setdefault(row.parent_id, row)
        self._ids = self._name_calls(request)
        self._answer: _Answer | None = None

    def add(self, row: Message) -> None:
        """Take the next row of the history."""
        match row.role, row.type:
            case Role.ASSISTANT, Type.TEXT | Type.TOOL_CALL:
                self._collect(row)
            case ((Role.USER | Role.SYSTEM), _):
                self.finish_answer()
                self.say(_spoken(row))
            case Role.TOOL, _:  # its content was taken by its call
                self.finish_answer()
            case _:  # a thought
                pass

    def say(self, text: str) -> None:
        """Add a text on the user's side."""
        self._append({"role": "user", "content": text})

    def finish_answer(self) -> None:
        """Add the answer that was being collected, and the results of its calls."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(answer.texts) or None}
        if answer.calls:
            message["tool_calls"] = self._tool_calls(answer)
            message |= {key: value for key, value in self._native(answer).items() if key not in _OWN_KEYS}
        if answer.texts or answer.calls:
            self._append(message)
        for call in answer.calls:
            if (found := self._result_of.get(call.id)) is not None:
                content = found.content if found.content.strip() else f"({found.metadata['outcome']}, no output)"
                self._append({"role": "tool", "tool_call_id": self._ids[call.id], "content": content})
        if answer.is_partial:
            self.say(CUT_OFF)

    def _collect(self, row: Message) -> None:
        step = self._step_of.get(row.id)
        if self._answer is not None and (self._answer.step is not step or self._answer.is_partial):
            self.finish_answer()
        answer = self._answer = self._answer or _Answer(step=step)
        if row.type is Type.TOOL_CALL:
            answer.calls.append(row)
        elif row.content.strip():
            answer.texts.append(row.content)
            answer.is_partial = bool(row.metadata.get("partial"))

    def _append(self, message: dict[str, Any]) -> None:
        before = self.messages[-1] if self.messages else {"role": "none"}
        if before["role"] == message["role"] and message["role"] != "tool":
            self.messages[-1] = dict(join(before, message))
        else:
            self.messages.append(message)

    def _tool_calls(self, answer: _Answer) -> list[dict[str, Any]]:
        natives = self._native(answer).get("tool_calls") or []
        made: list[dict[str, Any]] = []
        for index, call in enumerate(answer.calls):
            # What the server put beside a call (a signature, say) belongs to it and goes back with it.
            beside = natives[index] if len(natives) == len(answer.calls) else {}
            name, arguments = self._declared.outward(call.metadata["tool_name"], call.metadata["tool_arguments"])
            function = {"name": name, "arguments": _arguments(arguments)}
            made.append({**beside, "id": self._ids[call.id], "type": "function", "function": function})
        return made

    def _native(self, answer: _Answer) -> Mapping[str, Any]:
        """Return what this provider and model itself said in that step; nothing for another's (P1)."""
        step = answer.step
        if step is None or step.native is None or (step.provider, step.model) != (self._provider, self._model):
            return {}
        return step.native

    def _name_calls(self, request: Request) -> dict[str, str]:
        calls = [row for row in request.history if row.type is Type.TOOL_CALL]
        given = {call.id: call.metadata["tool_call_id"] for call in calls if self._gave_id(call)}
        fresh, used = fresh_ids(given.values()), set[str]()
        named: dict[str, str] = {}
        for call in calls:
            wanted = given.get(call.id)
            named[call.id] = next(fresh) if wanted is None or wanted in used else wanted
            used.add(named[call.id])
        return named

    def _gave_id(self, call: Message) -> bool:
        step, call_id = self._step_of.get(call.id), call.metadata["tool_call_id"]
        is_own = step is None or step.provider == self._provider
        return is_own and isinstance(call_id, str) and _ID.match(call_id) is not None
