"""Scores of strategies: in how many runs, and in how much time, each finds the planted bugs of the zoo.

A new strategy is scored like the others: it is a function that returns a fresh one, with `begin` and `choose`.

    for bug in BUGS:
        print(line(scored(bug, Mine, seeds=5, runs=200)))

Three measures, for they answer three questions. The *first failure* is what somebody waits for who looks for a bug: the
number of runs and the CPU seconds until then, for each of some seeds. The *rate* is the share of runs that fail, with
the interval of Wilson that holds it with 95 %; it is taken over a number of runs that was fixed beforehand, as runs
that end at a failure would flatter it. For a strategy that goes through schedules one by one and not at random, it is a
count and no probability. The *reduction* is what a person reads: to how many named events the first failure shrinks,
and how long that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import sqrt
from time import process_time
from typing import Final

from attrs import field, frozen

from kesoku_actors.harness.control import Run
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.diagnosis import Diagnosis, Nondeterminism
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.hold import Form
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.portfolio import deciding, is_exhausted
from kesoku_actors.harness.reduce import Reduced
from kesoku_actors.harness.search import Plan, runner_of
from kesoku_actors.harness.strategy import Learns, RunInfo, Strategy
from kesoku_actors.harness.zoo.bug import Bug

Make = Callable[[], Strategy]

_Z: Final = 1.96
_FIRST_LENGTH: Final = 100


@frozen(kw_only=True)
class Shrunk:
    """What the first failure under one seed was reduced to."""

    form: Form | None
    """None: it did not fail again in hold form."""
    is_minimal: bool
    seconds: float
    """Of CPU time."""

    @property
    def is_reduced(self) -> bool:
        """Whether no event of it can be missed."""
        return self.form is not None and self.is_minimal


@frozen(kw_only=True)
class First:
    """The first failure under one seed."""

    runs: int
    seconds: float
    """Of CPU time."""
    shrunk: Shrunk | None = None
    """None: it was not asked for."""


@frozen(kw_only=True)
class Score:
    """What a strategy did with one program."""

    bug: Bug
    seeds: int
    runs: int
    """Of all seeds."""
    sampled: int
    """Those of them that the rate is taken over."""
    hits: int
    """Those of them that failed."""
    steps: int
    """Of all runs."""
    seconds: float = 0.0
    """Of CPU time, for all runs."""
    firsts: tuple[First, ...]
    """Of the seeds that found it."""
    others: tuple[str, ...] = field(default=())
    """Failures that are not the bug's own: there should be none."""

    @property
    def is_found(self) -> bool:
        """Whether every seed found it."""
        return len(self.firsts) == self.seeds

    @property
    def rate(self) -> float:
        """The share of runs that failed."""
        return self.hits / self.sampled if self.sampled else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """What holds the true rate with 95 %."""
        return wilson(self.hits, self.sampled)


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
            result = run(deciding(strategy))
            steps += result.steps
            yield result


def scored(
    bug: Bug,
    make: Make,
    *,
    seeds: int,
    runs: int,
    sample: int | None = None,
    seconds: float | None = None,
    shrinks: bool = False,
) -> Score:
    """Return the score over some seeds, each with at most so many runs, and so many CPU seconds.

    A seed ends when it has found the bug and made `sample` runs, over which the rate is taken; without it, with all of
    its runs. With `shrinks` the first failure of each seed is reduced.
    """
    wanted = runs if sample is None else min(sample, runs)
    made = sampled = hits = steps = 0
    spent = 0.0
    firsts: list[First] = []
    others: set[str] = set()
    for seed in range(seeds):
        began, first, taken = process_time(), None, 0.0
        for number, run in enumerate(played(bug, make, seed=seed, runs=runs), start=1):
            taken = process_time() - began
            is_hit = bug.is_shown_by(run.error)
            made, steps, sampled = made + 1, steps + run.steps, sampled + (number <= wanted)
            hits += is_hit and number <= wanted
            if run.error is not None and not is_hit:
                others.add(failure_of(run.error))
            if is_hit and first is None:
                first = First(runs=number, seconds=taken, shrunk=shrunk(bug, run) if shrinks else None)
                began += 0.0 if first.shrunk is None else first.shrunk.seconds
            is_over = seconds is not None and taken >= seconds
            if is_over or (first is not None and number >= wanted):
                break
        spent += taken
        if first is not None:
            firsts.append(first)
    return Score(
        bug=bug,
        seeds=seeds,
        runs=made,
        sampled=sampled,
        hits=hits,
        steps=steps,
        seconds=spent,
        firsts=tuple(firsts),
        others=tuple(sorted(others)),
    )


def alarms(bug: Bug, make: Make, *, seed: int, runs: int) -> tuple[int, list[str]]:
    """Run the twin without the bug; return how many runs were made, and the failures: there should be none."""
    ends = [run.error for run in played(bug, make, seed=seed, runs=runs, fixed=True)]
    return len(ends), [failure_of(error) for error in ends if error is not None]


def reduced(bug: Bug, run: Run) -> Reduced:
    """Return a failing run of a bug in hold form, with as few events as possible. Raises `Nondeterminism`."""
    assert run.error is not None
    diagnosis = Diagnosis(Exploration(function=bug.program()), Inputs(), failure_of(run.error), Plan())
    return diagnosis.reduced(run.schedule)


def shrunk(bug: Bug, run: Run) -> Shrunk:
    """Return what a failing run is reduced to, and how long it took."""
    began = process_time()
    try:
        small = reduced(bug, run)
    except Nondeterminism:
        return Shrunk(form=None, is_minimal=False, seconds=process_time() - began)
    return Shrunk(form=small.form, is_minimal=small.is_minimal, seconds=process_time() - began)
