"""`kesoku-actors init`: a commented configuration to start from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kesoku_actors.cli.configuration import named_file
from kesoku_actors.cli.exit_codes import exit_codes_help
from kesoku_actors.invocation import program_name


@click.command("init", epilog=exit_codes_help())
@click.option(
    "-c", "--config", metavar="FILE", callback=named_file, help="Where to write it; else the user's data folder."
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def command(config: str | None, force: bool) -> None:
    """Write a commented configuration that holds every key with its default. Only its owner can read it."""
    from kesoku_actors.app.locations import CONFIG_NAME, data_folder, example_config, write_new

    path = data_folder() / CONFIG_NAME if config is None else Path(config)
    write_new(path, example_config(), replace=force)
    chat = f"{program_name(os.environ)} chat" + ("" if config is None else f" -c {config}")
    click.echo(f'wrote {path}; set a key in it, then try: {chat} "Say hello in one sentence."')
