"""Goal 29: the twins of the zoo's programs, which have no bug, under every strategy. Any failure is a false alarm.

    scripts/python -m scripts.bench.zoo [--twins RUNS] [--bug NAME]... [--seed N] [--jobs J]

They are run at least so many times in all, 100,000 unless it is said otherwise: about two minutes of the processor;
1,000,000 take twenty. Another --seed is other schedules. Exits with 1 when a twin alarms. How soon the bugs themselves
are found is told by `kesoku-actors check --zoo`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final

from attrs import frozen

from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.zoo import BUGS, alarms
from scripts.bench.report import Row

SAMPLING: Final = ("random", "pct3", "pos", "surw", "shuffle")
STRATEGIES: Final = (*SAMPLING, "hold1", "hold2")
RUNS: Final = 100_000


@frozen(kw_only=True)
class Work:
    """Some runs of one twin under one strategy."""

    bug: str
    strategy: str
    seed: int
    runs: int


@frozen(kw_only=True)
class Done:
    """What came of them."""

    work: Work
    runs: int
    """Fewer than wanted where the strategy was through."""
    failures: tuple[str, ...]


def done(work: Work) -> Done:
    """Run a twin; in whichever process."""
    [bug] = [bug for bug in BUGS if bug.name == work.bug]
    runs, failures = alarms(bug, partial(strategy_named, work.strategy), seed=work.seed, runs=work.runs)
    return Done(work=work, runs=runs, failures=tuple(failures))


def twins(runs: int, *, bugs: Sequence[str] = (), seed: int = 0, jobs: int = 1) -> Iterator[Done]:
    """Run the twins, each under each strategy, at least so many times in all; what is left of it by those that sample.

    A strategy that leaves nothing out may be through before it has made its share.
    """
    names = [bug.name for bug in BUGS if not bugs or bug.name in bugs]
    made = 0
    for strategies in (STRATEGIES, SAMPLING):
        if made >= runs:
            return
        each = -(-(runs - made) // (len(names) * len(strategies)))
        works = [
            Work(bug=bug, strategy=strategy, seed=seed * len(STRATEGIES) * 2 + number + len(strategies), runs=each)
            for bug in names
            for number, strategy in enumerate(strategies)
        ]
        for one in _each(works, jobs):
            made += one.runs
            yield one


def _each(works: Sequence[Work], jobs: int) -> Iterator[Done]:
    if jobs == 1:
        yield from map(done, works)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(done, works)


def long_rows() -> list[Row]:
    """Run the twins 100,000 times."""
    found = sum(len(one.failures) for one in twins(RUNS))
    return [Row(goal=29, name=f"alarms in {RUNS:,} runs without a bug", ratio=found, limit=0, spread=0)]


def main() -> int:
    """Run them, print the alarms, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twins", type=int, default=RUNS, metavar="RUNS")
    parser.add_argument("--bug", action="append", choices=[bug.name for bug in BUGS], metavar="NAME", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    made = found = 0
    for one in twins(asked.twins, bugs=asked.bug, seed=asked.seed, jobs=asked.jobs):
        made, found = made + one.runs, found + len(one.failures)
        for failure in sorted(set(one.failures)):
            print(f"alarm: {one.work.bug} under {one.work.strategy}, seed {one.work.seed}: {failure}", flush=True)
        print(f"\r\x1b[K{made:,} runs, {found} alarms", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{found} alarms in {made:,} runs of {len(asked.bug or BUGS)} twins")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
