"""What the tool actor is asked and tells, and what it needs of the store. Pure values and protocols.

A call runs at most once: `Journal.started` is durable before the function or process is entered (C3), the outcome
is staged durably before anybody hears of it (O3). A run is never cancelled by a message (I3); only `end` (force)
and shutdown end it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kesoku_actors.protocol import (
    CallState,
    Channel,
    Job,
    JobBegun,
    JobEnding,
    Outcome,
    Standing,
    TooManyJobs,
)
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class ToolCall:
    """A committed call to run: `call_id` is its message id, its identity."""

    call_id: str
    session_id: str
    root_id: str
    name: str
    arguments: Mapping[str, Any]
    invalid: str | None = None
    """Why the model's arguments could not be parsed; settles as an error without running."""
    channel: Channel | None = None
    """Where it is talked: a channel may ask for approval more, or less, than others (T7)."""


@frozen(kw_only=True)
class ToolOutcome:
    """How a run ended: what the model reads, and data about it (exit status, path of the whole output ...)."""

    outcome: Outcome
    content: str
    metadata: Mapping[str, Any] = {}
    output_file: str | None = None
    """Where the whole output is already, in the session's folder; else a long content gets a file of its own."""


async def _report_nothing(_pid: int, _process_start: float | None) -> None:
    """What a context does with a process when nobody keeps a record of it."""


def _watch_nothing(_so_far: Callable[[], ToolOutcome]) -> None:
    """What a context does with a way to ask a run when nobody asks."""


def _stay() -> None:
    """What a context does with the wish to go on in the background where nothing can."""


@frozen(kw_only=True)
class ToolContext:
    """What a running tool may know of where it runs, and whom it may tell."""

    session_id: str
    call_id: str
    workspace: Path
    """The session's folder; exists."""
    report_process: Callable[[int, float | None], Awaitable[None]] = _report_nothing
    """Records the process group the call runs as, with its start time in clock ticks (C3)."""
    watch: Callable[[Callable[[], ToolOutcome]], None] = _watch_nothing
    """Takes a function that tells what is known so far: for a run that is ended from outside, or becomes a job."""
    go_on_behind: Callable[[], None] = _stay
    """Asks to become a job now instead of at the deadline (I8); for a tool that may."""
    mask: Callable[[str], str] = str
    """Takes known secrets out of a text: for what a tool writes by itself (T6)."""


@frozen(kw_only=True)
class Started:
    """The call runs."""

    call_id: str


@frozen(kw_only=True)
class AwaitingApproval:
    """The call waits for a person (T7)."""

    call_id: str


@frozen(kw_only=True)
class Settled:
    """The call's outcome is staged."""

    call_id: str
    outcome: Outcome


ToolEvent = Started | AwaitingApproval | Settled
Sink = Callable[[ToolEvent], None]
"""Synchronous, never blocks, never raises: a worker's face."""


class Journal(Protocol):
    """What the tool actor needs of the store; `app` builds it."""

    async def started(self, call_id: str) -> bool:
        """Record the start durably. False: the call may not start (settled or withdrawn meanwhile)."""
        ...

    async def waiting(self, call_id: str, expires: float | None, parts: tuple[str, ...] | None) -> Standing:
        """Record that it waits for approval until `expires` (UTC seconds; none: nobody can be asked), or tell that it
        need not. `parts` is what a yes for the session would cover (`Approval.parts`). Safe to repeat."""
        ...

    async def allow(self, call_id: str) -> bool:
        """Let a waiting call start because the settings need no yes for it any more. False: it does not wait."""
        ...

    async def expired(self, call_id: str) -> bool:
        """Settle a call that nobody answered in time. False: it does not wait any more."""
        ...

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        """Record where it runs."""

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        """Stage its outcome durably. False: another outcome was first and stands."""
        ...

    async def begin_job(self, call_id: str, job: NewJob) -> JobBegun | TooManyJobs | None:
        """Stage the result of a call that goes on as a job. None: another outcome was first. Safe to repeat."""
        ...

    async def end_job(self, call_id: str, ending: JobEnding, detail: str, notice: str) -> bool:
        """Record the end of a job and what is told of it. False: it had ended before."""
        ...

    async def jobs(self, session_id: str) -> tuple[Job, ...]:
        """Return the jobs of a session, oldest first."""
        ...


@frozen(kw_only=True)
class NewJob:
    """A call that is about to become a job."""

    title: str
    content: tuple[str, str]
    """The result; the job's name stands between the two."""
    duration_s: float
    metadata: Mapping[str, Any]
    output_file: str | None
    max_jobs: int


@frozen(kw_only=True)
class RunningCall:
    """A call as the tool actor sees it now."""

    call_id: str
    session_id: str
    root_id: str
    state: CallState
