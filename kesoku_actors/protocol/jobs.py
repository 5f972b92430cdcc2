"""Jobs and approvals as surfaces and tools see them: what runs on behind a result, and what waits for a person. Pure.

A *job* is a call that went on at its deadline (I8): its result says so and names it, and its end is told by one notice.
An *approval* is a call that waits for a person's yes (T7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kesoku_actors.protocol.messages import Outcome
from kesoku_actors.protocol.sessions import CallState
from kesoku_actors.values import frozen

_NAME: Final = re.compile(r"(?:job)?[ -]?(\d{1,9})", re.I)


class JobState(StrEnum):
    """Life of a job."""

    RUNNING = "running"
    OVER = "over"
    """It has ended, and its notice waits for the result of its call."""
    TOLD = "told"


class JobEnding(StrEnum):
    """Why a job ended."""

    EXITED = "exited"
    """By itself: the one end that wakes the session (I6), beside a loss."""
    STOPPED = "stopped"
    """By the model or a person who named it."""
    FORCED = "forced"
    CLEARED = "cleared"
    SHUTDOWN = "shutdown"
    LOST = "lost"
    """The program ended, or failed, under it."""


WAKING: Final = frozenset({JobEnding.EXITED, JobEnding.LOST})
"""Ends that nobody here asked for."""


@frozen(kw_only=True)
class Job:
    """One job."""

    number: int
    """Counts within the session."""
    session_id: str
    call_id: str
    title: str
    """What runs: the command."""
    state: JobState
    began: float
    """UTC seconds at which its call became a job."""
    ended: float | None = None
    ending: JobEnding | None = None
    detail: str = ""
    """How it ended, in words."""
    output_file: str | None = None
    """What it says, in the session's folder."""

    @property
    def id(self) -> str:
        """What it is called."""
        return job_id(self.number)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.state is JobState.RUNNING


def job_id(number: int) -> str:
    """Return the name of a session's job: short, and easy to say."""
    return f"job{number}"


def job_number(name: str) -> int | None:
    """Return the number of a job as people and models write its name: `job3`, `job 3`, `3`; none for anything else."""
    found = _NAME.fullmatch(name.strip())
    return int(found[1]) if found else None


@frozen(kw_only=True)
class Approval:
    """A call that waits for a person's yes."""

    call_id: str
    session_id: str
    root_id: str
    tool: str
    arguments: Mapping[str, Any]
    expires: float
    """UTC seconds."""
    parts: tuple[str, ...] | None
    """What a yes for the session would cover of the tool, the programs of a command for instance; none: it cannot be
    given. Empty: the tool as a whole."""


@frozen(kw_only=True)
class Standing:
    """How a call that needs approval stands; a state of none: there is no such call."""

    state: CallState | None
    is_approved: bool = False
    """Whether it may start, being `committed`."""
    expires: float | None = None
    """Until when it waits."""
    outcome: Outcome | None = None
    """How it was settled."""


@frozen(kw_only=True)
class JobBegun:
    """The job stands under this number of its session."""

    number: int


@frozen(kw_only=True)
class TooManyJobs:
    """As many as may run do: nothing was changed."""

    max_jobs: int
