"""What only trying shows of a configuration: the modules of one's own, rules for tools, the sandbox."""

from __future__ import annotations

from kesoku_actors.app.models import idle_prices
from kesoku_actors.app.settings import Settings
from kesoku_actors.app.settings_decode import unknown_key
from kesoku_actors.app.shelter import find_shelter
from kesoku_actors.app.tool_listing import listed_tools
from kesoku_actors.errors import ConfigError
from kesoku_actors.tools import JOB_TOOLS
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Trial:
    """What a start would tell."""

    warnings: tuple[str, ...]
    shell: str
    """Where commands run, and why there is no sandbox."""


def tried(settings: Settings) -> Trial:
    """Try what a start would. Raises `ConfigError` for what it would refuse."""
    warnings = tuple(idle_prices(settings))
    if settings.tools.modules or settings.tools.rules:
        tools, problems = listed_tools(settings)
        warnings += tuple(f"tools: {problem}" for problem in problems)
        names = (*(tool.name for tool in tools), *JOB_TOOLS)
        wrong = [name for name in settings.tools.rules if name not in names]
        if wrong:
            raise ConfigError("\n".join(f"tools.rules.{name}: {unknown_key(name, names, {})}" for name in wrong))
    shelter = find_shelter(settings)
    return Trial(warnings=warnings, shell=": ".join(filter(None, (shelter.told, shelter.missing))))
