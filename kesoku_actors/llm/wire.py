"""A request in the words of one provider, as far as a talk that is kept has to know of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kesoku_actors.llm.media import MediaByRow
from kesoku_actors.llm.port import Request
from kesoku_actors.llm.repaired import RepairedBody
from kesoku_actors.llm.talk import IdRule, Made, Stretch
from kesoku_actors.llm.written import Written


class Wire(Protocol):
    """One request in the words of a provider."""

    @property
    def key(self) -> str:
        """Which field of the body is the talk."""

    @property
    def request(self) -> Request:
        """What is asked."""

    @property
    def asked(self) -> tuple[str, str]:
        """Which provider and model: with rows, steps, files and tools all that messages are made by."""

    @property
    def media(self) -> MediaByRow:
        """The files that rows bring."""

    @property
    def id_rule(self) -> IdRule | None:
        """Which ids its calls have; none if they have none of ours."""

    def make(self, stretch: Stretch, ids: Mapping[str, str]) -> Made:
        """Return the messages of a stretch."""

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> Mapping[int, Mapping[str, Any]]:
        """Return the messages that say more at the end of a talk than further back, by their places."""

    def may_be_kept(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether no rule joins these messages with others that are not their neighbours."""

    def is_sound(self, written: Written, rest: int) -> bool:
        """Tell whether a request keeps every rule, given that those of messages and of neighbours hold before `rest`.

        `rest` counts the messages behind the preface. Raises `UnicodeEncodeError` for half a surrogate pair.
        """

    def preface(self) -> list[dict[str, Any]]:
        """Return the messages before the talk."""

    def body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body with this talk."""

    def whole(self) -> RepairedBody:
        """Return the body made anew, and mended if need be."""
