"""From settings to the plan of a run: what every entry point (one-shot chat, daemon) has in common."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import evolve

from kesoku_actors.actors import Cell, ChildSpec
from kesoku_actors.app.approval import approval_rules, check_rules
from kesoku_actors.app.house import EdgesFor, Plan
from kesoku_actors.app.money import gate_of, purse_of
from kesoku_actors.app.own_tools import add_own_tools
from kesoku_actors.app.search import add_search_tool, search_over
from kesoku_actors.app.sections import Shell
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.shelter import UNSHELTERED, Shelter
from kesoku_actors.app.skills import add_skill_tools, skill_layer, skill_shelf
from kesoku_actors.app.workspaces import SessionFolders
from kesoku_actors.clock import World
from kesoku_actors.llm.port import Provider
from kesoku_actors.log import Logger, mask_secrets
from kesoku_actors.prompt import PromptLayers, built_in_layers
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Brain, Remit, TurnLimits
from kesoku_actors.skills import Shelf
from kesoku_actors.store import Access, DeadCall, Durability, Rules, StoreOptions
from kesoku_actors.tools import ToolOptions, ToolRegistry
from kesoku_actors.tools.files import FileTools, Root
from kesoku_actors.tools.modules import OwnTools
from kesoku_actors.tools.shell import (
    MACHINE,
    Kernel,
    Leftovers,
    ShellOptions,
    ShellPolicy,
    Survivors,
    add_shell_tool,
    clean_environment,
    end_survivors,
    warnings,
)
from kesoku_actors.tools.shell.patterns import load
from kesoku_actors.turnlog import TurnLogOptions

CLOSE_S: Final = 2.0
"""What closing a client's connections may take."""


WRITE: Final = ("write_file", "edit_file")
"""The file tools that change something, and so are risky (T7)."""


def plan_run(
    settings: Settings,
    provider: Provider,
    *,
    world: World,
    log: Logger,
    channels: Remit | tuple[Channel, ...] | None,
    edges: EdgesFor,
    probe: Callable[[str], None],
    shelter: Shelter = UNSHELTERED,
    own_tools: OwnTools | None = None,
    can_ask: bool = True,
    spares: Sequence[Provider] = (),
    access: Access | None = None,
    kernel: Kernel = MACHINE,
) -> Plan:
    """Return the plan of a run in which `provider` answers everywhere and commands run in `shelter`.

    `spares` are asked, in order, when it is lost (P2). `own_tools` are the person's, loaded before the run; `can_ask`:
    whether somebody is there who can say yes to a call (T7). `access` is how the database is reached, where it is not
    as the settings have it; `kernel` is the system on which commands run. Raises `ConfigError` for a rule of a tool
    that is not there, unless it may be one that could not be loaded.
    """
    purse = purse_of(settings, world)
    brain, *others = (Brain(provider=each, gate=gate_of(settings, each, purse)) for each in (provider, *spares))
    agent, shelf = settings.agent, skill_shelf(settings)
    leftovers = Leftovers(kernel=kernel, outlived=lambda found: _tell_of(found, log))
    store = store_options(settings, log, probe, access)
    registry = tool_registry(settings, shelf, shelter, leftovers, kernel)
    search = search_over(store, log)
    add_search_tool(search, registry)
    if own_tools is not None:  # behind ours, whose names they cannot take
        add_own_tools(own_tools, registry, log)
    if own_tools is None or not own_tools.problems:
        check_rules(settings, registry)
    return Plan(
        store=store,
        sessions_dir=settings.workspace.sessions_dir,
        folders=SessionFolders(sessions_dir=settings.workspace.sessions_dir),
        probe=probe,
        world=world,
        log=log,
        brains=(brain, *others),
        brain_for=lambda _channel: brain,
        failover=tuple(others),
        purse=purse,
        registry=registry,
        layers=prompt_layers(settings, shelf),
        limits=TurnLimits(
            max_steps=agent.max_steps,
            max_turn_s=agent.max_turn_seconds,
            max_turn_tokens=agent.max_turn_tokens,
            max_turn_cost=agent.max_turn_cost,
        ),
        tool_options=ToolOptions(
            deadline_s=settings.shell.timeout_s,
            output_chars=settings.shell.output_chars,
            mask=mask_secrets(settings.secrets()),
            approval=approval_rules(settings, can_ask=can_ask),
            max_jobs=settings.tools.max_jobs,
            tell=log.warning,
            raised=lambda tool, error: log.info("a tool raised", tool=tool, cause=error),
        ),
        resume_within_s=agent.resume_within_s,
        parallel_tools=agent.parallel_tools,
        channels=channels,
        end_survivors=lambda calls: _end_survivors(calls, log, kernel),
        leftovers=leftovers,
        edges=edges,
        provider_children=(*provider_children(provider), *(child for each in spares for child in spare_children(each))),
        turn_log=turn_log_options(settings),
        search=search,
        may_title=may_title if agent.model_titles else None,
    )


def turn_log_options(settings: Settings) -> TurnLogOptions | None:
    """Return how the run's turn log is kept; none when it is not."""
    agent = settings.agent
    if not agent.turn_log:
        return None
    return TurnLogOptions(mask=mask_secrets(settings.secrets()), keep=agent.turn_log_files)


def may_title(brain: Brain) -> bool:
    """Tell whether a model is worth asking for a title: a small one finds none, a scripted one reads from a page."""
    return brain.provider.name not in ("local", "scripted")


def store_options(
    settings: Settings, log: Logger, probe: Callable[[str], None], access: Access | None = None
) -> StoreOptions:
    """Return how the run's store is opened; `access` is how its file is reached, where that is not as usual."""
    options = StoreOptions(
        path=settings.workspace.db_path,
        durability=Durability(settings.workspace.durability),
        rules=Rules(max_waiting=settings.agent.max_waiting, default_mode=settings.agent.busy_mode),
        warn=log.error,  # a terminal shows nothing less
        probe=probe,
    )
    return options if access is None else evolve(options, access=access)


def prompt_layers(settings: Settings, shelf: Shelf) -> PromptLayers:
    """Return the layers of the run's prompt; plugins may add theirs."""
    zone = None
    if settings.agent.time_zone is not None:
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(settings.agent.time_zone)
    layers = PromptLayers(built_in_layers(identity=settings.agent.system_prompt, zone=zone))
    layers.add(skill_layer(shelf))
    return layers


def tool_registry(
    settings: Settings, shelf: Shelf, shelter: Shelter, leftovers: Leftovers | None = None, kernel: Kernel = MACHINE
) -> ToolRegistry:
    """Return the tools of the run; `leftovers` hears of commands that left something running."""
    registry = ToolRegistry()
    if settings.shell.enabled:
        environment = clean_environment(
            os.environ, {name: os.environ[name] for name in settings.shell.env if name in os.environ}
        )
        options = ShellOptions(
            policy=shell_policy(settings.shell),
            environment=environment,
            read_only=shelf.roots,
            sandbox=shelter.sandbox,
            leftovers=leftovers or Leftovers(),
            kernel=kernel,
        )
        add_shell_tool(registry, options, owner="kesoku")
    add_skill_tools(shelf, registry)
    if settings.tools.files:
        for tool in file_tools(settings, shelf).all():
            registry.add(tool, owner="kesoku", risky=tool.__name__ in WRITE)
    return registry


def file_tools(settings: Settings, shelf: Shelf) -> FileTools:
    """Return the file tools over the folders of the settings; skills may be read (T3)."""
    writable = [Root(path=path) for path in settings.tools.roots]
    readable = [Root(path=path, is_writable=False) for path in (*settings.tools.read_only_roots, *shelf.roots)]
    return FileTools(roots=(*writable, *readable), chars=settings.shell.output_chars)


def shell_policy(shell: Shell) -> ShellPolicy:
    """Return the rules of the shell tool. Raises `PatternRefused`."""
    return ShellPolicy(
        mode=shell.mode,
        use_shell=shell.use_shell,
        allowlist_patterns=shell.allowlist_patterns,
        blocklist_patterns=shell.blocklist_patterns,
        forbidden_patterns=tuple(load(each.pattern, each.message) for each in shell.forbidden_patterns),
    )


def tool_warnings(settings: Settings, shelter: Shelter) -> tuple[str, ...]:
    """Return what a person should know of the tools before the run (T2)."""
    if not settings.shell.enabled:
        return ()
    unsheltered = "shell: there is no sandbox, a command runs with all rights of this user"
    missing = () if shelter.missing is None else (f"{unsheltered}: {shelter.missing}",)
    policy = evolve(shell_policy(settings.shell), sandboxed=shelter.sandbox is not None)
    return (*missing, *warnings(policy))


def provider_children(provider: Provider) -> tuple[ChildSpec, ...]:
    """Return the actors that a provider needs beside its gate. What it imports is imported already by the provider."""
    match provider.name:
        case "local":
            from kesoku_actors.llm.local import LocalModel, local_actor

            assert isinstance(provider, LocalModel)
            server = partial(local_actor, model=provider)
            return (ChildSpec(id="local-server", start=server, mailbox=provider.mailbox),)
        case "gemini":
            from kesoku_actors.llm.gemini import GeminiModel

            assert isinstance(provider, GeminiModel)
            client = partial(_keep_open, open=provider.warm, close=provider.aclose)
            return (ChildSpec(id="gemini-client", start=client),)
        case "claude":
            from kesoku_actors.llm.claude import ClaudeModel

            assert isinstance(provider, ClaudeModel)
            client = partial(_keep_open, open=provider.warm, close=provider.aclose)
            return (ChildSpec(id="claude-client", start=client),)
        case "openai":
            from kesoku_actors.llm.openai import OpenAIModel

            assert isinstance(provider, OpenAIModel)
            return (ChildSpec(id="openai-client", start=partial(_close_at_the_end, close=provider.aclose)),)
        case _:
            return ()


def spare_children(provider: Provider) -> tuple[ChildSpec, ...]:
    """Return the actors of a provider that may never be asked: its client is opened by its first inference."""
    match provider.name:
        case "gemini":
            from kesoku_actors.llm.gemini import GeminiModel

            assert isinstance(provider, GeminiModel)
            return (ChildSpec(id="gemini-client", start=partial(_close_at_the_end, close=provider.aclose)),)
        case "claude":
            from kesoku_actors.llm.claude import ClaudeModel

            assert isinstance(provider, ClaudeModel)
            return (ChildSpec(id="claude-client", start=partial(_close_at_the_end, close=provider.aclose)),)
        case _:
            return provider_children(provider)


async def _keep_open(
    cell: Cell[None], *, open: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]
) -> None:
    """Open a client before anybody may need it, and keep it open for as long as the run."""
    await open()
    await _close_at_the_end(cell, close=close)


async def _close_at_the_end(cell: Cell[None], *, close: Callable[[], Awaitable[None]]) -> None:
    """Keep a client's connections open for as long as the run."""
    cell.started()
    try:
        await cell.stopping.wait()
    finally:
        with trio.move_on_after(CLOSE_S, shield=True):
            await close()


async def _end_survivors(calls: Sequence[DeadCall], log: Logger, kernel: Kernel) -> None:
    for found in await end_survivors(calls, kernel=kernel):
        _tell_of(found, log)


def _tell_of(found: Survivors, log: Logger) -> None:
    log.warning(
        "processes of a call outlived the program",
        call=found.call_id,
        ended=[process.pid for process in found.ended],
        left=[process.pid for process in found.left],
    )
