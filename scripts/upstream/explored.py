"""Explores the programs, in the environment that has the packages; started by scripts/upstream/run."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Final

from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.front import Overrides, overridden, verdict_on
from kesoku_actors.harness.origin import MARK
from kesoku_actors.harness.report import page, text
from kesoku_actors.harness.verdict import Outcome, Verdict
from scripts.upstream.known import KNOWN

MODULES: Final = {
    "plain_trio": "trio",
    "with_anyio": "anyio",
    "with_tricycle": "tricycle",
    "with_trio_util": "trio-util",
    "with_aioresult": "aioresult",
    "with_aiometer": "aiometer",
    "with_asyncstdlib": "asyncstdlib",
    "with_anyioutils": "anyioutils",
    "with_chanio": "chanio",
    "with_chrono_daemon": "chrono-daemon",
    "with_aiologic": "aiologic",
    "with_culsans": "culsans",
    "with_asyncer": "asyncer",
}
"""Where the programs are, and which package each is about."""


def explorations(module: str) -> dict[str, Exploration]:
    """Return the programs of a module by their names."""
    inside = dict(vars(import_module(f"scripts.upstream.programs.{module}")))
    return {name: vars(one)[MARK] for name, one in inside.items() if MARK in getattr(one, "__dict__", {})}


def told(package: str, name: str, verdict: Verdict, seconds: float) -> str:
    """Return the row of a property."""
    words = name.removeprefix("test_").replace("_", " ")
    return f"{package + ' ' + version(package):22}{words:72}{verdict.schedules:6}{seconds:7.1f} s  {verdict.outcome}"


def replayed(exploration: Exploration, token: str, html: Path | None) -> int:
    """Show the run of a token."""
    with overridden(Overrides(replay=token)):
        verdict = verdict_on(exploration)
    found = verdict.counterexample
    print(verdict if found is None else text(found))
    if found is not None and html is not None:
        html.write_text(page(found))
    return verdict.exit_code


def main() -> int:
    """Explore what is asked for, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/upstream/run")
    parser.add_argument("--only", action="append", choices=MODULES, metavar="MODULE", default=[])
    parser.add_argument("--replay", nargs=2, metavar=("TOKEN", "MODULE:TEST"))
    parser.add_argument("--html", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.replay:
        token, (module, _, name) = asked.replay[0], asked.replay[1].partition(":")
        return replayed(explorations(module)[name], token, asked.html)
    unexpected = list[str]()
    for module in asked.only or MODULES:
        for name, exploration in explorations(module).items():
            began = process_time()
            verdict = verdict_on(exploration)
            print(told(MODULES[module], name, verdict, process_time() - began), flush=True)
            full = f"{module}:{name}"
            if verdict.counterexample is not None:
                print(f"    {verdict.counterexample.failure}\n    {KNOWN.get(full, 'NEW')}", flush=True)
                print(f"    --replay {verdict.counterexample.token} {full}", flush=True)
            elif verdict.outcome is not Outcome.HOLDS:
                print(f"    {verdict.reason}", flush=True)
            if (verdict.outcome is Outcome.FAILS) != (full in KNOWN) or verdict.outcome is Outcome.NONDETERMINISM:
                unexpected.append(full)
    print(f"\nnot as known: {', '.join(unexpected)}" if unexpected else "\nall as known")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
