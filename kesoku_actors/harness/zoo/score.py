"""Scores of strategies: in how many runs, and in how much time, each finds the planted bugs of the zoo.

A new strategy is scored like the others: it is a function that returns a fresh one, with `begin` and `choose`.

    for bug in BUGS:
        print(line(scored(bug, Mine, seeds=5, runs=200)))

Two measures, for they answer two questions. The *first failure* is what somebody waits for who looks for a bug: the
number of runs and the CPU seconds until then, for each of some seeds. The *rate* is the share of all runs that fail,
with the interval of Wilson that holds it with 95 %; for a strategy that goes through schedules one by one and not at
random, it is a count and no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from math import sqrt
from statistics import median
from time import process_time
from typing import Final

from attrs import frozen

from kesoku_actors.harness.control import Run
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.diagnosis import Diagnosis
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.portfolio import is_exhausted
from kesoku_actors.harness.reduce import Reduced
from kesoku_actors.harness.search import Plan, runner_of
from kesoku_actors.harness.strategy import Learns, RunInfo, Strategy
from kesoku_actors.harness.zoo.bug import Bug

Make = Callable[[], Strategy]

HEADER: Final = (
    f"{'bug':<30}{'difficulty':<11}{'steps':>6}{'found':>8}{'first run':>16}{'CPU s to it':>17}  rate, 95 % interval"
)
_Z: Final = 1.96
_FIRST_LENGTH: Final = 100


@frozen(kw_only=True)
class First:
    """The first failure under one seed."""

    runs: int
    seconds: float
    """Of CPU time."""


@frozen(kw_only=True)
class Score:
    """What a strategy did with one program."""

    bug: Bug
    seeds: int
    runs: int
    """Of all seeds."""
    hits: int
    steps: int
    """Of all runs."""
    firsts: tuple[First, ...]
    """Of the seeds that found it."""
    others: tuple[str, ...]
    """Failures that are not the bug's own: there should be none."""

    @property
    def is_found(self) -> bool:
        """Whether every seed found it."""
        return len(self.firsts) == self.seeds

    @property
    def rate(self) -> float:
        """The share of runs that failed."""
        return self.hits / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """What holds the true rate with 95 %."""
        return wilson(self.hits, self.runs)


def wilson(hits: int, runs: int) -> tuple[float, float]:
    """Return the interval of Wilson for a share of `hits` in `runs`, with 95 %.

    >>> tuple(round(end, 4) for end in wilson(0, 4000))
    (0.0, 0.001)
    """
    if not runs:
        return 0.0, 1.0
    share, scale = hits / runs, 1 + _Z * _Z / runs
    middle = share + _Z * _Z / (2 * runs)
    spread = _Z * sqrt(share * (1 - share) / runs + _Z * _Z / (4 * runs * runs))
    return min(share, max(0.0, (middle - spread) / scale)), max(share, min(1.0, (middle + spread) / scale))


def played(bug: Bug, make: Make, *, seed: int, runs: int, fixed: bool = False) -> Iterator[Run]:
    """Run a program of the zoo with a fresh strategy, until it is exhausted or `runs` are made."""
    plan, strategy, steps = Plan(seed=seed), make(), 0
    with footprints() if isinstance(strategy, Learns) else nullcontext() as watch:
        run = runner_of(bug.program(fixed=fixed), plan, watch)
        for number in range(runs):
            if is_exhausted(strategy):
                return
            strategy.begin(RunInfo(number=number, rng=plan.rng(number), length=steps // (number or 1) or _FIRST_LENGTH))
            result = run(strategy)
            steps += result.steps
            yield result


def scored(bug: Bug, make: Make, *, seeds: int, runs: int, ends_at_first: bool = False) -> Score:
    """Return the score over some seeds, each with so many runs; `ends_at_first` where the rate is not asked for."""
    made = hits = steps = 0
    firsts: list[First] = []
    others: set[str] = set()
    for seed in range(seeds):
        began, found = process_time(), False
        for number, run in enumerate(played(bug, make, seed=seed, runs=runs), start=1):
            made, steps = made + 1, steps + run.steps
            if run.error is None:
                continue
            if not bug.is_shown_by(run.error):
                others.add(failure_of(run.error))
                continue
            hits += 1
            if not found:
                found = True
                firsts.append(First(runs=number, seconds=process_time() - began))
            if ends_at_first:
                break
    return Score(
        bug=bug, seeds=seeds, runs=made, hits=hits, steps=steps, firsts=tuple(firsts), others=tuple(sorted(others))
    )


def alarms(bug: Bug, make: Make, *, seed: int, runs: int) -> tuple[int, list[str]]:
    """Run the twin without the bug; return how many runs were made, and the failures: there should be none."""
    ends = [run.error for run in played(bug, make, seed=seed, runs=runs, fixed=True)]
    return len(ends), [failure_of(error) for error in ends if error is not None]


def reduced(bug: Bug, run: Run) -> Reduced:
    """Return a failing run of a bug in hold form, with as few events as possible."""
    assert run.error is not None
    diagnosis = Diagnosis(Exploration(function=bug.program()), {}, failure_of(run.error), Plan())
    return diagnosis.reduced(run.schedule)


def line(score: Score) -> str:
    """Return a score as a line below `HEADER`."""
    firsts = [first.runs for first in score.firsts]
    seconds = [first.seconds for first in score.firsts]
    runs_told = f"{median(firsts):,.0f}, {max(firsts):,}" if firsts else "-"
    seconds_told = f"{median(seconds):.2f}, {max(seconds):.2f}" if seconds else "-"
    low, high = (100 * end for end in score.interval)
    steps = score.steps // score.runs if score.runs else 0
    told = (
        f"{score.bug.name:<30}{score.bug.difficulty:<11}{steps:>6,}{len(score.firsts):>5}/{score.seeds:<2}"
        f"{runs_told:>16}{seconds_told:>17}  {100 * score.rate:6.2f} % ({low:.2f} to {high:.2f})"
    )
    return f"{told}  also: {'; '.join(score.others)}" if score.others else told


def summary(scores: Sequence[Score]) -> str:
    """Return what the table comes to: how many are found by every seed, and the CPU seconds to the first failure."""
    found = sum(score.is_found for score in scores)
    seconds = sorted(first.seconds for score in scores for first in score.firsts)
    if not seconds:
        return f"{found} of {len(scores)} found by every seed"
    told = f"CPU s to the first failure: median {median(seconds):.2f}, worst {seconds[-1]:.2f}"
    return f"{found} of {len(scores)} found by every seed; {told}"
