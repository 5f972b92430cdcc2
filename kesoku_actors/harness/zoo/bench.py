"""The zoo from a command line: strategies by name over planted bugs, in many processes, as tables or as JSON.

Each bug is one piece of work for one process; what comes of it does not depend on how many processes there are, but
for the CPU seconds.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from typing import Final, TextIO

from attrs import define, frozen

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.zoo.bug import Bug
from kesoku_actors.harness.zoo.score import Score, scored
from kesoku_actors.harness.zoo.table import BUGS
from kesoku_actors.harness.zoo.tables import HEADER, alone, data_of_score, line, summary

FOUND: Final = 0
MISSED: Final = 4


@frozen(kw_only=True)
class Bench:
    """What is to be scored, and how."""

    strategies: tuple[str, ...] = ("portfolio",)
    bugs: tuple[str, ...] = ()
    """By name, or by difficulty; none: all."""
    seeds: int = 3
    runs: int = 20_000
    """The most schedules for a seed of a bug."""
    seconds: float | None = None
    """CPU seconds after which a seed of a bug counts as missed."""
    sample: int = 100
    """The schedules of each seed that the rate is taken over."""
    jobs: int = 1

    def wanted(self) -> tuple[Bug, ...]:
        """Return the bugs. Raises `HarnessError` for a name that is none."""
        known = {bug.name for bug in BUGS} | {bug.difficulty.value for bug in BUGS}
        for name in self.bugs:
            if name not in known:
                raise HarnessError(f"the zoo has no bug {name!r}, nor is it easy, normal or hard; --json lists them")
        return tuple(bug for bug in BUGS if not self.bugs or {bug.name, bug.difficulty.value} & set(self.bugs))


def bench(asked: Bench, out: TextIO, err: TextIO, *, as_json: bool = False) -> int:
    """Score, tell, and return 0 when every seed found every bug, else 4. Raises `HarnessError`."""
    bugs = asked.wanted()
    for name in asked.strategies:
        strategy_named(name)
    scores: dict[str, list[Score]] = {}
    for name in asked.strategies:
        progress = _Progress(name, len(bugs), err)
        scores[name] = []
        if not as_json:
            out.write(f"-- {name}\n{HEADER}\n")
        progress.show()
        for score in _each(asked, name, bugs):
            scores[name].append(score)
            progress.clear()
            out.write(f"{json.dumps(data_of_score(name, score)) if as_json else line(score)}\n")
            out.flush()
            progress.add(score)
        progress.clear()
        if not as_json:
            out.write(f"{summary(scores[name])}\n")
    if len(scores) > 1 and not as_json:
        out.writelines(f"{told}\n" for told in alone(scores))
    return FOUND if all(score.is_found for each in scores.values() for score in each) else MISSED


def score_named(asked: Bench, name: str, bug: str) -> Score:
    """Return the score of one strategy with one bug; in whichever process."""
    [one] = [one for one in BUGS if one.name == bug]
    return scored(
        one,
        partial(strategy_named, name),
        seeds=asked.seeds,
        runs=asked.runs,
        sample=asked.sample,
        seconds=asked.seconds,
        shrinks=True,
    )


def _each(asked: Bench, name: str, bugs: tuple[Bug, ...]) -> Iterator[Score]:
    """Yield the scores in the order of the bugs."""
    if asked.jobs == 1:
        yield from (score_named(asked, name, bug.name) for bug in bugs)
        return
    with get_context("spawn").Pool(asked.jobs, initializer=_leave_interruptions) as pool:
        yield from pool.imap(partial(score_named, asked, name), [bug.name for bug in bugs])


def _leave_interruptions() -> None:
    """Leave Ctrl-C to the process that started this one, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@define
class _Progress:
    """The line that tells the progress, on a terminal alone."""

    name: str
    count: int
    err: TextIO
    done: int = 0
    found: int = 0
    runs: int = 0
    seconds: float = 0.0
    failures: int = 0

    def add(self, score: Score) -> None:
        self.done += 1
        self.found += score.is_found
        self.runs += score.runs
        self.seconds += score.seconds
        self.failures += score.hits
        self.show()

    def show(self) -> None:
        rate = self.runs / self.seconds if self.seconds else 0.0
        self._write(
            f"\r\x1b[K{self.name}: {self.done} of {self.count} bugs, {self.found} found by every seed, "
            f"{self.runs:,} schedules, {rate:,.0f}/s, {self.failures:,} failures"
        )

    def clear(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, said: str) -> None:
        if self.err.isatty():
            self.err.write(said)
            self.err.flush()
