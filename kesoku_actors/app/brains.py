"""Which model answers where: a table that a person may change while the program runs.

A model is made when it is first asked for, with a gate and the actors it needs beside it, and stays until the end. One
is made at a time, and one whose making was given up can be made again. A worker reads the table when it starts, so a
change takes effect with the next turn of an idle session.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio
from attrs import field

from kesoku_actors.actors import ChildSpec, Dynamic
from kesoku_actors.app.plan import provider_children
from kesoku_actors.llm.gate import ProviderGate, provider_actor
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.registry import ProviderRegistry
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Brain
from kesoku_actors.values import define


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
    _starting: trio.Lock = field(factory=trio.Lock, init=False)
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
        async with self._starting:
            provider = self.registry.choose(name).provider
            if (known := self._by_name.get(provider.name)) is not None:  # made meanwhile, or chosen by `auto`
                return known
            gate = self.gate_for(provider)
            keeper = ChildSpec(id=f"gate-{gate.name}", start=partial(provider_actor, gate=gate), mailbox=gate.mailbox)
            for child in (*provider_children(provider), keeper):
                await self.models.stop(child.id)  # of a choice that was given up
                await self.models.start(child)
            brain = self._by_name[provider.name] = Brain(provider=provider, gate=gate)
            return brain
