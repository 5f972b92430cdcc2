"""`kesoku-actors demo`: a tour of what the program does, with real tools and a scripted model."""

from __future__ import annotations

from pathlib import Path

import click

from kesoku_actors.cli.exit_codes import exit_codes_help


@click.command("demo", epilog=exit_codes_help())
@click.option("--fast", is_flag=True, help="Without pauses to read; a few seconds.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="A new folder for what it makes; else a temporary one, which stays.",
)
def command(fast: bool, output: Path | None) -> int:
    """Show in two minutes how tools run in parallel, thought is interrupted, tools are not, and kill -9 loses nothing.

    The engine, its store and its tools are real; only the model is a script, so no key is needed. Every scene is
    checked: the exit code is 0 only if each did what it says. A trace of it all is written at the end.
    """
    from kesoku_actors.app.demo.show import DemoRequest, run_demo

    return run_demo(DemoRequest(folder=output, fast=fast))
