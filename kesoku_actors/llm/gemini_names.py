"""What the Gemini API allows: names, sizes, and what each family of models can do. Pure.

The figures are those of the public API reference.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

ThinkingLevel = Literal["minimal", "low", "medium", "high"]

FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}\Z")
LARGEST_BODY: Final = 20 << 20
"""Bytes of a request with files in it."""
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
MEDIA_TYPES: Final = re.compile(r"(?:application/pdf|text/[a-z0-9.+-]+|audio/[a-z0-9.+-]+|video/[a-z0-9.+-]+)\Z")
NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made; the service documents it for this."""

CONTEXT_TOKENS: Final = 1_048_576

_VERSION: Final = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?=\D|$)")
_THINKS: Final = (2, 5)
_BY_LEVEL: Final = (3, 0)
_LEVELS: Final[tuple[ThinkingLevel, ...]] = ("minimal", "low", "medium", "high")
BUDGETS: Final[dict[str, int]] = {"minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
"""Tokens; for the models that take a level, about as many."""
_COARSE: Final[dict[str, str]] = {"minimal": "low", "low": "low", "medium": "high", "high": "high"}


def version_of(model: str) -> tuple[int, int] | None:
    """Return the version in a model's name: `gemini-2.5-flash` is (2, 5), `gemini-flash-latest` none."""
    found = _VERSION.search(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def takes_media(mime_type: str) -> bool:
    """Tell whether a model reads a file of this type as such."""
    return mime_type in IMAGE_TYPES or MEDIA_TYPES.match(mime_type) is not None


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses the calls of a running turn without their signature."""
    version = version_of(model)
    return version is None or version >= _BY_LEVEL


def level_within(level: ThinkingLevel, answer: int) -> ThinkingLevel:
    """Return how much is worth thinking about an answer of so many tokens: no more than it is long, or the least."""
    fits = [one for one in _LEVELS[: _LEVELS.index(level) + 1] if BUDGETS[one] <= answer]
    return fits[-1] if fits else _LEVELS[0]


def thinking_config(level: ThinkingLevel, model: str) -> dict[str, Any] | None:
    """Return the `thinkingConfig` that asks a model to think so much; none for one that cannot.

    Models of 2.5 take a budget of tokens, those of 3 a level, of which the larger ones know two. A name without a
    version is taken for a new model. Models that draw are only asked to show their thoughts; those that are no Gemini
    may have none.
    """
    version = version_of(model)
    if "gemini" not in model or (version is not None and version < _THINKS):
        return None
    if "image" in model:
        return {"includeThoughts": True} if version is None or version >= _BY_LEVEL else None
    if version is not None and version < _BY_LEVEL:
        return {"includeThoughts": True, "thinkingBudget": BUDGETS[level]}
    known = level if "flash" in model else _COARSE[level]
    return {"includeThoughts": True, "thinkingLevel": known.upper()}
