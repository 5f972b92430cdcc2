"""`kesoku-actors trace`: a session as one HTML file that shows what happened in it."""

from __future__ import annotations

from pathlib import Path

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help


@click.command("trace", epilog=exit_codes_help())
@click.argument("session")
@config_option
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Only this turn, counted from 1.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Where to write it, "-" for standard output; else trace-SESSION.html in the current folder.',
)
@click.option("--json", is_flag=True, help="Print the same data as JSON.")
def command(session: str, config: str | None, turn: int | None, output: Path | None, json: bool) -> int:
    """Write what happened in SESSION as one HTML file: each turn on a timeline, and what the model read and said.

    SESSION is the beginning of an id, or "last". The file needs nothing else and loads nothing; only its owner can read
    it, and known secrets are masked in it.
    """
    if json and output is not None:
        raise click.UsageError("--json prints to standard output; leave -o out")
    settings = settings_of(config, {})
    from kesoku_actors.app.trace import TraceRequest, write_trace

    return write_trace(TraceRequest(settings=settings, session=session, turn=turn, output=output, json=json))
