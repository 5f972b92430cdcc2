"""Who may run now: the queue and the slots of every session, and who is told. Pure.

* A session's calls start in the order they came, at most `parallel` at once (I1).
* A run has one slot from the moment it is taken from the queue until it is over; one whose thread was abandoned keeps
  it until the thread returns (I8).
* A call is known once: starting it again while it waits or runs changes nothing.
* A call that needs a person's yes starts nothing before it is known to have it; whoever comes after it waits for that
  as well, so that calls start in order. Once it is known that a person must be asked it stands aside, holds no slot and
  keeps nobody; with the yes it is queued again, in its old order (T7, C3).
* A call that goes on as a job gives its slot back, and is no call any more (I8).
* A session on hold starts nothing until somebody attends to it again; whoever put it on hold is told when no call is
  on its way to its start any more, so that what started is known for good (C7).
* A session without calls, slots and sink is not remembered (B3).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import field

from kesoku_actors.protocol import CallState
from kesoku_actors.tools.port import AwaitingApproval, RunningCall, Sink, Started, ToolCall, ToolEvent
from kesoku_actors.values import define


class Ending(enum.Enum):
    """Why a run is ended from outside."""

    FORCED = "forced"
    SHUTDOWN = "shutdown"
    STOPPED = "stopped"
    """A job, by name."""
    CLEARED = "cleared"


def _nothing() -> None:
    """Wake nobody."""


@define(kw_only=True, eq=False)
class Run:
    """One call while the runner knows it."""

    call: ToolCall
    workspace: Path
    state: CallState = CallState.COMMITTED
    number: int = 0
    """Counts the calls as they came."""
    needs_yes: bool = False
    """Whether it may not start before it is known that somebody said yes."""
    is_aside: bool = False
    """Whether it waits for a person, outside the queue."""
    look: Callable[[], None] = _nothing
    """Wakes who asks for the yes; set once somebody does."""
    job: str | None = None
    """What it is called, once it goes on as a job."""
    taken: bool = False
    """Whether it left the queue: from then on it starts, whatever is withdrawn."""
    ending: Ending | None = None
    on_end: Callable[[], None] | None = None
    """Cancels what runs; set once something does."""

    @property
    def is_starting(self) -> bool:
        """Whether it left the queue and its start is not known to stand, nor that it never will."""
        return self.taken and self.state is CallState.COMMITTED

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
    queue: list[Run] = field(factory=list)
    """Short: a deque would take a kilobyte of every session at work, most of which call nothing."""
    parallel: int = 1
    slots_taken: int = 0
    sink: Sink | None = None
    on_hold: bool = False
    when_quiet: Callable[[], None] | None = None
    """Called once, when no call of the session is on its way to its start."""


@define
class Board:
    """All sessions' queues and slots. Synchronous: whoever changes it has changed it when the call returns."""

    _sessions: dict[str, _Session] = field(factory=dict, init=False)
    _runs: dict[str, Run] = field(factory=dict, init=False)
    _count: int = field(default=0, init=False)

    def enqueue(
        self,
        calls: Sequence[ToolCall],
        *,
        workspace: Path,
        parallel: int,
        needs_yes: Callable[[ToolCall], bool] = lambda _call: False,
    ) -> None:
        """Queue `calls` in order; `parallel` is from now on the session's bound. A session on hold takes none."""
        for call in calls:
            if call.call_id not in self._runs and not self._session(call.session_id).on_hold:
                self._count += 1
                run = Run(call=call, workspace=workspace, number=self._count, needs_yes=needs_yes(call))
                self._runs[call.call_id] = run
                self._session(call.session_id).queue.append(run)
            self._session(call.session_id).parallel = max(1, parallel)

    def take(self) -> Run | None:
        """Take one call that has a slot now out of its queue; it holds the slot until `finish`. None when none has."""
        for session in self._sessions.values():
            if session.queue and session.slots_taken < session.parallel and not session.queue[0].needs_yes:
                run = session.queue.pop(0)
                run.taken = True
                session.slots_taken += 1
                return run
        return None

    def put_back(self, run: Run) -> None:
        """The run did not begin after all: it is the first of its queue again."""
        session = self._session(run.call.session_id)
        session.queue.insert(0, run)
        session.slots_taken -= 1
        run.taken = False

    def set_aside(self, run: Run) -> None:
        """It waits for a person: it leaves its queue and is told of."""
        if not run.is_aside:
            run.is_aside = True
            self._session(run.call.session_id).queue.remove(run)
            self.tell(run.call.session_id, AwaitingApproval(call_id=run.call.call_id))

    def clear(self, run: Run) -> None:
        """It has its yes, or needs none: it starts like any other, in the order it came."""
        run.needs_yes = False
        if run.is_aside:
            run.is_aside = False
            queue = self._session(run.call.session_id).queue
            queue.insert(sum(other.number < run.number for other in queue), run)

    def withdraw(self, call_id: str) -> Run | None:
        """Take `call_id` out of its queue, or from aside; none when it is neither."""
        run = self._runs.get(call_id)
        if run is None or run.taken:
            return None
        if not run.is_aside:
            self._session(run.call.session_id).queue.remove(run)
        self._forget(run)
        run.look()
        return run

    def finish(self, run: Run, *, keeps_slot: bool = False) -> None:
        """The run is over; its slot is free unless an abandoned thread keeps it until `free`."""
        if self._runs.get(run.call.call_id) is run:  # the call may be queued anew meanwhile
            del self._runs[run.call.call_id]
        if not keeps_slot:
            self.free(run)
        self._look_quiet(run.call.session_id)

    def free(self, run: Run) -> None:
        """Give the run's slot back; a second time changes nothing."""
        if run.taken:
            run.taken = False
            self._session(run.call.session_id).slots_taken -= 1
            self._tidy(run.call.session_id)

    def drop(self, session_id: str) -> None:
        """Forget the session's calls that have not left their queue, those aside too."""
        self._withdraw_all(session_id)
        self._tidy(session_id)

    def hold(self, session_id: str, when_quiet: Callable[[], None]) -> None:
        """Forget what is queued or aside, take nothing more, and call `when_quiet` when it is known what started."""
        session = self._session(session_id)
        session.on_hold, session.when_quiet = True, when_quiet
        self._withdraw_all(session_id)
        self._look_quiet(session_id)

    def mark_started(self, run: Run) -> None:
        """The start of the run is durable: tell of it."""
        run.state = CallState.STARTED
        self.tell(run.call.session_id, Started(call_id=run.call.call_id))
        self._look_quiet(run.call.session_id)

    def attach(self, session_id: str, sink: Sink) -> None:
        """Tell `sink` from now on, and nobody else, of the session's calls; a hold is over."""
        session = self._session(session_id)
        session.sink, session.on_hold, session.when_quiet = sink, False, None

    def detach(self, session_id: str) -> None:
        """Tell nobody of the session's calls."""
        session = self._session(session_id)
        session.sink = session.when_quiet = None
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

    def asking(self, session_id: str) -> tuple[Run, ...]:
        """Return the session's calls that are not known to have a yes, aside already or not: the word that a call waits
        and a person's answer may cross."""
        return tuple(run for run in self._runs.values() if run.call.session_id == session_id and run.needs_yes)

    def running(self, session_id: str) -> tuple[RunningCall, ...]:
        """Return the session's calls that are queued, wait for a person, or run."""
        return tuple(run.described() for run in self._runs.values() if run.call.session_id == session_id)

    def _withdraw_all(self, session_id: str) -> None:
        for run in self.runs():
            if run.call.session_id == session_id:
                self.withdraw(run.call.call_id)

    def _session(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())

    def _look_quiet(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is None or session.when_quiet is None:
            return
        if any(run.call.session_id == session_id and run.is_starting for run in self._runs.values()):
            return
        quiet, session.when_quiet = session.when_quiet, None
        quiet()

    def _forget(self, run: Run) -> None:
        self._runs.pop(run.call.call_id, None)
        self._tidy(run.call.session_id)

    def _tidy(self, session_id: str) -> None:
        session = self._session(session_id)
        if not session.queue and not session.slots_taken and session.sink is None:
            del self._sessions[session_id]
