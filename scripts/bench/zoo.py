"""The zoo of planted bugs: which strategy finds which of them, how soon, and whether any twin without it alarms.

    python -m scripts.bench.zoo [--strategy NAME]... [--bug NAME]... [--difficulty NAME] [--seeds N] [--runs N]
                                [--rates] [--reduce] [--twins RUNS]

Prints a table for each strategy: runs and CPU seconds to the first failure (median and worst of the seeds) and the
share of runs that fail. NAME is as in `kesoku-actors check --strategy`, or `package.module:function` for one's own.
With --rates runs go on behind the first failure, for a rate that means something; with several strategies a last table
tells which bugs one of them alone finds. --reduce takes the first failure of each bug to hold form. --twins runs the
twins without the bugs, so many times in all. Exits with 1 when a bug is missed by a seed or a twin alarms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from statistics import median
from time import process_time

from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.zoo import (
    BUGS,
    HEADER,
    Bug,
    Make,
    Score,
    alarms,
    alone,
    line,
    played,
    reduced,
    scored,
    summary,
)

TWIN_STRATEGIES = ("random", "pct3", "pos", "surw", "shuffle", "hold1", "hold2")


def make_of(name: str) -> Make:
    """Return what makes a strategy, from its name or from `module:function`."""
    module, _, function = name.partition(":")
    if function:
        made: Make = getattr(import_module(module), function)
        return made
    strategy_named(name)
    return partial(strategy_named, name)


def scores_of(bugs: Sequence[Bug], make: Make, *, seeds: int, runs: int, rates: bool) -> list[Score]:
    """Print the table of one strategy while it is made, and return the scores."""
    print(HEADER)
    scores = []
    for bug in bugs:
        scores.append(scored(bug, make, seeds=seeds, runs=runs, sample=None if rates else 0))
        print(line(scores[-1]), flush=True)
    print(summary(scores))
    return scores


def show_reduced(bugs: Sequence[Bug], make: Make, *, runs: int) -> None:
    """Print the first failure of each bug in hold form, and the share of short ones."""
    sizes, seconds = [], []
    for bug in bugs:
        failing = next((run for run in played(bug, make, seed=0, runs=runs) if bug.is_shown_by(run.error)), None)
        if failing is None:
            continue
        began = process_time()
        small = reduced(bug, failing)
        seconds.append(process_time() - began)
        sizes.append(len(small.form))
        events = "; ".join(map(str, small.form.events)) or "nothing to hold"
        print(f"{bug.name:<30}{seconds[-1]:>6.2f} s {small.runs:>5} runs  {small.form.base}: {events}", flush=True)
    if sizes:
        short = sum(size <= 3 for size in sizes)
        times = f"median {median(seconds):.2f} s, worst {max(seconds):.2f} s"
        print(f"{short} of {len(sizes)} with at most 3 events; {times}")


def count_alarms(bugs: Sequence[Bug], runs: int) -> int:
    """Run the twins by turns under each strategy; print and return the number of alarms."""
    each, made, found = max(1, runs // (len(bugs) * len(TWIN_STRATEGIES))), 0, 0
    for bug in bugs:
        for seed, name in enumerate(TWIN_STRATEGIES):
            count, failures = alarms(bug, make_of(name), seed=seed, runs=each)
            made += count
            found += len(failures)
            for failure in sorted(set(failures)):
                print(f"alarm: {bug.name} under {name}: {failure}")
    print(f"{found} alarms in {made:,} runs of the twins")
    return found


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", action="append", default=[])
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--difficulty", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--twins", type=int, default=0)
    asked = parser.parse_args()
    bugs = [
        bug for bug in BUGS if bug.name in (asked.bug or [bug.name]) and bug.difficulty.startswith(asked.difficulty)
    ]
    if asked.twins:
        return 1 if count_alarms(bugs, asked.twins) else 0
    names = asked.strategy or ["portfolio"]
    if asked.reduce:
        show_reduced(bugs, make_of(names[0]), runs=asked.runs)
        return 0
    scores: dict[str, list[Score]] = {}
    for name in names:
        print(f"-- {name}")
        scores[name] = scores_of(bugs, make_of(name), seeds=asked.seeds, runs=asked.runs, rates=asked.rates)
    if len(scores) > 1:
        sys.stdout.writelines(f"{told}\n" for told in alone(scores))
    return 0 if all(score.is_found for each in scores.values() for score in each) else 1


if __name__ == "__main__":
    sys.exit(main())
