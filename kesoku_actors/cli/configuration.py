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

config_option = click.option(
    "-c",
    "--config",
    metavar="FILE",
    help="The configuration; else config.toml in the user's data folder, if there is one.",
)


def settings_of(config: str | None, overrides: Mapping[str, object]) -> Settings:
    """Return the settings and tell their warnings. Raises `ConfigError`."""
    from kesoku_actors.app.settings import load_settings

    path = None if config is None else Path(config)
    settings = load_settings(path, environ=os.environ, overrides=overrides)
    for warning in settings.warnings:
        tell("warning", warning)
    return settings
