"""What every chat does before its daemon runs: choose the model, set up the log, tell a person what to know."""

from __future__ import annotations

import os
import sys

from attrs import frozen

from kesoku_actors.actors import SystemFailed
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.plan import tool_warnings
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.weights import fetch_if_needed
from kesoku_actors.clock import World, real_world
from kesoku_actors.errors import KesokuError
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.registry import Choice, ProviderRegistry
from kesoku_actors.log import ERROR, WARNING, Entry, Logger, Sink, mask_secrets, stream_sink, write_if_open


@frozen(kw_only=True)
class Prelude:
    """A chat that can begin."""

    settings: Settings
    world: World
    log: Logger
    registry: ProviderRegistry
    provider: Provider
    """The model that answers."""

    def log_actors(self, event: str, /, **fields: object) -> None:
        """Log what the actor kernel says; what crashed is told, unless the program ends with it as its own error."""
        match fields:
            case {"path": path, "error": BaseException() as error} if not has_leaf(error, HOPELESS):
                causes = [" ".join(f"{type(leaf).__name__}: {leaf}".split()) for leaf in leaves(error)]
                self.log.error("a part of the program crashed", path=path, error="; ".join(causes))
            case _:
                self.log.debug(event, **fields)


def prepare(settings: Settings, sink: Sink, level: int) -> Prelude:
    """Choose the model and say which one answers. Raises `ConfigError` and what fetching a model raises."""
    world = real_world()
    log = Logger(sink=sink, wall=world.clock.wall, level=level)
    registry = provider_registry(settings, world, log)
    fetch_if_needed(settings, registry)
    choice = registry.choose(settings.agent.llm)
    _tell_first(settings, choice)
    return Prelude(settings=settings, world=world, log=log, registry=registry, provider=choice.provider)


def warm(provider: Provider) -> None:
    """Let a model that takes its time begin to start."""
    if provider.name != "local":
        return
    from kesoku_actors.llm.local import LocalModel

    assert isinstance(provider, LocalModel)
    provider.warm()


def stderr_log(settings: Settings, is_tty: bool) -> tuple[Sink, int]:
    """Return a sink on standard error and its level: on a terminal only errors, which would stand in the talk."""
    mask = mask_secrets(settings.secrets())
    sink = stream_sink(sys.stderr, mask=mask, environ=os.environ) if sys.stderr is not None else _nowhere
    return sink, ERROR if is_tty else WARNING


def most_telling(failed: SystemFailed) -> KesokuError:
    """Return the error that says most: one of a known kind among the leaves."""
    known = [leaf for leaf in failed.leaves if isinstance(leaf, KesokuError)]
    return known[0] if known else failed


def _nowhere(_entry: Entry) -> None:
    """Standard error was closed before the program began."""


def _tell_first(settings: Settings, choice: Choice) -> None:
    warnings = tool_warnings(settings) if choice.provider.supports_tools else ()
    lines = [*(f"warning: {line}" for line in warnings), choice.line]
    write_if_open(sys.stderr, "".join(f"kesoku-actors: {line}\n" for line in lines))
