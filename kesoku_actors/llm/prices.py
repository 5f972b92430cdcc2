"""What inferences cost, by what the settings say of a model's prices, and how tokens and money are told. Pure.

Tokens read from a provider's cache or written to it are part of the input and thinking is part of the output, as
`Usage` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kesoku_actors.protocol import Usage
from kesoku_actors.values import frozen

_PER: Final = 1_000_000
_TO_WRITE: Final = 1.25
"""What input costs more where it is written to a cache, if nothing else is known: Anthropic's, for five minutes."""


@frozen(kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of input read from the provider's cache; as `input` when unknown."""
    written: float | None = None
    """Of input written to it, where the provider counts that apart; a quarter more than `input` when unknown."""


FREE: Final = Price(input=0.0, output=0.0)
SCENARIO: Final = "scenario"
"""What the scripted model is called."""


def cost_of(usage: Usage, price: Price) -> float | None:
    """Return what these tokens cost, US dollars; none when the provider counted none."""
    if usage.input is None and usage.output is None:
        return None
    asked = usage.input or 0
    cached = min(usage.cached or 0, asked)
    written = min(usage.written or 0, asked - cached)
    cached_price = price.input if price.cached is None else price.cached
    written_price = _TO_WRITE * price.input if price.written is None else price.written
    into = (asked - cached - written) * price.input + cached * cached_price + written * written_price
    return (into + (usage.output or 0) * price.output) / _PER


def dollars(amount: float) -> str:
    """Return an amount as people read it, with as many places as it needs: `$1.20`, `$0.0004`."""
    text = f"{amount:.6f}".rstrip("0")
    return f"${text.ljust(text.index('.') + 3, '0')}"


def total(usages: Iterable[Usage]) -> Usage:
    """Return what several inferences used, as far as that is known."""
    known = list(usages)
    costs = [usage.cost for usage in known if usage.cost is not None]
    return Usage(
        input=sum(usage.input or 0 for usage in known),
        cached=sum(usage.cached or 0 for usage in known),
        written=sum(usage.written or 0 for usage in known),
        output=sum(usage.output or 0 for usage in known),
        thinking=sum(usage.thinking or 0 for usage in known),
        cost=sum(costs) if costs else None,
    )


def spelled(usage: Usage) -> str:
    """Return tokens and cost in words."""
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    thinking = f" ({usage.thinking} thinking)" if usage.thinking else ""
    cost = "" if usage.cost is None else f" · {dollars(usage.cost)}"
    return f"tokens {usage.input or 0} in{cached}, {usage.output or 0} out{thinking}{cost}"
