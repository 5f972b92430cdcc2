"""What the environment and the command line add to a configuration file. Pure.

A key in the file wins over the environment, the command line over both. A value that is still the placeholder of the
original sample counts as not set, so that the sample works unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from kesoku_actors.app.settings_lines import KeyPath
from kesoku_actors.errors import ConfigError
from kesoku_actors.log import LEVELS
from kesoku_actors.values import frozen

FALLBACKS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("gemini", "api_key"): ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ("gemini", "project_id"): ("GOOGLE_CLOUD_PROJECT",),
    ("gemini", "location"): ("GOOGLE_CLOUD_LOCATION",),
    ("claude", "api_key"): ("ANTHROPIC_API_KEY",),
    ("claude", "project_id"): ("GOOGLE_CLOUD_PROJECT",),
    ("openai", "api_key"): ("OPENAI_API_KEY",),
    ("discord", "bot_token"): ("DISCORD_TOKEN",),
}
"""Tried in order. Claude's location has none: its models are in fewer places than the rest of the project."""

PLACEHOLDERS: Final = ("your-api-key", "gcp-project-id", "discord-bot-token")


LOG: Final = "KESOKU_LOG"
"""Names the level of the log on standard error."""


@frozen(kw_only=True)
class Composed:
    """The data to decode, and what did not come from the file."""

    data: Mapping[str, Any]
    sources: Mapping[KeyPath, str]
    """Where a value came from that is not in the file, in words."""
    placeholders: tuple[KeyPath, ...]
    """Keys whose placeholder was dropped."""


def compose(file: Mapping[str, Any], environ: Mapping[str, str], overrides: Mapping[str, object]) -> Composed:
    """Return `file` with what `environ` and `overrides` (dotted key to value) add. `file` is not changed."""
    data = copy.deepcopy(dict(file))
    sources: dict[KeyPath, str] = {}
    placeholders = _drop_placeholders(data)
    for path, names in FALLBACKS.items():
        section = data.setdefault(path[0], {})
        if not isinstance(section, dict) or path[1] in section:
            continue
        for name in names:
            if found := environ.get(name, "").strip():
                section[path[1]] = found
                sources[path] = f"environment variable {name}"
                break
    for dotted, value in overrides.items():
        name, key = dotted.split(".")
        section = data.setdefault(name, {})
        if isinstance(section, dict):
            section[key] = value
            sources[name, key] = "command line"
    return Composed(data=data, sources=sources, placeholders=placeholders)


def log_level(environ: Mapping[str, str]) -> int | None:
    """Return the level of the log that was asked for, if one was. Raises `ConfigError`."""
    name = environ.get(LOG, "").strip().lower()
    if name and name not in LEVELS:
        raise ConfigError(f"environment variable {LOG}: there is no level {name!r}; there are {', '.join(LEVELS)}")
    return LEVELS.get(name)


def _drop_placeholders(data: Mapping[str, Any]) -> tuple[KeyPath, ...]:
    dropped = []
    for path in FALLBACKS:
        section = data.get(path[0])
        if isinstance(section, dict) and section.get(path[1]) in PLACEHOLDERS:
            del section[path[1]]
            dropped.append(path)
    return tuple(dropped)
