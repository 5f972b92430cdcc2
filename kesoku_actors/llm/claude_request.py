"""A request as Claude is sent it: made, checked and written (`kept_talk`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field

from kesoku_actors.llm import claude_body as bodies
from kesoku_actors.llm import claude_names as names
from kesoku_actors.llm import claude_rules as rules
from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_repair import repair
from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.media import MediaByRow
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import IdRule, Made, Stretch
from kesoku_actors.llm.written import Written
from kesoku_actors.values import frozen

_SOMETHING: Final = {"role": "user", "content": [{"type": "text", "text": "."}]}
_SERVER_TYPES: Final = rules.SERVER_RESULTS | {rules.SERVER_USE}


@frozen(kw_only=True)
class ClaudeRequest:
    """One request."""

    request: Request
    options: ClaudeOptions
    declared: Declared
    media: MediaByRow = field(factory=dict)
    key: str = field(default="messages", init=False)

    @property
    def asked(self) -> tuple[str, str]:
        """The provider and the model."""
        return self.options.provider, self.options.model

    @property
    def id_rule(self) -> IdRule:
        """Which ids go to Claude."""
        return bodies.id_rule(self.options.provider)

    def make(self, stretch: Stretch, ids: Mapping[str, str]) -> Made:
        """Return the messages of a stretch."""
        has_tools = self.request.shows_calls
        return bodies.make_talk(stretch, ids, self.options, self.declared, self.media, has_tools=has_tools)

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> Mapping[int, Mapping[str, Any]]:
        """Return the messages that have a breakpoint of the cache, with it."""
        return bodies.marked(messages)

    def may_be_kept(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether no rule counts a block of these, or joins it with one far away."""
        blocks = [block for message in messages for block in rules.blocks_of(message)]
        return not any(
            block["type"] in _SERVER_TYPES or "cache_control" in block or any(rules.media_in(block)) for block in blocks
        )

    def is_sound(self, written: Written, rest: int) -> bool:
        """Tell whether a request keeps the rules, given that it does before `rest`."""
        messages = written.body[self.key]
        body = {**written.body, self.key: [*([_SOMETHING] if rest else ()), *messages[rest:]]}
        return len(messages) <= names.MOST_MESSAGES and not rules.broken(body, size=written.size)

    def preface(self) -> list[dict[str, Any]]:
        """Return nothing: the system prompt stands elsewhere."""
        return []

    def body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body with these messages. Thinking is not asked for where the turn that goes on forbids it."""
        return {**bodies.make_frame(self.request, self.options, self.declared, messages), "messages": messages}

    def whole(self) -> RepairedBody:
        """Return the body made anew, and mended if need be."""
        return repair(bodies.make_body(self.request, self.options, declared=self.declared, media=self.media))
