"""A request as a server of chat completions is sent it: made, checked and written (`kept_talk`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field

from kesoku_actors.llm import openai_body as bodies
from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.media import MediaByRow
from kesoku_actors.llm.openai_plain import without_tools
from kesoku_actors.llm.openai_rules import broken, repair
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import IdRule, Made, Stretch
from kesoku_actors.llm.written import Written
from kesoku_actors.values import frozen

_SOMETHING: Final = {"role": "user", "content": "."}


@frozen(kw_only=True)
class OpenAIRequest:
    """One request."""

    request: Request
    provider: str
    model: str
    output_limit: str = "max_tokens"
    """The server's name of that parameter."""
    declared: Declared
    parameters: Mapping[str, Any] = field(factory=dict)
    """Further fields of the body."""
    is_plain: bool = False
    """Whether what tools did is told in words; then nothing of the talk is kept."""
    key: str = field(default="messages", init=False)
    media: MediaByRow = field(factory=dict, init=False)

    @property
    def asked(self) -> tuple[str, str]:
        """The provider and the model."""
        return self.provider, self.model

    @property
    def id_rule(self) -> IdRule:
        """Which ids go to the provider."""
        return bodies.id_rule(self.provider)

    def make(self, stretch: Stretch, ids: Mapping[str, str]) -> Made:
        """Return the messages of a stretch."""
        return bodies.make_talk(stretch, ids, provider=self.provider, model=self.model, declared=self.declared)

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> Mapping[int, Mapping[str, Any]]:
        """Return nothing: the server finds by itself what it has read before."""
        return {}

    def may_be_kept(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Return yes: each rule is about one message or neighbours, and ids are ours to give."""
        return True

    def is_sound(self, written: Written, rest: int) -> bool:
        """Tell whether a request keeps the rules, given that it does before `rest`."""
        begin, before = len(self.preface()), [_SOMETHING] if rest else []
        messages = written.body[self.key]
        return not broken([*messages[:begin], *before, *messages[begin + rest :]], is_written=True)

    def preface(self) -> list[dict[str, Any]]:
        """Return the system message."""
        return bodies.system_message(self.request)

    def body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body with these messages."""
        frame = bodies.make_frame(
            self.request, model=self.model, output_limit=self.output_limit, declared=self.declared
        )
        return {**frame, **self.parameters, "messages": messages}

    def whole(self) -> RepairedBody:
        """Return the body made anew, and mended if need be."""
        talk = bodies.make_messages(self.request, provider=self.provider, model=self.model, declared=self.declared)
        sound = repair(talk)
        messages = without_tools(sound.messages) if self.is_plain else list(sound.messages)
        return RepairedBody(body=self.body(messages), repairs=sound.repairs)
