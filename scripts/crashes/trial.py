"""One trial: lives in processes of their own, killed where the trial says, until one has everything it wanted.

A life is a fork of this process, which has imported everything and never ran an event loop: a start costs little, and
the process that dies is a real one. The parent kills it at an instant, or when it takes longer than any life may.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from attrs import frozen

from scripts.crashes.life import live
from scripts.crashes.points import INSTANT, TERM, Kill
from scripts.crashes.remains import Remains, remains_of
from scripts.crashes.script import write_set
from scripts.crashes.verdict import after_kill, after_term, at_the_end, resent

LONGEST_S: Final = 60.0


@frozen(kw_only=True)
class Trial:
    """What is tried."""

    durability: str
    kills: tuple[Kill, ...]
    """Of the first lives, in order; the last life is left alone."""

    def __str__(self) -> str:
        return " ".join([self.durability, *map(str, self.kills)])


@frozen(kw_only=True)
class Outcome:
    """What came of it."""

    trial: Trial
    hit: tuple[str, ...]
    """The points at which a life was killed."""
    violations: tuple[str, ...]
    resent: int
    seconds: float
    """How long the last life took."""


def run_trial(trial: Trial, folder: Path) -> Outcome:
    """Carry out a trial in an empty folder."""
    config = write_set(folder, trial.durability)
    hit: list[str] = []
    killed: list[Remains] = []
    violations: list[str] = []
    for number, kill in enumerate(trial.kills):
        status = _life(folder, config, kill, folder / f"log-{number}")
        if kill.signal == signal.SIGTERM and status == 0:
            hit.append(str(TERM))
            killed.append(remains_of(folder))
            violations += [f"after {kill}: {sentence}" for sentence in after_kill(killed[-1])]
            if all(earlier.signal == signal.SIGTERM for earlier in trial.kills[:number]):
                violations += [f"after {kill}: {sentence}" for sentence in after_term(killed[-1])]
        elif status == -signal.SIGKILL:
            hit.append(kill.point)
            killed.append(remains_of(folder))
            violations += [f"after {kill}: {sentence}" for sentence in after_kill(killed[-1])]
        elif status != 0:
            violations.append(f"the life to be killed at {kill} ended with {status}")
    begun = monotonic()
    status = _life(folder, config, None, folder / "log-last")
    seconds = monotonic() - begun
    left = remains_of(folder)
    if status != 0:
        violations.append(f"the last life ended with {status}" if status != -signal.SIGKILL else "the last life hangs")
    violations += at_the_end(left, killed)
    violations += [f"a process outlives the trial: {name}" for name in _survivors(folder)]
    return Outcome(trial=trial, hit=tuple(hit), violations=tuple(violations), resent=resent(left), seconds=seconds)


def _life(folder: Path, config: Path, kill: Kill | None, log: Path) -> int:
    """Live in a process of its own; return its exit code, negative for the signal that ended it."""
    child = os.fork()
    if child == 0:
        _be_the_life(folder, config, kill, log)
    at_s = kill.at if kill is not None and kill.point == INSTANT else LONGEST_S
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], at_s)[0]:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _be_the_life(folder: Path, config: Path, kill: Kill | None, log: Path) -> None:
    """Never returns: the child must not go on with what its parent was doing."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C is for the campaign, which ends after this trial
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        live(folder, config, kill)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _survivors(folder: Path) -> Sequence[str]:
    """Command lines of processes that work in or for the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue  # it has just ended
            if str(folder) in command and state != "Z":
                found.append(f"{entry.name} {command:.80}")
    return found
