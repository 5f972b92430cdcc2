"""How long a request is in tokens, and how long one may be for a model. Pure.

No tokenizer is at hand, and each model has its own. So a text is counted by its kinds of characters, and the count is
corrected by what the provider reports: the tokens it read in the last inference, and the numbers it refuses with.

Invariants: an empty text costs nothing, a longer text never less than its beginning. What is learnt of one model is
never applied to another.
"""

from __future__ import annotations

import re
from typing import Final

from kesoku_actors.llm.port import ProviderError
from kesoku_actors.protocol import ATTACHMENTS, Message, attachments_in
from kesoku_actors.values import define

_PER_TOKEN_ASCII: Final = 3.6
"""Characters: English prose has more, code and numbers have fewer."""
_CLASSES: Final = (
    (re.compile("[\u0080-\u02ff\u1e00-\u1eff\u2000-\u206f]+"), 1.5),
    (re.compile("[\u0300-\u0dff\u10a0-\u10ff]+"), 2.0),
    (re.compile("[\u0e00-\u0fff\u2070-\uffff\U00020000-\U0003ffff]+"), 1.0),
)
"""Kinds of characters and how many of them a token holds: Latin with accents; other alphabets; East Asian."""
_PER_TOKEN_REST: Final = 0.4
"""What is left is emoji and rare scripts, of which one character is two or three tokens."""
_LEAST_RATIO, _LARGEST_RATIO = 0.5, 3.0
"""A report beyond these tells of something else than this request, such as what was not read from a cache."""
_SMALLEST_SAMPLE: Final = 100.0
_FRAME: Final = 8.0
"""Tokens a row costs beside its text."""
_PICTURE: Final = 1_500.0
_LARGEST_RESERVE: Final = 8_192
_AFTER_REFUSAL: Final = 0.7


def tokens_in(text: str) -> float:
    """Return about how many tokens a text is."""
    if text.isascii():
        return len(text) / _PER_TOKEN_ASCII
    rest, tokens = len(text), 0.0
    for pattern, per_token in _CLASSES:
        count = sum(len(found) for found in pattern.findall(text))
        tokens += count / per_token
        rest -= count
    ascii_count = len(text.encode("ascii", "ignore"))
    return tokens + ascii_count / _PER_TOKEN_ASCII + (rest - ascii_count) / _PER_TOKEN_REST


def row_tokens(row: Message) -> float:
    """Return about how many tokens a row of a history is, as a provider sends it.

    What a call is made of stands in its content too. A picture costs what most models take for one.
    """
    pictures = 0
    if ATTACHMENTS in row.metadata:
        pictures = sum(each.mime_type.startswith("image/") for each in attachments_in(row.metadata))
    return _FRAME + tokens_in(row.content) + pictures * _PICTURE


@define
class Reach:
    """What is known of one model: how its tokens compare with our count, and how many it reads at once."""

    context_tokens: int | None = None
    """As it said in a refusal; what the settings say is the provider's to know."""
    ceiling: float | None = None
    """Tokens that a server which tells no numbers has not refused yet."""
    ratio: float = 1.0
    """Its tokens for each of ours."""

    def room(self, context_tokens: int | None) -> float | None:
        """Return how many of our tokens a prompt may be, the reply's left out; none when nothing is known."""
        known = [size for size in (context_tokens, self.context_tokens) if size is not None]
        limits = [float(min(known) - reserve(min(known)))] if known else []
        limits += [] if self.ceiling is None else [self.ceiling]
        return min(limits) / self.ratio if limits else None

    def answered(self, ours: float, reported: int | None) -> None:
        """Learn from what the provider read for a request that we counted as `ours`."""
        if reported is not None and ours >= _SMALLEST_SAMPLE:
            self.ratio = min(_LARGEST_RATIO, max(_LEAST_RATIO, reported / ours))
        if self.ceiling is not None:
            self.ceiling = max(self.ceiling, ours * self.ratio)

    def refused(self, ours: float, error: ProviderError) -> None:
        """Learn from a refusal of a request that we counted as `ours`: from its numbers, else that it was too long."""
        if error.prompt_tokens and error.context_tokens:
            self.context_tokens = error.context_tokens
            if ours >= _SMALLEST_SAMPLE:
                self.ratio = min(_LARGEST_RATIO, max(self.ratio, error.prompt_tokens / ours))
        else:
            tokens = ours * self.ratio
            if self.ceiling is None or tokens <= self.ceiling:  # else it could not be cut: nothing new is learnt
                self.ceiling = tokens * _AFTER_REFUSAL


def reserve(context_tokens: int) -> int:
    """Return how much of a context is kept for the reply."""
    return min(_LARGEST_RESERVE, context_tokens // 4)
