"""The option `-c`, and the settings it leads to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kesoku_actors.cli.run import tell

if TYPE_CHECKING:  # attrs and cattrs would cost every help text 0.1 s
    from kesoku_actors.app.settings import Settings


def named_file(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Refuse a name that is empty, as a variable that is not set leaves it."""
    if value == "":
        raise click.UsageError("-c needs the name of a file, and was given an empty one")
    return value


config_option = click.option(
    "-c",
    "--config",
    metavar="FILE",
    callback=named_file,
    help="The configuration; else config.toml in the user's data folder, if there is one.",
)


def settings_of(config: str | None, overrides: Mapping[str, object], *, thorough: bool = False) -> Settings:
    """Return the settings and tell their warnings. Raises `ConfigError`; with `thorough` also for a model that a chat
    could not have."""
    from kesoku_actors.app.settings import load_settings

    path = None if config is None else Path(config)
    if thorough:
        from kesoku_actors.app.models import model_problems

        settings = load_settings(path, environ=os.environ, overrides=overrides, further=model_problems)
    else:
        settings = load_settings(path, environ=os.environ, overrides=overrides)
    for warning in settings.warnings:
        tell("warning", warning)
    return settings
