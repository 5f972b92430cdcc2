"""`kesoku-actors check`: is this configuration good?"""

from __future__ import annotations

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help


@click.command("check", epilog=exit_codes_help())
@config_option
def command(config: str | None) -> None:
    """Check a configuration and name every problem with its line and key."""
    settings = settings_of(config, {}, thorough=True)
    if settings.source is None:
        click.echo(
            f"ok: there is no configuration, the defaults hold; data lives in {settings.workspace.db_path.parent}"
        )
    else:
        click.echo(f"ok: {settings.source}")
