"""A request as Gemini is sent it: made, checked and written (`kept_talk`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field

from kesoku_actors.llm import gemini_body as bodies
from kesoku_actors.llm import gemini_names as names
from kesoku_actors.llm import gemini_rules as rules
from kesoku_actors.llm.dialects import Declared
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_repair import repair
from kesoku_actors.llm.media import MediaByRow
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import Made, Stretch
from kesoku_actors.llm.written import Written
from kesoku_actors.values import frozen

_SOMETHING: Final = {"role": "user", "parts": [{"text": "."}]}


@frozen(kw_only=True)
class GeminiRequest:
    """One request."""

    request: Request
    options: GeminiOptions
    declared: Declared
    media: MediaByRow = field(factory=dict)
    key: str = field(default="contents", init=False)
    id_rule: None = field(default=None, init=False)

    @property
    def asked(self) -> tuple[str, str]:
        """The provider and the model."""
        return self.options.provider, self.options.model

    def make(self, stretch: Stretch, ids: Mapping[str, str]) -> Made:
        """Return the contents of a stretch."""
        has_tools = self.request.shows_calls
        return bodies.make_talk(stretch, self.options, self.declared, self.media, has_tools=has_tools)

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> Mapping[int, Mapping[str, Any]]:
        """Return the contents whose calls another model made, marked so."""
        return bodies.marked(messages, self.options.model)

    def may_be_kept(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Return yes: beside the size and the turn being answered each rule is about one content or neighbours."""
        return True

    def is_sound(self, written: Written, rest: int) -> bool:
        """Tell whether a request keeps the rules, given that it does before `rest`."""
        model, contents = self.options.model, written.body[self.key]
        body = {**written.body, self.key: [*([_SOMETHING] if rest else ()), *contents[rest:]]}
        return not rules.broken(body, model=model, size=written.size) and not (
            names.wants_signatures(model) and any(rules.unsigned(contents))
        )

    def preface(self) -> list[dict[str, Any]]:
        """Return nothing: the system prompt stands elsewhere."""
        return []

    def body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body with these contents."""
        return {**bodies.make_frame(self.request, self.options, self.declared), "contents": messages}

    def whole(self) -> RepairedBody:
        """Return the body made anew, and mended if need be."""
        body = bodies.make_body(self.request, self.options, declared=self.declared, media=self.media)
        return repair(body, model=self.options.model)
