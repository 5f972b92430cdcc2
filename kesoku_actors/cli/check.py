"""`kesoku-actors check`: is this configuration good? With a target: does this trio program hold in every schedule?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kesoku_actors.cli.configuration import config_option, settings_of
from kesoku_actors.cli.exit_codes import exit_codes_help
from kesoku_actors.cli.run import tell

_OF_A_PROGRAM = """\b
With FILE_OR_MODULE the exit code is of the verdict:
    0  holds: everything that was asked for was run, and nothing failed
    1  a counterexample was found
    2  the program is not deterministic, or the command was not understood
    3  the installed trio is not one that the harness knows
    4  inconclusive: a budget ended first, or runs did not end

"""


_DEFAULTS = {"jobs": 1, "step": False, "mermaid": False, "as_json": False}


@click.command("check", epilog=_OF_A_PROGRAM + exit_codes_help())
@click.argument("target", metavar="[FILE_OR_MODULE[:TEST]]", required=False)
@config_option
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help="How many schedules to run; else 2000.")
@click.option("--seconds", type=click.FloatRange(min=0), metavar="S", help="CPU time after which to stop, undecided.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, metavar="J", help="In how many processes.")
@click.option("--strategy", metavar="NAME", help="portfolio, strict, shuffle, random, pct3, pos, surw, hold2 ...")
@click.option(
    "--certify", type=click.IntRange(0, 9), metavar="B", help="Run all schedules with at most B holds or ticks."
)
@click.option("--seed", type=int, metavar="N", help="Equal seeds give equal schedules.")
@click.option("--replay", metavar="TOKEN", help="Play the schedule of a counterexample.")
@click.option("--step", is_flag=True, help="With --replay: show the run step by step.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a diagram.")
@click.option("--mermaid", is_flag=True, help="Print the counterexample as a mermaid diagram.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, one line for each program.")
@click.option("--shard", metavar="I/N", help="Run one share of N of the work.")
@click.option(
    "--resume", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Go on where FILE stopped."
)
def command(target: str | None, config: str | None, **options: Any) -> None:
    """Check a configuration and name every problem with its line and key.

    With FILE_OR_MODULE: explore the schedules of a trio program instead. Programs are the functions with @explore, else
    every `async def test_...` and `main`.
    """
    if target is not None:
        _explore(target, config, options)
        return
    given = [name for name, value in options.items() if value is not None and value is not _DEFAULTS.get(name)]
    if given:
        raise click.UsageError(f"--{given[0].replace('as_', '')} is for a program: name a FILE_OR_MODULE")
    settings = settings_of(config, {}, thorough=True)
    from kesoku_actors.app.trial import tried

    for warning in tried(settings):
        tell("warning", warning)
    if settings.source is None:
        click.echo(
            f"ok: there is no configuration, the defaults hold; data lives in {settings.workspace.db_path.parent}"
        )
    else:
        click.echo(f"ok: {settings.source}")


def _explore(target: str, config: str | None, options: dict[str, Any]) -> None:
    """Explore a program, and end with the exit code of its verdict."""
    from kesoku_actors.harness.cli import Wanted, check, parse_shard
    from kesoku_actors.harness.errors import HarnessError

    if config is not None:
        raise click.UsageError("-c is for a configuration, and a program was named")
    shard, as_json = options.pop("shard"), options.pop("as_json")
    try:
        share = (0, 1) if shard is None else parse_shard(shard)
        code = check(Wanted(target=target, json=as_json, shard=share, **options), sys.stdout, sys.stderr)
    except HarnessError as error:
        raise click.UsageError(str(error)) from None
    raise click.exceptions.Exit(code)
