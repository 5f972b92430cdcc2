"""Which models this run can use: the settings' providers, registered through the door that plugins use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kesoku_actors.app.sections import Claude, Gemini, OpenAI
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.settings_decode import Problem
from kesoku_actors.app.settings_lines import KeyPath
from kesoku_actors.clock import World, real_world
from kesoku_actors.errors import ConfigError, UsageError
from kesoku_actors.llm.classify import Source
from kesoku_actors.llm.port import Provider
from kesoku_actors.llm.prices import SCENARIO
from kesoku_actors.llm.registry import AUTO, LOCAL, ProviderFactory, ProviderRegistry
from kesoku_actors.llm.weights import check_gguf
from kesoku_actors.log import Logger

if TYPE_CHECKING:
    from kesoku_actors.llm.local_options import LocalOptions

OWNER = "kesoku"
_GOOGLE_ACCOUNT = "the application default credentials of Google"


def provider_registry(settings: Settings, world: World, log: Logger) -> ProviderRegistry:
    """Return every provider that can be made here, in the order `auto` looks at them. Imports none of them."""
    registry = ProviderRegistry()
    for factory in (
        ProviderFactory(
            name="gemini",
            owner=OWNER,
            missing=partial(_gemini_lacks, settings.gemini),
            make=partial(_make_gemini, settings.gemini, world, log),
            how="GEMINI_API_KEY, or [gemini] api_key",
        ),
        ProviderFactory(
            name="claude",
            owner=OWNER,
            missing=partial(_claude_lacks, settings.claude),
            make=partial(_make_claude, settings.claude, world, log),
            how="ANTHROPIC_API_KEY, or [claude] api_key or project_id",
        ),
        ProviderFactory(
            name="openai",
            owner=OWNER,
            missing=partial(_openai_lacks, settings.openai),
            make=partial(_make_openai, settings.openai, world, log),
            how="OPENAI_API_KEY, or [openai] api_key or base_url",
        ),
        ProviderFactory(
            name=LOCAL,
            owner=OWNER,
            missing=partial(_local_lacks, settings),
            make=partial(_make_local, settings, world, log),
            how=f"[local] model_path, or run: {settings.program} model pull smollm2",
        ),
        ProviderFactory(
            name="scripted",
            owner=OWNER,
            missing=lambda: None,
            make=partial(_make_scripted, settings),
            how="[scripted] scenario_path",
            auto=False,
        ),
    ):
        registry.add(factory)
    return registry


def model_problems(settings: Settings) -> Iterator[Problem]:
    """Yield what keeps a chat with these settings from having its model. Imports no model and fetches nothing."""
    local, scenario, name = settings.local.model_path, settings.scripted.scenario_path, settings.agent.llm
    if local is not None and (lack := _refusal(check_gguf, local)):
        yield Problem(("local", "model_path"), lack)
    if scenario is not None:
        from kesoku_actors.llm.scenario_file import load_scenario

        if lack := _refusal(load_scenario, scenario):
            yield Problem(("scripted", "scenario_path"), lack)
    world = real_world()
    registry = provider_registry(settings, world, Logger(sink=lambda _entry: None, wall=world.clock.wall))
    factories = {factory.name: factory for factory in registry.factories()}
    if name not in (AUTO, *factories):
        yield Problem(("agent", "llm"), f"there is no model {name!r}; present: {', '.join(factories)}, {AUTO}")
    elif name in factories and name not in (LOCAL, *settings.unfinished) and (lack := factories[name].missing()):
        yield Problem(("agent", "llm"), f"{name!r} cannot answer: {lack}; set {factories[name].how}")
    for path, name in _further_names(settings):
        if name not in factories:
            yield Problem(path, f"there is no model {name!r}; present: {', '.join(factories)}")
    if settings.agent.max_turn_cost is not None or settings.agent.max_cost_per_day is not None:
        yield from _without_price(settings, factories)


def _without_price(settings: Settings, factories: Mapping[str, ProviderFactory]) -> Iterator[Problem]:
    """Yield the models that may answer and have no price, where a bound in money is set (B4)."""
    from kesoku_actors.app.money import check_price  # the store and all comes along

    first = settings.agent.llm
    if first == AUTO:
        first = next((each.name for each in factories.values() if each.auto and each.missing() is None), LOCAL)
    for name in dict.fromkeys((first, *settings.agent.failover)):
        factory = factories.get(name)
        if factory is None or name == LOCAL or factory.missing() is not None:
            continue
        try:
            check_price(settings, factory.make())
        except ConfigError as error:
            yield Problem(("agent",), str(error).removeprefix("agent."))


def idle_prices(settings: Settings) -> Iterator[str]:
    """Yield the prices of what no model here is called, a line each: with a slip in its name a price prices nothing."""
    sections = (settings.gemini, settings.claude, settings.openai)
    ours = (*(section.model_name for section in sections), local_options(settings).model_name, SCENARIO)
    known = {name.replace("@", "-"): name for name in ours}
    for name in settings.prices:
        wanted = name.replace("@", "-")
        if wanted not in known:
            near = difflib.get_close_matches(wanted, known, n=1)
            choice = f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(known.values())}"
            yield f'prices."{name}": no model of this configuration is called that; {choice}'


def _further_names(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Yield the other places where a model is named; one of these that lacks something is told of when it is needed."""
    yield from ((("agent", "failover", index), name) for index, name in enumerate(settings.agent.failover))
    for index, channels in enumerate(settings.discord.channels):
        if channels.llm not in (None, AUTO):
            yield ("discord", "channels", index, "llm"), channels.llm


def _refusal(take: Callable[[Path], object], path: Path) -> str | None:
    try:
        take(path)
    except UsageError as error:
        return str(error)
    return None


def _gemini_lacks(section: Gemini) -> str | None:
    if section.auth_mode == "api_key":
        return None if section.api_key else "no key is set"
    return None  # Google's credentials may name the project


def _make_gemini(section: Gemini, world: World, log: Logger) -> Provider:
    from kesoku_actors.llm.gemini import GeminiAccess, GeminiModel

    by_key = section.auth_mode == "api_key"
    return GeminiModel(
        source=Source(
            provider="gemini",
            key="[gemini] api_key, GEMINI_API_KEY or GOOGLE_API_KEY" if by_key else _GOOGLE_ACCOUNT,
            model="[gemini] model_name",
            address="[gemini] base_url",
        ),
        model=section.model_name,
        access=GeminiAccess(
            auth_mode=section.auth_mode,
            api_key=section.api_key,
            project_id=section.project_id,
            location=section.location,
            base_url=section.base_url,
        ),
        thinking_level=section.thinking_level,
        log=log,
        wall=world.clock.wall,
    )


def _claude_lacks(section: Claude) -> str | None:
    match section.auth_mode:
        case "api_key":
            return None if section.api_key else "no key is set"
        case "vertex":
            return None  # Google's credentials may name the project
        case None:
            return None if section.api_key or section.project_id else "no key is set"


def _make_claude(section: Claude, world: World, log: Logger) -> Provider:
    from kesoku_actors.llm.claude import ClaudeAccess, ClaudeModel

    auth_mode = section.auth_mode or ("api_key" if section.api_key else "vertex")
    by_key = auth_mode == "api_key"
    return ClaudeModel(
        source=Source(
            provider="claude",
            key="[claude] api_key or ANTHROPIC_API_KEY" if by_key else _GOOGLE_ACCOUNT,
            model="[claude] model_name",
            address="[claude] base_url",
        ),
        model=section.model_name.replace("@", "-") if by_key else section.model_name,
        access=ClaudeAccess(
            auth_mode=auth_mode,
            api_key=section.api_key,
            project_id=section.project_id,
            location=section.location,
            base_url=section.base_url,
        ),
        thinking_level=section.thinking_level,
        log=log,
        wall=world.clock.wall,
    )


def _openai_lacks(section: OpenAI) -> str | None:
    if section.api_key is None and section.base_url == OpenAI().base_url:
        return "no key is set"
    return None


def _make_openai(section: OpenAI, world: World, log: Logger) -> Provider:
    from kesoku_actors.llm.openai import OpenAIModel

    return OpenAIModel(
        source=Source(
            provider="openai",
            key="[openai] api_key or OPENAI_API_KEY",
            model="[openai] model_name",
            address="[openai] base_url",
        ),
        model=section.model_name,
        base_url=section.base_url,
        api_key=section.api_key,
        context_tokens=section.context_size,
        log=log,
        wall=world.clock.wall,
    )


def _local_lacks(settings: Settings) -> str | None:
    from kesoku_actors.llm.local_options import why_not

    return why_not(local_options(settings))


def _make_local(settings: Settings, world: World, log: Logger) -> Provider:
    from kesoku_actors.llm.local import LocalModel

    return LocalModel(local_options(settings), log=log, wall=world.clock.wall)


def _make_scripted(settings: Settings) -> Provider:
    from kesoku_actors.llm.scenario_file import DEMO, load_scenario
    from kesoku_actors.llm.scripted import ScriptedModel

    return ScriptedModel(load_scenario(settings.scripted.scenario_path or DEMO))


def local_options(settings: Settings) -> LocalOptions:
    """Return what the embedded model is given."""
    from kesoku_actors.llm.local_options import LocalOptions

    local = settings.local
    return LocalOptions(
        model_path=local.model_path,
        context_size=local.context_size,
        threads=local.threads,
        tools=local.tools,
        program=settings.program,
    )
