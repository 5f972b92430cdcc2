"""Which models there are, and which one answers.

A provider enters as a `ProviderFactory` with its owner's name, built-ins and plugins through the same door, and leaves
by the disposer that `add` returned. Invariants: a name is registered once; `choose` never falls back from a name that
was asked for, and says in one line which model answers (a silent change of model is the one thing it must not do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from attrs import field

from kesoku_actors.errors import ConfigError, Fault
from kesoku_actors.llm.port import Provider
from kesoku_actors.values import define, frozen

AUTO: Final = "auto"
LOCAL: Final = "local"


@frozen(kw_only=True)
class ProviderFactory:
    """One provider that can be made."""

    name: str
    missing: Callable[[], str | None]
    """What it lacks to be used, in words, such as a key; none when it is ready."""
    make: Callable[[], Provider]
    """Makes it; nothing is opened or started by that."""
    how: str
    """One line that says how to set it up: `[openai] api_key or OPENAI_API_KEY`."""
    owner: str = "kesoku_actors"
    auto: bool = True
    """Whether `auto` may choose it."""


@frozen(kw_only=True)
class Choice:
    """The model that answers, and the line that says so."""

    provider: Provider
    line: str


@frozen(kw_only=True)
class Spares:
    """The models to ask, in order, when the one that answers is lost; and why some are not among them."""

    providers: tuple[Provider, ...]
    passed_over: tuple[str, ...]


@define(eq=False)
class ProviderRegistry:
    """The providers present, in order of registration."""

    _factories: dict[str, ProviderFactory] = field(factory=dict, init=False)

    def add(self, factory: ProviderFactory) -> Callable[[], None]:
        """Register a provider; call the returned disposer to take it out again. Raises `Fault` for a taken name."""
        name = factory.name
        if name == AUTO:
            raise Fault(f"{factory.owner} cannot register a model named {AUTO!r}: it stands for the choice itself")
        if (present := self._factories.get(name)) is not None:
            raise Fault(f"{factory.owner} cannot register the model {name!r}: {present.owner} has it")
        self._factories[name] = factory

        def dispose() -> None:
            if self._factories.get(name) is factory:
                del self._factories[name]

        return dispose

    def factories(self) -> tuple[ProviderFactory, ...]:
        """Return what is registered, in order."""
        return tuple(self._factories.values())

    def choose(self, name: str = AUTO) -> Choice:
        """Return the named model; for `auto` the first that lacks nothing, the local one last.

        Raises `ConfigError` for an unknown name, listing those present, and for a model that lacks something.
        """
        if name == AUTO:
            return self._choose_any()
        factory = self._factories.get(name)
        if factory is None:
            raise ConfigError(
                f"agent.llm = {name!r}: there is no such model; present: {', '.join(self._factories)}, auto"
            )
        if (lack := factory.missing()) is not None:
            raise ConfigError(f"agent.llm = {name!r}: {lack}; set {factory.how}")
        provider = factory.make()
        return Choice(provider=provider, line=f"{provider.model} ({name}) answers")

    def spares(self, names: Iterable[str], first: Provider) -> Spares:
        """Return the named models but for `first`, in order: those to ask when it is lost (P2).

        One that lacks something is passed over and told of. Raises `ConfigError` for an unknown name.
        """
        providers: list[Provider] = []
        passed_over: list[str] = []
        for name in dict.fromkeys(names):
            factory = self._factories.get(name)
            if factory is None:
                raise ConfigError(f"agent.failover: there is no model {name!r}; present: {', '.join(self._factories)}")
            if name == first.name:
                continue
            if (lack := factory.missing()) is None:
                providers.append(factory.make())
            else:
                passed_over.append(f"agent.failover: {name!r} is passed over: {lack}; set {factory.how}")
        return Spares(providers=tuple(providers), passed_over=tuple(passed_over))

    def _choose_any(self) -> Choice:
        candidates = sorted((one for one in self._factories.values() if one.auto), key=lambda one: one.name == LOCAL)
        for factory in candidates:
            if factory.missing() is None:
                provider = factory.make()
                line = f"{provider.model} ({factory.name}) answers"
                others = " | ".join(one.how for one in candidates if one.name != LOCAL)
                better = f"; for another one set {others}" if factory.name == LOCAL and others else ""
                return Choice(provider=provider, line=line + better)
        lacks = "; ".join(f"{one.name}: {one.missing()} (set {one.how})" for one in candidates)
        raise ConfigError(f"agent.llm = 'auto': no model can answer. {lacks or 'none is registered'}")
