"""Who may run now: the queue and the slots of every session, and who is told. Pure.

* A session's calls start in the order they came, at most `parallel` at once (I1).
* A run has one slot from the moment it is taken from the queue until it is over; one whose thread was abandoned keeps
  it until the thread returns (I8).
* A call is known once: starting it again while it waits or runs changes nothing.
* A session without calls, slots and sink is not remembered (B3).
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, field

from kesoku_actors.protocol import CallState
from kesoku_actors.tools.port import RunningCall, Sink, ToolCall, ToolEvent


class Ending(enum.Enum):
    """Why a run is ended from outside."""

    FORCED = "forced"
    SHUTDOWN = "shutdown"


@define(kw_only=True, eq=False)
class Run:
    """One call while the runner knows it."""

    call: ToolCall
    workspace: Path
    state: CallState = CallState.COMMITTED
    taken: bool = False
    """Whether it left the queue: from then on it starts, whatever is withdrawn."""
    ending: Ending | None = None
    on_end: Callable[[], None] | None = None
    """Cancels what runs; set once something does."""

    def described(self) -> RunningCall:
        """Return what others may know of it."""
        return RunningCall(
            call_id=self.call.call_id,
            session_id=self.call.session_id,
            root_id=self.call.root_id,
            state=self.state,
        )

    def end(self, ending: Ending) -> None:
        """Have the run ended; the first reason stands."""
        if self.ending is None:
            self.ending = ending
            if self.on_end is not None:
                self.on_end()


@define(eq=False)
class _Session:
    queue: deque[Run] = field(factory=deque)
    parallel: int = 1
    slots_taken: int = 0
    sink: Sink | None = None


@define
class Board:
    """All sessions' queues and slots. Synchronous: whoever changes it has changed it when the call returns."""

    _sessions: dict[str, _Session] = field(factory=dict, init=False)
    _runs: dict[str, Run] = field(factory=dict, init=False)

    def enqueue(self, calls: Sequence[ToolCall], *, workspace: Path, parallel: int) -> None:
        """Queue `calls` in order; `parallel` is from now on the session's bound."""
        for call in calls:
            if call.call_id not in self._runs:
                run = self._runs[call.call_id] = Run(call=call, workspace=workspace)
                self._session(call.session_id).queue.append(run)
            self._session(call.session_id).parallel = max(1, parallel)

    def take(self) -> Run | None:
        """Take one call that has a slot now out of its queue; it holds the slot until `finish`. None when none has."""
        for session in self._sessions.values():
            if session.queue and session.slots_taken < session.parallel:
                run = session.queue.popleft()
                run.taken = True
                session.slots_taken += 1
                return run
        return None

    def put_back(self, run: Run) -> None:
        """The run did not begin after all: it is the first of its queue again."""
        session = self._session(run.call.session_id)
        session.queue.appendleft(run)
        session.slots_taken -= 1
        run.taken = False

    def withdraw(self, call_id: str) -> Run | None:
        """Take `call_id` out of its queue; none when it is not queued."""
        run = self._runs.get(call_id)
        if run is None or run.taken:
            return None
        self._session(run.call.session_id).queue.remove(run)
        self._forget(run)
        return run

    def finish(self, run: Run, *, keeps_slot: bool = False) -> None:
        """The run is over; its slot is free unless an abandoned thread keeps it until `free`."""
        if self._runs.get(run.call.call_id) is run:  # the call may be queued anew meanwhile
            del self._runs[run.call.call_id]
        if not keeps_slot:
            self.free(run)

    def free(self, run: Run) -> None:
        """Give the run's slot back; a second time changes nothing."""
        if run.taken:
            run.taken = False
            self._session(run.call.session_id).slots_taken -= 1
            self._tidy(run.call.session_id)

    def drop(self, session_id: str) -> None:
        """Forget the session's calls that are still queued."""
        for run in tuple(self._session(session_id).queue):
            self.withdraw(run.call.call_id)
        self._tidy(session_id)

    def attach(self, session_id: str, sink: Sink) -> None:
        """Tell `sink` from now on, and nobody else, of the session's calls."""
        self._session(session_id).sink = sink

    def detach(self, session_id: str) -> None:
        """Tell nobody of the session's calls."""
        self._session(session_id).sink = None
        self._tidy(session_id)

    def tell(self, session_id: str, event: ToolEvent) -> None:
        """Hand `event` to the session's sink, if it has one."""
        session = self._sessions.get(session_id)
        if session is not None and session.sink is not None:
            session.sink(event)

    def find(self, call_id: str) -> Run | None:
        """Return the run of a call that is queued or runs."""
        return self._runs.get(call_id)

    def runs(self) -> tuple[Run, ...]:
        """Return every run that is queued or runs, in the order they came."""
        return tuple(self._runs.values())

    def running(self, session_id: str) -> tuple[RunningCall, ...]:
        """Return the session's calls that are queued or run."""
        return tuple(run.described() for run in self._runs.values() if run.call.session_id == session_id)

    def _session(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())

    def _forget(self, run: Run) -> None:
        self._runs.pop(run.call.call_id, None)
        self._tidy(run.call.session_id)

    def _tidy(self, session_id: str) -> None:
        session = self._session(session_id)
        if not session.queue and not session.slots_taken and session.sink is None:
            del self._sessions[session_id]
