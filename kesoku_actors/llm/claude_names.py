"""What Claude's Messages API allows: patterns, sizes, and what each family of models can do. Pure.

The figures are those of the public API reference and of the SDK's own types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from kesoku_actors.values import frozen

ThinkingLevel = Literal["minimal", "low", "medium", "high"]

TOOL_USE_ID: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
MOST_BREAKPOINTS: Final = 4
MOST_MESSAGES: Final = 100_000
LEAST_BUDGET: Final = 1024
"""Tokens of thinking."""
LARGEST_BODY: Final = 32 << 20
"""Bytes of a request."""
LARGEST_IMAGE: Final = 5 << 20
"""Bytes of an image, as base64 text."""
MOST_IMAGES: Final = 100
IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
DOCUMENT_TYPE: Final = "application/pdf"

CONTEXT_TOKENS: Final = 200_000

_LEVELS: Final[tuple[ThinkingLevel, ...]] = ("minimal", "low", "medium", "high")
_BUDGETS: Final[Mapping[str, int]] = {"minimal": LEAST_BUDGET, "low": 4096, "medium": 10_000, "high": 20_000}
_EFFORTS: Final[Mapping[str, str]] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?=\D|$)")
_BY_BUDGET: Final = (3, 7)
_ADAPTIVE: Final = (4, 6)


@frozen(kw_only=True)
class Abilities:
    """What a model can do, as far as its name tells."""

    max_output_tokens: int
    thinking: Literal["none", "budget", "adaptive"]
    """How it is asked to think: not at all, by a budget of tokens, or by an effort."""


def abilities_of(model: str) -> Abilities:
    """Return what a model can do. A name without a version is taken for a new model."""
    version = version_of(model)
    if version is not None and version < (3, 5):
        return Abilities(max_output_tokens=4096, thinking="none")
    if version is not None and version < _BY_BUDGET:
        return Abilities(max_output_tokens=8192, thinking="none")
    if version is not None and version < _ADAPTIVE:
        return Abilities(max_output_tokens=32_000, thinking="budget")
    return Abilities(max_output_tokens=32_000, thinking="adaptive")


def version_of(model: str) -> tuple[int, int] | None:
    """Return the version in a model's name: `claude-3-5-sonnet@20241022` is (3, 5), `claude-sonnet-4-0` is (4, 0)."""
    found = _VERSION.search(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def level_within(level: ThinkingLevel | None, limit: int) -> ThinkingLevel | None:
    """Return how much may be thought so that half of what may be written is left for the answer; none: nothing."""
    if level is None:
        return None
    fits = [one for one in _LEVELS[: _LEVELS.index(level) + 1] if _BUDGETS[one] <= limit // 2]
    return fits[-1] if fits else None


def thinking_fields(level: ThinkingLevel | None, model: str) -> dict[str, Any]:
    """Return the fields that ask a model to think; none when nobody asks, or it cannot."""
    match level, abilities_of(model).thinking:
        case (None, _) | (_, "none"):
            return {}
        case str(), "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": _BUDGETS[level]}}
        case _:
            assert level is not None
            thinking = {"type": "adaptive", "display": "summarized"}  # some models show none of it else
            return {"thinking": thinking, "output_config": {"effort": _EFFORTS[level]}}
