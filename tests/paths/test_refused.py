"""A service that refuses what no rule of ours foresees ends no session: it is asked again in words alone (P1, P2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kesoku_actors.protocol import Role, Status
from tests.paths.test_switching import (
    CLAUDE_CALLS,
    CLAUDE_SAYS,
    GEMINI_CALLS,
    GEMINI_SAYS,
    OPENAI_SAYS,
    ROOM,
    talking,
)

FIRST_WORDS = {"claude": "three", "gemini": "one"}
"""What each has `echo` say first."""


def no_calls(body: Mapping[str, Any]) -> Iterator[str]:
    said = json.dumps(body["messages"] if "messages" in body else body["contents"])
    if '"tool_use"' in said or '"functionCall"' in said:
        yield "a new rule about calls"


def no_thinking(body: Mapping[str, Any]) -> Iterator[str]:
    if "thinking" in body or "thinkingConfig" in body.get("generationConfig", {}):
        yield "this model does not think"


@pytest.mark.parametrize("name", ["claude", "gemini"])
@pytest.mark.parametrize("rule", [no_calls, no_thinking])
async def test_what_is_refused_is_asked_again_in_words_and_the_session_goes_on(
    tmp_path: Path, name: str, rule: Any
) -> None:
    says = {"claude": "Claude has it.", "gemini": "Gemini has it."}[name]
    served: dict[str, Any] = {
        "to_claude": (CLAUDE_CALLS, *[CLAUDE_SAYS] * 9) if rule is no_calls else (CLAUDE_SAYS,),
        "to_gemini": (GEMINI_CALLS, *[GEMINI_SAYS] * 9) if rule is no_calls else (GEMINI_SAYS,),
    }
    async with talking(tmp_path, to_openai=(OPENAI_SAYS,), **served) as talk:
        await talk.brains.choose(ROOM, name)
        judge = talk.claude if name == "claude" else talk.gemini
        judge.more_rules = rule
        for text in ("one", "two", "three"):
            asked = await talk.ask(text)
            assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        assert await talk.said(asked.session_id) == [says] * 3
        assert await talk.said(asked.session_id, Role.SYSTEM) == [], "nobody need know of it"
        last = json.dumps(judge.bodies[-1])
        assert not list(rule(judge.bodies[-1]))
        assert rule is no_thinking or FIRST_WORDS[name] in last, "what the tools did is told"
        assert judge.bodies[-1]["tools"], "and they may be used"


async def test_what_is_refused_in_words_too_ends_the_turn_and_is_told(tmp_path: Path) -> None:
    async with talking(tmp_path, to_gemini=(GEMINI_SAYS,), to_claude=(CLAUDE_SAYS,), to_openai=(OPENAI_SAYS,)) as talk:
        talk.gemini.more_rules = lambda _body: ["not today"]
        asked = await talk.ask("one")
        assert asked.status is Status.ERROR
        assert "not today" in (await talk.said(asked.session_id, Role.SYSTEM))[-1]
        assert len(talk.gemini.bodies) == 2
