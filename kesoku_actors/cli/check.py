"""`kesoku-actors check`: is this configuration good? With a target: does this trio program hold in every schedule?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
With --zoo:
    0  every seed of every strategy found every bug
    2  the command was not understood
    4  some did not

"""


_DEFAULTS = {"jobs": 1, "step": False, "mermaid": False, "as_json": False, "zoo": False, "strategy": (), "bug": ()}
_OF_THE_ZOO = ("seeds", "sample", "bug")
_OF_PROGRAMS = ("certify", "seed", "replay", "step", "html", "mermaid", "shard", "resume")


@click.command("check", epilog=_OF_A_PROGRAM + exit_codes_help())
@click.argument("target", metavar="[FILE_OR_MODULE[:TEST]]", required=False)
@config_option
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help="How many schedules to run; else 2000.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    metavar="S",
    help="CPU time after which to stop, undecided; 60 where nothing says how much to run.",
)
@click.option("--jobs", type=click.IntRange(1, 256), default=1, metavar="J", help="In how many processes.")
@click.option(
    "--strategy",
    multiple=True,
    metavar="NAME",
    help="portfolio, strict, shuffle, random, pct3, pos, surw, hold2 ..., or one of your own: FILE.py:NAME. "
    "With --zoo several can be given.",
)
@click.option(
    "--certify", type=click.IntRange(0, 9), metavar="B", help="Run all schedules with at most B holds, ticks or faults."
)
@click.option("--seed", type=int, metavar="N", help="Equal seeds give equal schedules.")
@click.option("--replay", metavar="TOKEN", help="Play a counterexample: its token, or a FILE of one.")
@click.option("--step", is_flag=True, help="With --replay: show the run step by step.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a diagram.")
@click.option("--mermaid", is_flag=True, help="Print the counterexample as a mermaid diagram.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, one line for each program.")
@click.option("--shard", metavar="I/N", help="Run one share of N of the work.")
@click.option(
    "--resume", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Go on where FILE stopped."
)
@click.option("--zoo", is_flag=True, help="Score strategies by the planted bugs of the zoo, and print a table.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="With --zoo: how many seeds; else 3.")
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --zoo: schedules of each seed for the rate; else 100.",
)
@click.option(
    "--bug", multiple=True, metavar="NAME", help="With --zoo: only this one, or only easy, normal or hard ones."
)
def command(target: str | None, config: str | None, **options: Any) -> None:
    """Check a configuration and name every problem with its line and key.

    With FILE_OR_MODULE: explore the schedules of a trio program instead. Programs are the functions with @explore, else
    every `async def test_...` and `main`.

    With --zoo: score strategies by seventy small programs with planted bugs. A strategy of your own is a class with two
    methods, `begin` and `choose`.
    """
    given = [name for name, value in options.items() if value is not None and value != _DEFAULTS.get(name)]
    if options.pop("zoo"):
        _score(target, config, given, options)
        return
    if unfit := [name for name in given if name in _OF_THE_ZOO]:
        raise click.UsageError(f"--{unfit[0]} goes with --zoo")
    if target is not None:
        _explore(target, config, options)
        return
    if given:
        raise click.UsageError(f"--{given[0].replace('as_', '')} is for a program: name a FILE_OR_MODULE")
    settings = settings_of(config, {}, thorough=True)
    from kesoku_actors.app.trial import tried

    trial = tried(settings)
    for warning in trial.warnings:
        tell("warning", warning)
    if settings.source is None:
        click.echo(
            f"ok: there is no configuration, the defaults hold; data lives in {settings.workspace.db_path.parent}"
        )
    else:
        click.echo(f"ok: {settings.source}")
    tell("shell", trial.shell)


def _explore(target: str, config: str | None, options: dict[str, Any]) -> None:
    """Explore a program, and end with the exit code of its verdict."""
    if config is not None:
        raise click.UsageError("-c is for a configuration, and a program was named")
    if target.endswith(".toml"):
        raise click.UsageError(f"{target} is no program; a configuration goes behind -c: check -c {target}")
    shard, as_json = options.pop("shard"), options.pop("as_json")
    strategies = options.pop("strategy")
    if len(strategies) > 1:
        raise click.UsageError("a program is explored by one strategy; several go with --zoo")
    options = {name: value for name, value in options.items() if name not in _OF_THE_ZOO}
    options["strategy"] = strategies[0] if strategies else None
    with _refusals_told():
        from kesoku_actors.harness.cli import Wanted, check, parse_shard

        share = (0, 1) if shard is None else parse_shard(shard)
        code = check(Wanted(target=target, json=as_json, shard=share, **options), sys.stdout, sys.stderr)
    raise click.exceptions.Exit(code)


def _score(target: str | None, config: str | None, given: list[str], options: dict[str, Any]) -> None:
    """Score strategies by the zoo, and end with 0 when they find everything."""
    if target is not None or config is not None:
        raise click.UsageError("--zoo takes no program and no configuration: its programs are its own")
    if unfit := [name for name in given if name in _OF_PROGRAMS]:
        raise click.UsageError(f"--{unfit[0]} is for a program, and --zoo has its own")
    wanted = {name: options[name] for name in ("runs", "seconds", "jobs", "seeds", "sample") if name in given}
    lists: dict[str, Any] = {"strategies": tuple(options["strategy"]), "bugs": tuple(options["bug"])}
    with _refusals_told():
        from kesoku_actors.harness.control import check_trio
        from kesoku_actors.harness.zoo.bench import Bench, bench

        check_trio()
        asked = Bench(**wanted, **{name: value for name, value in lists.items() if value})
        code = bench(asked, sys.stdout, sys.stderr, as_json=options["as_json"])
    raise click.exceptions.Exit(code)


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Tell what the harness refuses in a line; a trio that it does not know has an exit code of its own."""
    from kesoku_actors.harness.errors import HarnessError, UnsupportedTrio

    try:
        yield
    except UnsupportedTrio as error:
        tell("error", str(error))
        raise click.exceptions.Exit(error.exit_code) from None
    except HarnessError as error:
        raise click.UsageError(str(error)) from None
