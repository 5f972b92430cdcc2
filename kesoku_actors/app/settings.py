"""The settings of a run: every section of `config.toml`, and loading them.

* `settings_file` reads the file, `settings_lines` finds the line of a key
* `settings_environment` adds the environment and the command line
* `settings_decode` makes values, `settings_checks` judges what no single key can tell
* `settings_pending` refuses, or tells of, what no part of the program keeps yet

All problems are found in one run and raised together, one line each:
`config.toml:12: agent.lm: unknown key, did you mean 'llm'?`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, fields

from kesoku_actors.app.locations import CONFIG_NAME, data_folder
from kesoku_actors.app.sections import (
    Agent,
    Claude,
    Discord,
    Gemini,
    Local,
    ModelPrice,
    OpenAI,
    Scripted,
    Shell,
    SkillSettings,
    ToolSettings,
    Workspace,
)
from kesoku_actors.app.settings_checks import CHECKS, check_skill_roots, check_tool_roots, resolve_paths, show_key
from kesoku_actors.app.settings_decode import Problem, decode_section, settings_converter, unknown_key
from kesoku_actors.app.settings_environment import Composed, compose, log_level
from kesoku_actors.app.settings_file import ConfigFile, read_config_file
from kesoku_actors.app.settings_lines import KeyPath
from kesoku_actors.app.settings_pending import without_effect
from kesoku_actors.errors import ConfigError
from kesoku_actors.invocation import PROGRAM, program_name
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Settings:
    """Everything a run is told by its configuration. Paths are absolute."""

    workspace: Workspace = field(factory=Workspace)
    agent: Agent = field(factory=Agent)
    gemini: Gemini = field(factory=Gemini)
    claude: Claude = field(factory=Claude)
    openai: OpenAI = field(factory=OpenAI)
    local: Local = field(factory=Local)
    scripted: Scripted = field(factory=Scripted)
    tools: ToolSettings = field(factory=ToolSettings)
    shell: Shell = field(factory=Shell)
    skills: SkillSettings = field(factory=SkillSettings)
    discord: Discord = field(factory=Discord)
    prices: Mapping[str, ModelPrice] = field(factory=dict)
    """By the model's name."""
    source: Path | None = field(default=None, eq=False)
    """The file they came from, if there was one."""
    warnings: tuple[str, ...] = field(default=(), eq=False)
    """What a person should be told before the run, a line each."""
    program: str = field(default=PROGRAM, eq=False)
    """How a person calls this program, for hints."""
    log_level: int | None = field(default=None, eq=False)
    """What the log on standard error begins with, where a person asked for it."""
    unfinished: frozenset[str] = field(default=frozenset(), eq=False)
    """Sections in which something is still the sample's placeholder; a warning tells of it."""

    def secrets(self) -> tuple[str, ...]:
        """Return every secret the settings hold, to be masked wherever text leaves (T6)."""
        held = (self.gemini.api_key, self.claude.api_key, self.openai.api_key, self.discord.bot_token)
        return tuple(secret for secret in held if secret is not None)


SECTIONS: Final[Mapping[str, Any]] = {
    "workspace": Workspace,
    "agent": Agent,
    "gemini": Gemini,
    "claude": Claude,
    "openai": OpenAI,
    "local": Local,
    "scripted": Scripted,
    "tools": ToolSettings,
    "shell": Shell,
    "skills": SkillSettings,
    "discord": Discord,
}
"""Every section but `prices`, whose keys are names of models."""

_HOMES: Final = {key.name: f"{name}.{key.name}" for name, section in SECTIONS.items() for key in fields(section)}
_SECRET_KEYS: Final[tuple[KeyPath, ...]] = (
    ("gemini", "api_key"),
    ("claude", "api_key"),
    ("openai", "api_key"),
    ("discord", "bot_token"),
)


def load_settings(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    home: Path | None = None,
    further: Callable[[Settings], Iterable[Problem]] | None = None,
) -> Settings:
    """Return the settings of the file at `path`, with fallbacks from `environ`, then `overrides` (`"agent.llm"` ...).

    Without `path` the `config.toml` in `home` (default: the user's data folder) is read if there is one; if not, the
    defaults hold, and paths are relative to `home`. `further` may find problems that only the whole shows. Raises
    `ConfigError` with a line for each problem.
    """
    program, level = program_name(environ), log_level(environ)
    file = _find(path, home, program)
    folder = file.path.parent if file is not None else home or data_folder()
    composed = compose(file.data if file is not None else {}, environ, overrides or {})
    values, problems = _decode(composed, folder)
    if problems:
        raise ConfigError("\n".join(_lines(problems, file, composed)))
    idle = list(without_effect(values))
    warnings = (*_warnings(file, composed), *_lines(idle, file, composed))
    source, unfinished = None if file is None else file.path, frozenset(str(key[0]) for key in composed.placeholders)
    settings = Settings(
        **values, source=source, warnings=warnings, program=program, log_level=level, unfinished=unfinished
    )
    if further is not None and (problems := list(further(settings))):
        raise ConfigError("\n".join(_lines(problems, file, composed)))
    return settings


def _find(path: Path | None, home: Path | None, program: str) -> ConfigFile | None:
    if path is not None:
        return read_config_file(path, program)
    default = (home or data_folder()) / CONFIG_NAME
    return read_config_file(default, program) if os.path.lexists(default) else None


def _decode(composed: Composed, folder: Path) -> tuple[dict[str, Any], list[Problem]]:
    converter = settings_converter()
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    valid = (*SECTIONS, "prices")
    problems += [Problem((key,), unknown_key(key, valid, _HOMES)) for key in composed.data if key not in valid]
    for name, wanted in SECTIONS.items():
        section, found = decode_section(converter, composed.data.get(name, {}), wanted, (name,), _HOMES)
        if not found:
            section = resolve_paths(section, folder)
            found = list(CHECKS[name](section)) if name in CHECKS else []
        values[name], problems = section, problems + found
    if values["workspace"] is not None and values["skills"] is not None:
        problems += check_skill_roots(values["workspace"], values["skills"], folder)
        if values["tools"] is not None:
            problems += check_tool_roots(values["workspace"], values["tools"], values["skills"], folder)
    prices, found = decode_section(converter, composed.data.get("prices", {}), dict[str, ModelPrice], ("prices",), {})
    values["prices"] = prices
    return values, problems + found


def _lines(problems: list[Problem], file: ConfigFile | None, composed: Composed) -> list[str]:
    placed = []
    for problem in problems:
        line = None if file is None else file.lines.of(problem.path)
        source = composed.sources.get(problem.path[:2])
        if source is None and file is not None:
            source = f"{file.path}:{line}" if line else str(file.path)
        placed.append((line or 0, f"{source or 'settings'}: {show_key(problem.path)}: {problem.text}"))
    return [text for _, text in sorted(placed, key=lambda entry: entry[0])]


def _warnings(file: ConfigFile | None, composed: Composed) -> list[str]:
    if file is None:
        return []
    warnings = []
    if composed.placeholders:
        places = ", ".join(f"{show_key(key)} (line {file.lines.of(key)})" for key in composed.placeholders)
        warnings.append(f"{file.path}: still the sample's placeholder, taken as not set: {places}")
    in_file = [
        show_key(key)
        for key in _SECRET_KEYS
        if key not in composed.sources and composed.data.get(str(key[0]), {}).get(key[1]) is not None
    ]
    if in_file and file.readable_by_others:
        warnings.append(f"{file.path}: others can read {', '.join(in_file)}; run: chmod 600 {file.path}")
    return warnings
