"""What every chat does before its daemon runs: choose the model, set up the log, tell a person what to know."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Final

from attrs import evolve

from kesoku_actors.actors import ActorError, SystemFailed, leaves
from kesoku_actors.app.locations import exposed
from kesoku_actors.app.models import provider_registry
from kesoku_actors.app.money import check_price
from kesoku_actors.app.own_tools import load_own_tools
from kesoku_actors.app.plan import tool_warnings
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.shelter import Shelter, find_shelter
from kesoku_actors.app.skills import skill_warnings
from kesoku_actors.app.weights import fetch_if_needed
from kesoku_actors.app.workspaces import prepare_sessions_dir
from kesoku_actors.clock import World, real_world
from kesoku_actors.errors import ConfigError, KesokuError
from kesoku_actors.llm.port import Provider, ProviderError
from kesoku_actors.llm.registry import Choice, ProviderRegistry
from kesoku_actors.log import ERROR, WARNING, Entry, Logger, Sink, mask_secrets, stream_sink, write_if_open
from kesoku_actors.store import StoreFault
from kesoku_actors.tools.modules import OwnTools
from kesoku_actors.tools.shell import hide_environment
from kesoku_actors.values import frozen

_TOLD: Final = (StoreFault, ActorError, ProviderError)
_NARROWEST: Final = 20


@frozen(kw_only=True)
class Prelude:
    """A chat that can begin."""

    settings: Settings
    world: World
    log: Logger
    registry: ProviderRegistry
    provider: Provider
    """The model that answers."""
    spares: tuple[Provider, ...]
    """Those to ask, in order, when it is lost."""
    shelter: Shelter
    """Where commands run."""
    own_tools: OwnTools
    """What the person's modules gave."""

    def log_actors(self, event: str, /, **fields: object) -> None:
        """Log what the actor kernel says; a crash is told with its cause, once.

        What the store refuses is told by who asked for it, and a stopped actor brings its askers down with it.
        """
        error = fields.get("error")
        causes = [each for each in leaves(error) if not isinstance(each, _TOLD)] if isinstance(error, Exception) else []
        if event != "child_crashed" or not causes:
            self.log.debug(event, **fields)
            return
        told = "; ".join(" ".join(f"{type(cause).__name__}: {cause}".split()) for cause in causes)
        self.log.error("a part of the program crashed", path=fields.get("path"), error=told)


def prepare(settings: Settings, sink: Sink, level: int, chosen: str | None = None) -> Prelude:
    """Hide what we were given, make the folder of the sessions, choose the model and say which one answers.

    `chosen` is the model that a person chose for the session; one that cannot answer any more is told of. Raises
    `ConfigError`, `Unwritable` and what fetching a model raises.
    """
    hide_environment()  # before there is a thread or anything else that runs beside us (T2)
    shelter = find_shelter(settings)
    prepare_sessions_dir(settings.workspace.sessions_dir)
    world = real_world()
    log = Logger(sink=sink, wall=world.clock.wall, level=level)
    registry = provider_registry(settings, world, log)
    choice = None if chosen is None else _chosen_before(settings, registry, chosen)
    if choice is None:
        fetch_if_needed(settings, registry)
        choice = registry.choose(settings.agent.llm)
    spares = registry.spares(settings.agent.failover, choice.provider)
    for provider in (choice.provider, *spares.providers):
        check_price(settings, provider)
    own_tools = load_own_tools(settings)
    tell(f"warning: tools: {problem}" for problem in own_tools.problems)
    tell(f"warning: {line}" for line in spares.passed_over)
    _tell_first(settings, choice, shelter)
    return Prelude(
        settings=settings,
        world=world,
        log=log,
        registry=registry,
        provider=choice.provider,
        spares=spares.providers,
        shelter=shelter,
        own_tools=own_tools,
    )


def _chosen_before(settings: Settings, registry: ProviderRegistry, name: str) -> Choice | None:
    try:
        choice = registry.choose(name)
        check_price(settings, choice.provider)
    except ConfigError as error:
        tell([f"warning: the model chosen in this session cannot answer: {error}"])
        return None
    return evolve(choice, line=f"{choice.line}, as it was chosen in this session with /llm")


def warm(provider: Provider) -> None:
    """Let a model that takes its time begin to start."""
    if provider.name != "local":
        return
    from kesoku_actors.llm.local import LocalModel

    assert isinstance(provider, LocalModel)
    provider.warm()


def stderr_log(settings: Settings, is_tty: bool) -> tuple[Sink, int]:
    """Return a sink on standard error and its level: what was asked for, else on a terminal only errors, as
    the rest would stand in the talk."""
    mask = mask_secrets(settings.secrets())
    sink = stream_sink(sys.stderr, mask=mask, environ=os.environ) if sys.stderr is not None else _nowhere
    return sink, settings.log_level or (ERROR if is_tty else WARNING)


def most_telling(failed: SystemFailed) -> KesokuError:
    """Return the error that says most: one of a known kind among the leaves."""
    known = [leaf for leaf in failed.leaves if isinstance(leaf, KesokuError)]
    return known[0] if known else failed


def _nowhere(_entry: Entry) -> None:
    """Standard error was closed before the program began."""


def _tell_first(settings: Settings, choice: Choice, shelter: Shelter) -> None:
    workspace = settings.workspace
    tools = (*tool_warnings(settings, shelter), *skill_warnings(settings)) if choice.provider.supports_tools else ()
    # A folder of other things may well be read by all; but who writes in it can replace the database.
    places = ((workspace.db_path, 0o077), (workspace.db_path.parent, 0o022), (workspace.sessions_dir, 0o077))
    open_places = (warning for path, rights in places if (warning := exposed(path, rights)) is not None)
    tell([*(f"warning: {line}" for line in (*tools, *open_places)), choice.line])


def tell(lines: Iterable[str]) -> None:
    """Write lines to standard error, broken between words where it is a terminal."""
    columns = shutil.get_terminal_size().columns if sys.stderr is not None and sys.stderr.isatty() else sys.maxsize
    width = max(columns - 1, _NARROWEST)
    named = (f"kesoku-actors: {line}" for line in lines)
    wrapped = (textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in named)
    write_if_open(sys.stderr, "".join(f"{line}\n" for line in wrapped))
