"""Ours, on the program of the zoo itself, with what `explore` does unless it is told otherwise."""

from __future__ import annotations

from functools import partial
from time import process_time

from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.zoo import BUGS
from kesoku_actors.harness.zoo.score import played, shrunk
from scripts.bench.rival_tools.trial import Asked, Search, asked_for, told, tried


def searched(asked: Asked, fixed: bool, seed: int, schedules: int) -> Search:
    """Search, and reduce what was found."""
    [bug] = [bug for bug in BUGS if bug.name == asked.program]
    make = partial(strategy_named, "portfolio" if asked.mode == "default" else asked.mode)
    began, made = process_time(), 0
    for made, run in enumerate(played(bug, make, seed=seed, runs=schedules, fixed=fixed), start=1):
        if run.error is None:
            continue
        taken, is_bug = process_time() - began, bug.is_shown_by(run.error)
        small = None if fixed else shrunk(bug, run).form
        size = None if small is None else len(small)
        return Search(schedules=made, failure=failure_of(run.error), is_bug=is_bug, seconds=taken, size=size)
    return Search(schedules=made)


if __name__ == "__main__":
    wanted = asked_for(("default", "hold2"))
    told(tried(wanted, partial(searched, wanted)))
