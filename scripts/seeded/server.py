"""The fork server: what every trial needs is imported once; each trial is a fork that puts its fault in and explores.

Nothing of the program is loaded before the fork but its harness, so a fault is in every import of its module. A fork
that takes too much CPU time is ended by the system.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

# What the daemon and its properties import of others: loaded here, so that no fork has to.
import apsw  # noqa: F401
import cattrs  # noqa: F401
import hypothesis.strategies  # noqa: F401
import pytest  # noqa: F401
from attrs import asdict, define, evolve, frozen

import kesoku_actors.harness.checks
import kesoku_actors.harness.drawn
import kesoku_actors.harness.front  # noqa: F401
from scripts.seeded.imports import loaded, put_in
from scripts.seeded.table import Mutant
from scripts.seeded.trial import Ended, Finding, try_out

_CHUNK: Final = 1 << 16


@frozen(kw_only=True)
class Trial:
    """What is tried."""

    test: str
    mutant: Mutant | None
    """None: the program as it is."""
    runs: int
    seed: int
    seconds: int
    """Of CPU time, at most."""


@define(eq=False)
class _Fork:
    trial: Trial
    process: int
    written: bytes = b""


def carry_out(trials: Iterable[Trial], jobs: int) -> Iterator[tuple[Trial, Finding]]:
    """Carry out trials, so many at once, and yield what came of each when it is over."""
    assert not loaded(), f"{loaded()} are loaded already"
    gc.collect()
    gc.freeze()
    waiting, forks = iter(trials), dict[int, _Fork]()
    try:
        while True:
            while len(forks) < jobs and (trial := next(waiting, None)) is not None:
                end, process = _fork(trial)
                forks[end] = _Fork(trial, process)
            if not forks:
                return
            for end in select.select(list(forks), [], [])[0]:
                if piece := os.read(end, _CHUNK):
                    forks[end].written += piece
                    continue
                fork = forks.pop(end)
                os.close(end)
                yield fork.trial, _finding(fork, os.waitpid(fork.process, 0)[1])
    finally:
        for end, fork in forks.items():
            os.close(end)
            os.kill(fork.process, signal.SIGKILL)
            os.waitpid(fork.process, 0)


def _finding(fork: _Fork, status: int) -> Finding:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return Finding(ended=Ended.TIMEOUT, seconds=fork.trial.seconds)
    if code != 0:
        return Finding(ended=Ended.BROKEN, said=fork.written.decode(errors="replace").strip().rpartition("\n")[2])
    told = json.loads(fork.written)
    return evolve(Finding(ended=Ended(told.pop("ended"))), **told)


def _fork(trial: Trial) -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        _be_the_trial(trial, theirs)
    os.close(theirs)
    return ours, process


def _be_the_trial(trial: Trial, end: int) -> NoReturn:
    """Never returns: the fork must not go on with what its parent was doing."""
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        resource.setrlimit(resource.RLIMIT_CPU, (trial.seconds, trial.seconds + 5))
        if trial.mutant is not None:
            put_in(trial.mutant)
        finding = try_out(trial.test, runs=trial.runs, first_seed=trial.seed)
        _write(end, json.dumps(asdict(finding)))
        code = 0
    except BaseException:
        _write(end, traceback.format_exc())
    finally:
        os._exit(code)


def _write(end: int, text: str) -> None:
    left = text.encode()
    while left:
        left = left[os.write(end, left) :]
