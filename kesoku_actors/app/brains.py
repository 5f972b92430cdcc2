"""Which model answers where: a table that a person may change while the program runs.

A model is made when it is first asked for, with a gate and the actors it needs beside it, and stays until the end. A
worker reads the table when it starts, so a change takes effect with the next turn of an idle session.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import define, field

from kesoku_actors.actors import ChildSpec, Dynamic
from kesoku_actors.app.plan import provider_children
from kesoku_actors.llm.gate import ProviderGate, provider_actor
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.registry import ProviderRegistry
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Brain


@define(eq=False)
class Brains:
    """The models in use. `models` supervises those that come while the program runs."""

    registry: ProviderRegistry
    default: Brain
    """Answers wherever nothing else was chosen; its gate is part of the plan."""
    spares: tuple[Brain, ...] = ()
    """Those that answer when it is lost; their gates are part of the plan too."""
    gate_for: Callable[[Provider], ProviderGate] = ProviderGate.of
    """Raises `ConfigError` for a model that must not be used."""
    models: Dynamic = field(factory=lambda: Dynamic("models"))
    _by_name: dict[str, Brain] = field(factory=dict, init=False)
    _chosen: dict[Channel, Brain] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._by_name |= {brain.provider.name: brain for brain in (self.default, *self.spares)}

    def of(self, channel: Channel) -> Brain:
        """Return the model that answers in a channel."""
        return self._chosen.get(channel, self.default)

    async def choose(self, channel: Channel, name: str) -> Provider:
        """Let the named model answer in a channel. Raises `ConfigError` for one that cannot."""
        brain = self._by_name.get(name) or await self._start(name)
        self._chosen[channel] = brain
        return brain.provider

    async def _start(self, name: str) -> Brain:
        provider = self.registry.choose(name).provider
        if (known := self._by_name.get(provider.name)) is not None:  # `auto` chose one that is here
            return known
        gate = self.gate_for(provider)
        for child in provider_children(provider):
            await self.models.start(child)
        await self.models.start(
            ChildSpec(id=f"gate-{gate.name}", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)
        )
        brain = self._by_name[provider.name] = Brain(provider=provider, gate=gate)
        return brain
