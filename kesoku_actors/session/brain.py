"""The model that answers in a session: its provider, its gate, and what was learnt of how much it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import field

from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.port import Provider
from kesoku_actors.session.reach import Reach
from kesoku_actors.values import frozen

NOWHERE_ELSE: Final = frozenset({"budget", "filtered"})
"""Kinds of errors that lose no model: the day's money is spent, or what is said is refused for its content."""


@frozen(kw_only=True)
class Brain:
    """The model that answers in a session."""

    provider: Provider
    gate: ProviderGate
    reach: Reach = field(factory=Reach, eq=False)
    """Lives as long as the model is used, in whichever session."""

    @property
    def label(self) -> str:
        """Its model and its name, as people read them."""
        return f"{self.provider.model} ({self.provider.name})"

    @property
    def room(self) -> float | None:
        """How many of our tokens a prompt may be; none when nothing is known."""
        return self.reach.room(self.provider.context_tokens)


def line_of(first: Brain, failover: Iterable[Brain]) -> tuple[Brain, ...]:
    """Return who is asked, in order: the model of a channel, then the others (P2)."""
    return (first, *(brain for brain in failover if brain.provider.name != first.provider.name))
