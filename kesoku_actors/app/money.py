"""What models cost, as the settings say, and the bounds on it (B4).

A bound in money that cannot be kept is no bound: where one is set, a model without a price is refused. The local model
costs nothing unless the settings say so.
"""

from __future__ import annotations

from kesoku_actors.app.settings import Settings
from kesoku_actors.clock import World
from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.meter import Meter
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.prices import FREE, Price
from kesoku_actors.llm.registry import LOCAL
from kesoku_actors.session import DayPurse


def purse_of(settings: Settings, world: World) -> DayPurse | None:
    """Return the purse that all inferences are paid from; none where a day has no bound."""
    most = settings.agent.max_cost_per_day
    return None if most is None else DayPurse(most=most, world=world)


def gate_of(settings: Settings, provider: Provider, purse: DayPurse | None) -> ProviderGate:
    """Return the gate of a provider, with its meter. Raises `ConfigError` for one whose price has to be known."""
    check_price(settings, provider)
    return ProviderGate.of(provider, Meter(price=price_of(settings, provider), purse=purse))


def price_of(settings: Settings, provider: Provider) -> Price | None:
    """Return what the settings say of a model's price; its name counts in both ways of writing a version."""
    wanted = provider.model.replace("@", "-")
    for name, price in settings.prices.items():
        if name.replace("@", "-") == wanted:
            return Price(input=price.input, output=price.output, cached=price.cached, written=price.written)
    return FREE if provider.name == LOCAL else None


def check_price(settings: Settings, provider: Provider) -> None:
    """Raise `ConfigError` for a model without a price where a bound in money is set."""
    bounds = [key for key in ("max_turn_cost", "max_cost_per_day") if getattr(settings.agent, key) is not None]
    if bounds and price_of(settings, provider) is None:
        raise ConfigError(
            f"agent.{bounds[-1]} is set and the price of {provider.model!r} ({provider.name}) is not; "
            f'say what it costs: [prices."{provider.model}"] input = ..., output = ... (US dollars per million tokens)'
        )
