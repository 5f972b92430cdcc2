"""The fork server: what every piece of work needs is imported once; each piece is a fork that explores.

Nothing of the program is loaded before the fork but its harness, so a fault is in every import of its module. A fork
that takes too much CPU time is ended by the system, and it ends itself when whoever wants to know is gone.
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
from collections.abc import Generator, Iterable
from types import FrameType
from typing import Final, Generic, NoReturn, Protocol, TypeVar

# What the daemon and its properties import of others: loaded here, so that no fork has to.
import apsw  # noqa: F401
import cattrs  # noqa: F401
import hypothesis.strategies  # noqa: F401
import pytest  # noqa: F401
from attrs import AttrsInstance, asdict, define, evolve, frozen

import kesoku_actors.harness.checks
import kesoku_actors.harness.drawn
import kesoku_actors.harness.front  # noqa: F401
from scripts.seeded.imports import loaded, put_in
from scripts.seeded.table import Mutant
from scripts.seeded.trial import Ended, Finding, try_out

_CHUNK: Final = 1 << 16
_LOOK_EVERY_S: Final = 2.0


class Piece(AttrsInstance, Protocol):
    """A piece of work: a frozen value of attrs."""

    @property
    def seconds(self) -> int:
        """Of CPU time, at most."""
        ...

    def carry_out(self) -> Finding:
        """Do it, in a process of its own."""
        ...


P = TypeVar("P", bound=Piece)


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

    def __str__(self) -> str:
        return f"seed {self.seed} {self.test}"

    def carry_out(self) -> Finding:
        """Put the fault in and explore."""
        if self.mutant is not None:
            put_in(self.mutant)
        return try_out(self.test, runs=self.runs, first_seed=self.seed)


@define(eq=False)
class _Fork(Generic[P]):
    piece: P
    process: int
    written: bytes = b""


def carry_out(pieces: Iterable[P], jobs: int) -> Generator[tuple[P, Finding]]:
    """Carry out pieces of work, so many at once, and yield what came of each when it is over."""
    assert not loaded(), f"{loaded()} are loaded already"
    gc.collect()
    gc.freeze()
    waiting, forks = iter(pieces), dict[int, _Fork[P]]()
    try:
        while True:
            while len(forks) < jobs and (piece := next(waiting, None)) is not None:
                end, process = _fork(piece)
                forks[end] = _Fork(piece, process)
            if not forks:
                return
            for end in select.select(list(forks), [], [])[0]:
                if written := os.read(end, _CHUNK):
                    forks[end].written += written
                    continue
                fork = forks.pop(end)
                os.close(end)
                yield fork.piece, _finding(fork, os.waitpid(fork.process, 0)[1])
    finally:
        for end, fork in forks.items():
            os.close(end)
            os.kill(fork.process, signal.SIGKILL)
            os.waitpid(fork.process, 0)


def _finding(fork: _Fork[P], status: int) -> Finding:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        said = f"it took more than {fork.piece.seconds} s of CPU time"
        return Finding(ended=Ended.TIMEOUT, seconds=fork.piece.seconds, said=said)
    if code < 0:
        return Finding(ended=Ended.BROKEN, said=f"ended by signal {-code}")
    if code != 0:
        said = fork.written.decode(errors="replace").strip().rpartition("\n")[2]
        return Finding(ended=Ended.BROKEN, said=said or f"ended with exit code {code}")
    told = json.loads(fork.written)
    return evolve(Finding(ended=Ended(told.pop("ended"))), **told)


def _fork(piece: Piece) -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    ours, theirs = os.pipe()
    parent = os.getpid()
    process = os.fork()
    if process == 0:
        os.close(ours)
        _do(piece, theirs, parent)
    os.close(theirs)
    return ours, process


def _do(piece: Piece, end: int, parent: int) -> NoReturn:
    """Never returns: the fork must not go on with what its parent was doing."""
    code = 1
    try:
        _end_with(parent)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        resource.setrlimit(resource.RLIMIT_CPU, (piece.seconds, piece.seconds + 5))
        _write(end, json.dumps(asdict(piece.carry_out())))
        code = 0
    except BaseException:
        _write(end, traceback.format_exc())
    finally:
        os._exit(code)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, however that ends."""

    def look(_number: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the parent decides
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_EVERY_S, _LOOK_EVERY_S)


def _write(end: int, text: str) -> None:
    left = text.encode()
    while left:
        left = left[os.write(end, left) :]
