"""What the tool actor is asked and tells, and what it needs of the store. Pure values and protocols.

A call runs at most once: `Journal.started` is durable before the function or process is entered (C3), the outcome
is staged durably before anybody hears of it (O3). A run is never cancelled by a message (I3); only `end` (force)
and shutdown end it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from kesoku_actors.protocol import CallState, Outcome


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


@frozen(kw_only=True)
class ToolOutcome:
    """How a run ended: what the model reads, and data about it (exit status, path of the whole output ...)."""

    outcome: Outcome
    content: str
    metadata: Mapping[str, Any] = {}


async def _report_nothing(_pid: int, _process_start: float | None) -> None:
    """What a context does with a process when nobody keeps a record of it."""


def _keep_nothing(_outcome: ToolOutcome) -> None:
    """What a context does with a part of the outcome when nobody waits for it."""


@frozen(kw_only=True)
class ToolContext:
    """What a running tool may know of where it runs, and whom it may tell."""

    session_id: str
    call_id: str
    workspace: Path
    """The session's folder; exists."""
    report_process: Callable[[int, float | None], Awaitable[None]] = _report_nothing
    """Records the process group the call runs as, with its start time in clock ticks (C3)."""
    keep: Callable[[ToolOutcome], None] = _keep_nothing
    """Takes what is known so far; the model reads the last one kept when the run is ended from outside."""


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

    async def waiting(self, call_id: str, expires: float) -> bool:
        """Record that it waits for approval until `expires` (UTC seconds)."""
        ...

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        """Record where it runs."""

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        """Stage its outcome durably. False: another outcome was first and stands."""
        ...


@frozen(kw_only=True)
class RunningCall:
    """A call as the tool actor sees it now."""

    call_id: str
    session_id: str
    root_id: str
    state: CallState
