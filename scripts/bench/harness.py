"""Goals 25 to 28, the harness: what control costs a step, what a second process is worth, and how soon bugs are found.

    scripts/python -m scripts.bench.harness [--seeds N] [--only GOAL]...

* 25: a step of a ring of five tasks under each strategy, over a step of plain trio; a strategy that learns is told what
  each step touched. Beside it, without a verdict, a strategy as a search runs it, which always watches that
* 26: the same schedules in two processes, over one; by the clock, so it wants two idle cores. Beside it, without
  a verdict, the CPU seconds of the slower of the two
* 27: each bug of the zoo by the default portfolio: CPU seconds to the first failure
* 28: what each strategy's first failures are reduced to, and how soon

`scripts/bench/run` measures the first two, with --long all, each bug under a few seeds; here --seeds is 20. Which
strategy finds which bug is told by `kesoku-actors check --zoo`; alarms of the twins without bugs by
`scripts/python -m scripts.bench.zoo --twins 100000`; replays, programs without races and the disk by
`scripts.bench.fidelity`, `scripts.bench.agreement` and `scripts.bench.sweep`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Final

import trio

from kesoku_actors.harness.control import execute
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.jobs import explored_by_many
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.search import Plan
from kesoku_actors.harness.strategy import Learns, RunInfo, Strategy
from kesoku_actors.harness.verdict import Outcome
from kesoku_actors.harness.zoo import BUGS, Difficulty, Score
from kesoku_actors.harness.zoo.bench import Bench, score_named
from kesoku_actors.harness.zoo.tables import FEW
from scripts.bench.report import Row, row, show

TASKS: Final = 5
LAPS: Final = 150
"""So that a ring takes 1,500 steps: at 2,000 a run is first looked at, whether it goes round for ever."""
ROUNDS: Final = 7
RUNS_A_ROUND: Final = 4
LEAST_OF_TRIO: Final = {"strict": 0.8, "random": 0.8, "hold1": 0.8, "pct3": 0.6, "pos": 0.4}
"""By strategy: of the steps that plain trio takes in a second, so many at least."""
LEAST_OF_TWO_JOBS: Final = 1.7
SCHEDULES: Final = 3_000
"""Enough that the start of a process is small beside them."""
SHRINKERS: Final = ("strict", "shuffle", "random", "pct3", "pos", "surw", "hold1")
SHRINK_RUNS: Final = 300
"""The most schedules a strategy has to find a failure to be reduced."""


async def ring(laps: int = LAPS) -> None:
    """Five tasks hand on what they get, each to the next, as often as there are laps."""
    links = [trio.open_memory_channel[int](1) for _ in range(TASKS)]

    async def hand_on(place: int) -> None:
        receive, send = links[place - 1][1].receive, links[place][0].send
        for _ in range(laps):
            await send(await receive())

    async with trio.open_nursery() as nursery:
        for place in range(TASKS):
            nursery.start_soon(hand_on, place)
            await links[place][0].send(place)


async def short_ring() -> None:
    """A program of the size that is explored: another process finds it by this name."""
    await ring(30)


class _Steps(trio.abc.Instrument):
    """Counts the steps of plain trio."""

    count = 0

    def before_task_step(self, _task: object) -> None:
        self.count += 1


def _cost(steps_of: Callable[[], int]) -> float:
    """Return CPU seconds a step."""
    begun = process_time()
    steps = steps_of()
    return (process_time() - begun) / steps


def _plain(steps: int) -> int:
    for _ in range(RUNS_A_ROUND):
        trio.run(ring)
    return RUNS_A_ROUND * steps


def _controlled(strategy: Strategy, length: int, *, is_watched: bool = False) -> int:
    steps = 0
    with footprints() if is_watched or isinstance(strategy, Learns) else nullcontext() as watch:
        for number in range(RUNS_A_ROUND):
            strategy.begin(RunInfo(number=number, rng=random.Random(number), length=length))
            steps += execute(ring, strategy, observe=watch).steps
    return steps


def rows() -> list[Row]:
    """Measure what control costs, and what a second process is worth."""
    return [*_steps(), *_two_jobs()]


def _steps() -> Iterator[Row]:
    counted = _Steps()
    trio.run(ring, instruments=[counted])
    ours: dict[str, list[float]] = {name: [] for name in LEAST_OF_TRIO}
    floor: list[float] = []
    watched: list[float] = []
    strategies = {name: strategy_named(name) for name in LEAST_OF_TRIO}
    for strategy in strategies.values():
        _controlled(strategy, counted.count)
    for _ in range(ROUNDS):
        floor.append(_cost(partial(_plain, counted.count)))
        for name, costs in ours.items():
            costs.append(_cost(partial(_controlled, strategies[name], counted.count)))
        watched.append(_cost(partial(_controlled, strategies["random"], counted.count, is_watched=True)))
    for name, least in LEAST_OF_TRIO.items():
        told = f"a step under {name} / of plain trio"
        yield row(25, told, limit=1 / least, ours=ours[name], floor=floor)
    yield row(25, "a step under random, watched / of plain trio", limit=1.25, ours=watched, floor=floor, judged=False)


def _two_jobs() -> Iterator[Row]:
    """Compare the time by the clock; a round is both, one after the other."""
    exploration = Exploration(function=short_ring, plan=Plan(runs=SCHEDULES, strategy="random"))
    taken: dict[int, list[float]] = {1: [], 2: []}
    used: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for jobs in taken:
            begun = perf_counter()
            verdict = explored_by_many(exploration, jobs)
            taken[jobs].append(perf_counter() - begun)
            used[jobs].append(verdict.seconds)
            assert verdict.outcome is Outcome.HOLDS, verdict
    limit = 1 / LEAST_OF_TWO_JOBS
    yield row(26, f"{SCHEDULES:,} schedules with --jobs 2 / 1", limit=limit, ours=taken[2], floor=taken[1])
    yield row(26, "CPU s of its slower process / of one", limit=limit, ours=used[2], floor=used[1], judged=False)


def long_rows(seeds: int = 3) -> list[Row]:
    """Measure how soon bugs are found, and what failures are reduced to."""
    return [*_zoo(seeds), *_shrinking()]


def _zoo(seeds: int) -> Iterator[Row]:
    asked = Bench(seeds=seeds, sample=0)
    scores = [score_named(asked, "portfolio", bug.name) for bug in BUGS]
    missed = sum(score.seeds - len(score.firsts) for score in scores)
    yield _share(27, f"bugs missed by a seed, of {seeds} x {len(scores)}", missed, most=0)
    for is_hard, median_s, worst_s in ((False, 1.0, 10.0), (True, 60.0, 300.0)):
        chosen = [one for one in scores if (one.bug.difficulty is Difficulty.HARD) is is_hard]
        kind = "hard ones" if is_hard else "others"
        yield _share(27, f"{kind}: median CPU s to the first failure", median(_firsts(chosen)), most=median_s)
        yield _share(27, f"{kind}: worst CPU s to the first failure", max(_firsts(chosen)), most=worst_s)


def _firsts(scores: Sequence[Score]) -> list[float]:
    return [first.seconds for score in scores for first in score.firsts]


def _shrinking() -> Iterator[Row]:
    asked = Bench(seeds=1, sample=0, runs=SHRINK_RUNS)
    for name in SHRINKERS:
        scores = [score_named(asked, name, bug.name) for bug in BUGS]
        made = [first.shrunk for score in scores for first in score.firsts if first.shrunk is not None]
        seconds = [one.seconds for one in made]
        left = sum(not one.is_reduced for one in made)
        long = sum(one.form is None or len(one.form) > FEW for one in made)
        yield _share(28, f"{name}: share of {len(made)} failures not reduced", left / len(made), most=0.05)
        yield _share(28, f"{name}: share with more than {FEW} events", long / len(made), most=0.10)
        yield _share(28, f"{name}: median CPU s to reduce one", median(seconds), most=0.3)
        yield _share(28, f"{name}: worst CPU s to reduce one", max(seconds), most=3.0)


def _share(goal: int, name: str, measured: float, *, most: float) -> Row:
    """Return the row of a goal that is absolute: the ratio is what was measured, the limit what it may be."""
    return Row(goal=goal, name=name, ratio=measured, limit=most, spread=0.0)


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", type=int, action="append", choices=(25, 26, 27, 28), metavar="GOAL")
    asked = parser.parse_args()
    parts: dict[int, Callable[[], Iterator[Row]]] = {
        25: _steps,
        26: _two_jobs,
        27: partial(_zoo, asked.seeds),
        28: _shrinking,
    }
    return 0 if show(one for goal in asked.only or parts for one in parts[goal]()) else 1


if __name__ == "__main__":
    sys.exit(main())
