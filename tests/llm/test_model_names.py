"""What the name of a model tells: how it is asked to think, how much it writes, what it wants back."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.llm import claude_names, gemini_names
from kesoku_actors.llm.claude_body import ClaudeOptions
from kesoku_actors.llm.claude_body import make_body as claude_body
from kesoku_actors.llm.gemini_body import GeminiOptions
from kesoku_actors.llm.gemini_body import make_body as gemini_body

from .examples import asking, said


@pytest.mark.parametrize(
    ("model", "config"),
    [
        ("gemini-2.5-flash", [("thinkingBudget", budget) for budget in (512, 2048, 8192, 24_576)]),
        ("gemini-2.5-pro", [("thinkingBudget", budget) for budget in (512, 2048, 8192, 24_576)]),
        ("gemini-3-flash-preview", [("thinkingLevel", word) for word in ("MINIMAL", "LOW", "MEDIUM", "HIGH")]),
        ("gemini-3-pro-preview", [("thinkingLevel", word) for word in ("LOW", "LOW", "HIGH", "HIGH")]),
        ("gemini-flash-latest", [("thinkingLevel", word) for word in ("MINIMAL", "LOW", "MEDIUM", "HIGH")]),
        ("gemini-pro-latest", [("thinkingLevel", word) for word in ("LOW", "LOW", "HIGH", "HIGH")]),
        ("gemini-3-pro-image", [("includeThoughts", True)] * 4),
        ("gemini-2.5-flash-image", [None] * 4),
        ("gemini-2.0-flash", [None] * 4),
        ("gemini-1.5-pro-002", [None] * 4),
        ("gemma-3-27b-it", [None] * 4),
    ],
)
def test_each_family_of_gemini_is_asked_to_think_in_its_own_words(model: str, config: list[Any]) -> None:
    levels: Any = ("minimal", "low", "medium", "high")
    for level, wanted in zip(levels, config, strict=True):
        made = gemini_names.thinking_config(level, model)
        assert made == (None if wanted is None else {"includeThoughts": True} | dict([wanted]))


@pytest.mark.parametrize(
    ("model", "kind", "limit"),
    [
        ("claude-3-haiku-20240307", "none", 4096),
        ("claude-3-5-sonnet@20241022", "none", 8192),
        ("claude-3-7-sonnet-latest", "budget", 32_000),
        ("claude-sonnet-4-0", "budget", 32_000),
        ("claude-haiku-4-5@20251001", "budget", 32_000),
        ("claude-opus-4-7", "adaptive", 32_000),
        ("claude-next", "adaptive", 32_000),
    ],
)
def test_each_family_of_claude_is_asked_to_think_in_its_own_words(model: str, kind: str, limit: int) -> None:
    assert claude_names.abilities_of(model) == claude_names.Abilities(thinking=kind, max_output_tokens=limit)  # type: ignore[arg-type]
    levels: Any = ("minimal", "low", "medium", "high")
    for level in levels:
        fields = claude_names.thinking_fields(level, model)
        thinking = fields.get("thinking", {})
        assert thinking.get("type") == {"none": None, "budget": "enabled", "adaptive": "adaptive"}[kind]
        assert ("output_config" in fields) == (kind == "adaptive")
        assert thinking.get("display") == ("summarized" if kind == "adaptive" else None), "some models omit it else"
        assert 1024 <= thinking.get("budget_tokens", 1024) < limit
    assert claude_names.thinking_fields(None, model) == {}


@pytest.mark.parametrize("level", ["minimal", "low", "medium", "high"])
@pytest.mark.parametrize("answer", [1, 100, 500, 1500, 4000, 50_000])
def test_a_short_answer_keeps_its_room_whatever_is_thought(level: Any, answer: int) -> None:
    request = asking(said(1, "A title, please."), max_output_tokens=answer)
    for model in ("gemini-2.5-flash", "gemini-3-flash-preview", "gemini-2.0-flash"):
        config = gemini_body(request, GeminiOptions(provider="gemini", model=model, thinking_level=level))
        config = config["generationConfig"]
        budget = config.get("thinkingConfig", {}).get("thinkingBudget", 0)
        assert config["maxOutputTokens"] - budget >= answer
        assert budget <= max(512, answer)
    for model in ("claude-haiku-4-5", "claude-opus-4-7"):
        body = claude_body(request, ClaudeOptions(provider="claude", model=model, thinking_level=level))
        assert body["max_tokens"] == answer
        assert body.get("thinking", {}).get("budget_tokens", 0) <= answer // 2
        assert ("thinking" in body) == (answer >= 2048), "a few words want none"


def test_an_answer_without_a_limit_is_thought_about_as_asked() -> None:
    request = asking(said(1, "Hi"))
    made = gemini_body(request, GeminiOptions(provider="gemini", model="gemini-2.5-flash", thinking_level="high"))
    assert made["generationConfig"] == {"thinkingConfig": gemini_names.thinking_config("high", "gemini-2.5-flash")}
    body = claude_body(request, ClaudeOptions(provider="claude", model="claude-haiku-4-5", thinking_level="high"))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 20_000}
