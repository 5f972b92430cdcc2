"""What a trial of a tool on a program gives, how it is measured, and how it is printed for whoever started it."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time


@dataclass(frozen=True, kw_only=True)
class Found:
    """A failing run under one seed."""

    schedules: int
    """Until it failed, with it."""
    seconds: float
    """Of CPU time, until it failed."""
    size: int | None = None
    """Of the counterexample, in the tool's own measure; none: the tool gives none."""
    reducing: float = 0.0
    """CPU seconds that reducing it took."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one program: the bug under some seeds, and the twin without the bug."""

    seeds: int
    founds: tuple[Found, ...]
    """Of the seeds that found the bug."""
    schedules: int
    """Of the seeds that did not, together."""
    seconds: float
    """Of the seeds that did not, together."""
    alarms: int
    fixed_runs: int
    fixed_seconds: float
    others: tuple[str, ...] = ()
    """Failures that are not the bug's own, and why a tool gave up."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be tried."""

    program: str
    mode: str
    seeds: int
    schedules: int
    """At most so many for each seed."""
    alarms: int
    """So many runs of the twin without the bug."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search under one seed gave."""

    schedules: int
    failure: str | None = None
    """None: nothing failed."""
    is_bug: bool = False
    """Whether the failure is the planted bug."""
    seconds: float | None = None
    """CPU seconds of the search, where it was reduced afterwards; none: all of it was the search."""
    size: int | None = None
    note: str | None = None
    """Why the tool came to no end of its own."""


def tried(asked: Asked, search: Callable[[bool, int, int], Search]) -> Trial:
    """Try a program: `search` is given whether it is the twin without the bug, a seed, and how many schedules."""
    founds: list[Found] = []
    others: set[str] = set()
    schedules, seconds = 0, 0.0
    for seed in range(asked.seeds):
        began = process_time()
        result = search(False, seed, asked.schedules)
        taken = process_time() - began
        if result.is_bug:
            until = taken if result.seconds is None else result.seconds
            found = Found(schedules=result.schedules, seconds=until, size=result.size, reducing=taken - until)
            founds.append(found)
        else:
            schedules, seconds = schedules + result.schedules, seconds + taken
        if result.failure is not None and not result.is_bug:
            others.add(result.failure[:120])
        if result.note is not None:
            others.add(result.note[:120])
    began = process_time()
    fixed = search(True, 0, asked.alarms)
    return Trial(
        seeds=asked.seeds,
        founds=tuple(founds),
        schedules=schedules,
        seconds=seconds,
        alarms=int(fixed.failure is not None),
        fixed_runs=fixed.schedules,
        fixed_seconds=process_time() - began,
        others=(*sorted(others), *([f"without the bug: {fixed.failure[:120]}"] if fixed.failure else [])),
    )


def asked_for(modes: tuple[str, ...]) -> Asked:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--alarms", type=int, default=200)
    return Asked(**vars(parser.parse_args()))


def told(trial: Trial) -> None:
    """Print it, as the last line."""
    print(json.dumps(dataclasses.asdict(trial)))
