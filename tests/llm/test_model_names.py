"""What the name of a model tells: how it is asked to think, how much it writes, what it wants back."""

from __future__ import annotations

from typing import Any

import pytest

from kesoku_actors.llm import claude_names, gemini_names


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
