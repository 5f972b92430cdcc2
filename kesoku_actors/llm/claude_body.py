"""A request as the body of Claude's Messages API. Pure.

What one inference of this model said goes back as the blocks it came as, thinking and signatures unchanged and in
order (M4); another's answer is made anew from its rows, without thoughts. The results of its calls stand first in the
user message behind it, in the order of the calls. `claude_rules` is the net beneath all this.

Cache breakpoints stand at the end of the system prompt, which the tools are cached with, and at the end of the last
two user messages: the older one is where the request before this one ended, so what was cached then is found now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from attrs import field

from kesoku_actors.llm.claude_names import TOOL_USE_ID, ThinkingLevel, abilities_of, level_within, thinking_fields
from kesoku_actors.llm.claude_rules import needs_leading_thought
from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.dialects.claude import declare
from kesoku_actors.llm.media import MediaByRow, claude_block
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.talk import Answered, IdRule, Made, Part, Said, Stretch, call_ids, make, result_text, told
from kesoku_actors.protocol import Message, Outcome
from kesoku_actors.values import define, frozen

Block = dict[str, Any]

_CACHED: Final = {"type": "ephemeral"}
_CANNOT_BE_CACHED: Final = frozenset({"thinking", "redacted_thinking"})


@frozen(kw_only=True)
class ClaudeOptions:
    """What a request says beside the talk."""

    provider: str
    model: str
    thinking_level: ThinkingLevel | None = None


def make_body(
    request: Request,
    options: ClaudeOptions,
    *,
    declared: Declared | None = None,
    media: MediaByRow | None = None,
) -> dict[str, Any]:
    """Return the body of a request.

    `declared` is what `declare` says of the request's tools, where that is known already; `media` are the attachments
    to be sent as such, by the id of their message.
    """
    declared = declare(request.tools) if declared is None else declared
    stretch = Stretch.of(request)
    ids = call_ids(stretch, id_rule(options.provider)).by_row
    messages = make_talk(stretch, ids, options, declared, media or {}, has_tools=request.shows_calls).messages
    for index, message in marked(messages).items():
        messages[index] = message
    return {**make_frame(request, options, declared, messages), "messages": messages}


def make_frame(
    request: Request, options: ClaudeOptions, declared: Declared, messages: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the body of a request with these messages, without them."""
    limit = output_limit(request, options)
    body: dict[str, Any] = {"model": options.model, "max_tokens": limit, "messages": []}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    if declared.tools:
        body["tools"] = list(declared.tools)
    body |= _thinking(request, options, limit)
    if needs_leading_thought({**body, "messages": messages}):  # another model, or this one without thinking, began it
        del body["thinking"]
    return body


def output_limit(request: Request, options: ClaudeOptions) -> int:
    """Return how many tokens may be written."""
    return request.max_output_tokens or abilities_of(options.model).max_output_tokens


def id_rule(provider: str) -> IdRule:
    """Return which ids of calls go to a provider."""
    return IdRule(provider=provider, allowed=TOOL_USE_ID, prefix="toolu_")


def make_talk(
    stretch: Stretch,
    ids: Mapping[str, str],
    options: ClaudeOptions,
    declared: Declared,
    media: MediaByRow,
    *,
    has_tools: bool,
) -> Made:
    """Return the messages of a stretch without breakpoints, in order."""
    talk = _Talk(ids=ids, options=options, declared=declared, media=media, has_tools=has_tools)
    return make(stretch, talk.messages, talk.add, "assistant")


def marked(messages: Sequence[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the messages of a whole talk that have a breakpoint, with it, by where they stand."""
    asked = (index for index in range(len(messages) - 1, -1, -1) if messages[index]["role"] == "user")
    found = {}
    for index in islice(asked, 2):
        *before, last = messages[index]["content"]
        if last["type"] not in _CANNOT_BE_CACHED:
            found[index] = {**messages[index], "content": [*before, {**last, "cache_control": _CACHED}]}
    return found


def _thinking(request: Request, options: ClaudeOptions, limit: int) -> dict[str, Any]:
    """Return the fields that ask for thinking, within the limit of what is written; a short answer wants less."""
    level = options.thinking_level if request.max_output_tokens is None else level_within(options.thinking_level, limit)
    fields = thinking_fields(level, options.model)
    budget = fields.get("thinking", {}).get("budget_tokens")
    if budget is not None and budget >= limit:  # a budget is part of the limit, and has to leave room for an answer
        return {}
    return fields


@define
class _Talk:
    """The messages so far."""

    ids: Mapping[str, str]
    options: ClaudeOptions
    declared: Declared
    media: MediaByRow
    has_tools: bool
    messages: list[dict[str, Any]] = field(factory=list)

    def add(self, part: Part) -> None:
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
        self._append("user", [*self._media(said.row), {"type": "text", "text": said.text}])

    def answer(self, answered: Answered) -> None:
        """Add an answer and the results of its calls."""
        blocks = self._native(answered) or self._made(answered)
        if blocks:
            self._append("assistant", blocks)
        self._append("user", [self._result(call, answered.results.get(call.id)) for call in answered.calls])

    def tell(self, answered: Answered) -> None:
        """Add an answer for a model that is offered no tools: what they did is told."""
        self._append("assistant", [{"type": "text", "text": text} for text in answered.texts])
        for call in answered.calls:
            arguments = json.dumps(call.metadata["tool_arguments"], ensure_ascii=False)
            result = result_text(answered.results.get(call.id))
            self._append("user", [{"type": "text", "text": told(call.metadata["tool_name"], arguments, result)}])

    def _append(self, role: str, blocks: Iterable[Block]) -> None:
        added = list(blocks)
        if not added:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += added
        else:
            self.messages.append({"role": role, "content": added})

    def _made(self, answered: Answered) -> list[Block]:
        texts: list[Block] = [{"type": "text", "text": text} for text in answered.texts]
        return texts + [self._use(call) for call in answered.calls]

    def _use(self, call: Message) -> Block:
        name, arguments = self.declared.outward(call.metadata["tool_name"], call.metadata["tool_arguments"])
        return {"type": "tool_use", "id": self.ids[call.id], "name": name, "input": dict(arguments)}

    def _native(self, answered: Answered) -> list[Block]:
        """Return the blocks this model itself said; none when they do not tell of the same calls as the rows."""
        native = answered.native_of(self.options.provider, self.options.model)
        content = native.get("content") if native is not None else None
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            return []
        calls, uses = answered.calls, [block for block in content if block.get("type") == "tool_use"]
        if [self._use(call)["name"] for call in calls] != [use.get("name") for use in uses]:
            return []
        ids = iter([self.ids[call.id] for call in calls])
        return [{**block, "id": next(ids)} if block.get("type") == "tool_use" else dict(block) for block in content]

    def _result(self, call: Message, result: Message | None) -> Block:
        text = {"type": "text", "text": result_text(result)}
        block: Block = {
            "type": "tool_result",
            "tool_use_id": self.ids[call.id],
            "content": [text, *self._media(result)],
        }
        if result is None or result.metadata["outcome"] == Outcome.ERROR:
            block["is_error"] = True
        return block

    def _media(self, row: Message | None) -> list[Block]:
        return [claude_block(item) for item in self.media.get(row.id, ())] if row is not None else []
