"""A paused message of Claude's is gone on with by a request that keeps the rules but for its end."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.llm.claude_pause import going_on
from kesoku_actors.llm.claude_rules import broken

from ..wire.claude_server import text, thinking

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "kesoku band"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
ASKED = {"role": "user", "content": [text("Who?")]}
BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASKED]}


@pytest.mark.parametrize(
    "said",
    [
        [text("I search. "), SEARCH, FOUND, text("Four, ")],
        [thinking("Hm.", "c2ln"), text("I search."), SEARCH],
        [SEARCH],
    ],
    ids=["found", "waits", "waits alone"],
)
def test_what_was_said_goes_back_as_it_came_and_what_it_waits_for_stays_last(said: list[Any]) -> None:
    sound = going_on(BODY, said)
    assert sound.repairs == ()
    assert sound.body == {**BODY, "messages": [ASKED, {"role": "assistant", "content": said}]}


def test_what_breaks_a_rule_is_mended_and_told() -> None:
    said = [thinking("Hm.", ""), FOUND | {"tool_use_id": "srvtoolu_2"}, text("Four, "), SEARCH]
    sound = going_on(BODY, said)
    assert sound.body["messages"] == [ASKED, {"role": "assistant", "content": [text("Four, "), SEARCH]}]
    assert len(sound.repairs) == 2


def test_where_nothing_can_be_kept_it_is_asked_anew() -> None:
    sound = going_on(BODY, [thinking("Hm.", "")])
    assert sound.body == BODY
    assert not broken(sound.body)
