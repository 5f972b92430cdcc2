"""What the zoo knows of a planted bug: its cause, its symptom, how hard it is to hit, and what races.

The causes are those that studies of bugs in actor programs tell apart, first among them the study of 186 bugs of Akka
programs by Bagherzadeh, Fireman, Shawesh and Khatchadourian (2020), made finer where one cause would hold too many, and
three of their own for the ports, whose programs share memory and send no messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import PurePath
from typing import Final

from attrs import field, frozen

from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.zoo.scenery import Program

MARK: Final = "# race:"
"""Begins the comment on a line that races, in the source of a planted bug."""


class Cause(StrEnum):
    """Why a program is wrong."""

    MESSAGE_ORDER = "order of messages"
    LIFE_CYCLE = "message against life cycle"
    RESTART_LOSS = "lost at restart"
    SUPERVISION = "supervision state"
    TERMINATION = "termination"
    STALE_REFERENCE = "stale reference"
    BLOCKING = "blocking"
    CHECK_THEN_ACT = "check, then act"
    CANCELLATION = "cancelled in a gap"
    LOST_WAKEUP = "lost wake-up"
    TIMER = "timer against result"
    LEAK = "leak on cancellation"
    SHUTDOWN = "order of shutdown"
    SUBSCRIPTION = "gap of a subscription"
    DUPLICATE = "delivered twice"
    BATCH = "torn batch"
    STARVATION = "starvation"
    SHARED_UPDATE = "shared memory: update"
    SHARED_ORDER = "shared memory: order"
    LOCK_ORDER = "shared memory: locks"


class Symptom(StrEnum):
    """What somebody notices."""

    LOST = "lost"
    TWICE = "twice"
    WRONG = "wrong state"
    ORDER = "wrong order"
    CRASH = "crash"
    STUCK = "stuck"
    LATE = "late"


class Difficulty(StrEnum):
    """How often sampling hits it."""

    EASY = "easy"
    """Random schedules hit it in 10 % of runs and more."""
    NORMAL = "normal"
    HARD = "hard"
    """Random and priority schedules of depth 3 hit it in less than 0.1 % of runs."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@frozen
class Bug:
    """A planted bug and its twin without it."""

    make: Callable[..., Program]
    """Takes `fixed`, keyword only, and returns the program."""
    cause: Cause
    symptom: Symptom
    difficulty: Difficulty
    failure: str
    """What the name of its failure begins with; for an assertion, what it says."""
    races: tuple[str, ...] = field(converter=_words)
    """The names of the tasks that race; one name twice when two tasks of it do."""

    @property
    def name(self) -> str:
        return self.make.__name__

    @property
    def story(self) -> str:
        """What happens, in one sentence."""
        return " ".join(inspect.cleandoc(self.make.__doc__ or "").split())

    @property
    def is_port(self) -> bool:
        """Whether it is a program of SCTBench."""
        return self.make.__module__.endswith(".ports")

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that race, as `file.py:12`."""
        source, first = inspect.getsourcelines(self.make)
        file = PurePath(inspect.getsourcefile(self.make) or "").name
        return tuple(f"{file}:{first + at}" for at, line in enumerate(source) if MARK in line)

    def program(self, *, fixed: bool = False) -> Program:
        """Return the program with the bug, or without it."""
        return self.make(fixed=fixed)

    def is_shown_by(self, error: BaseException | None) -> bool:
        """Return whether a run that ended like this shows the bug."""
        return error is not None and failure_of(error).removeprefix("AssertionError: ").startswith(self.failure)
