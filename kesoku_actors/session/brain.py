"""The model that answers in a session: its provider, its gate, and what was learnt of how much it reads."""

from __future__ import annotations

from attrs import field, frozen

from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.port import Provider
from kesoku_actors.session.reach import Reach


@frozen(kw_only=True)
class Brain:
    """The model that answers in a session."""

    provider: Provider
    gate: ProviderGate
    reach: Reach = field(factory=Reach, eq=False)
    """Lives as long as the model is used, in whichever session."""

    @property
    def room(self) -> float | None:
        """How many of our tokens a prompt may be; none when nothing is known."""
        return self.reach.room(self.provider.context_tokens)
