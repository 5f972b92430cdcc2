"""Jobs (I8): a call goes on behind its result, until it ends by itself or is ended.

The order of facts: the result `background` is durable with the job, `Settled` is told and the slot is free; the run
goes on; its end is durable with the notice of it. A job outlives its turn and its worker, not its session and not the
program: force ends those of the turn, a clear those of the session, and a stop of the program all, once no call runs
any more or the time of the calls is over (I7, M7, C7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from attrs import field

from kesoku_actors.clock import Clock
from kesoku_actors.protocol import CallState, JobBegun, JobEnding, Outcome, TooManyJobs, job_id
from kesoku_actors.tools.board import Board, Ending, Run
from kesoku_actors.tools.patience import until_it_stands
from kesoku_actors.tools.port import Journal, NewJob, Settled, ToolOutcome
from kesoku_actors.values import define

MAX_JOBS: Final = 8
NOTICE_CHARS: Final = 2_000
"""Of what a job said last, in its notice."""
_TITLE_CHARS: Final = 500
_ENDINGS: Final[Mapping[Ending | None, JobEnding]] = {
    None: JobEnding.EXITED,
    Ending.STOPPED: JobEnding.STOPPED,
    Ending.FORCED: JobEnding.FORCED,
    Ending.CLEARED: JobEnding.CLEARED,
    Ending.SHUTDOWN: JobEnding.SHUTDOWN,
}
_WORDS: Final[Mapping[JobEnding, str]] = {
    JobEnding.EXITED: "has ended by itself",
    JobEnding.STOPPED: "was ended as asked",
    JobEnding.FORCED: "was ended by force",
    JobEnding.CLEARED: "was ended because its session was cleared",
    JobEnding.SHUTDOWN: "was ended because the program stopped",
    JobEnding.LOST: "was lost: the program ended, or failed, while it ran",
}


@define(kw_only=True, eq=False)
class Jobs:
    """The jobs that run in this process."""

    journal: Journal
    board: Board
    clock: Clock
    max_jobs: int
    """How many may run in one session."""
    tell: Callable[[str], None]
    """Told, one line each, of jobs that the program ended by itself (C7)."""
    _runs: dict[str, Run] = field(factory=dict, init=False)
    _changed: trio.Event = field(factory=trio.Event, init=False)

    def all(self) -> tuple[Run, ...]:
        """Return the runs of the jobs, oldest first."""
        return tuple(self._runs.values())

    def of(self, session_id: str) -> tuple[Run, ...]:
        """Return those of one session."""
        return tuple(run for run in self._runs.values() if run.call.session_id == session_id)

    def find(self, call_id: str) -> Run | None:
        """Return the run of a job by its call; none when it does not run here."""
        return self._runs.get(call_id)

    async def begin(self, run: Run, said: ToolOutcome, seconds: float, *, is_asked: bool) -> str | None:
        """Let a started call go on as a job. Return why it may not, in words; none when it does."""
        why = "as asked" if is_asked else f"after {seconds:.0f} s"
        before = f"{said.content.rstrip()}\n" if said.content.strip() else ""
        new = NewJob(
            title=title_of(run.call.arguments)[:_TITLE_CHARS],
            content=(f"{before}[goes on in the background {why}, as ", f"; {_HOW}]"),
            duration_s=max(0.0, seconds),
            metadata=said.metadata,
            output_file=said.output_file,
            max_jobs=self.max_jobs,
        )
        match await until_it_stands(lambda: self.journal.begin_job(run.call.call_id, new)):
            case JobBegun(number=number):
                run.job, run.state = job_id(number), CallState.SETTLED
                self._runs[run.call.call_id] = run
                settled = Settled(call_id=run.call.call_id, outcome=Outcome.BACKGROUND)
                self.board.tell(run.call.session_id, settled)
                return None
            case TooManyJobs(max_jobs=most):
                return f"{most} jobs run in this session already"
            case None:
                return "its result stands already"

    async def end(self, run: Run, outcome: ToolOutcome) -> None:
        """Record the end of a job, with what came of it."""
        ending = _ENDINGS[run.ending]
        await self._record(run, ending, outcome)

    async def lose(self, run: Run) -> None:
        """Record that a run is gone and nobody knows what came of it, if it is a job; here or in the store alone."""
        if run.job is None:
            jobs = await until_it_stands(lambda: self.journal.jobs(run.call.session_id))
            run.job = next((job.id for job in jobs if job.call_id == run.call.call_id and job.is_running), None)
        if run.job is not None:
            await self._record(run, JobEnding.LOST, ToolOutcome(outcome=Outcome.UNKNOWN, content=""))

    async def _record(self, run: Run, ending: JobEnding, outcome: ToolOutcome) -> None:
        detail = detail_of(outcome.metadata)
        notice = notice_of(run.job or "", title_of(run.call.arguments), ending, outcome)
        await until_it_stands(lambda: self.journal.end_job(run.call.call_id, ending, detail, notice))
        self._runs.pop(run.call.call_id, None)
        self._changed.set()
        self._changed = trio.Event()
        if ending is JobEnding.SHUTDOWN:
            self.tell(f"{run.job} was ended because the program stops: {title_of(run.call.arguments)}")

    async def until_over(self, *runs: Run) -> None:
        """Wait until the end of each of these is recorded."""
        while any(run.call.call_id in self._runs for run in runs):
            await self._changed.wait()


_HOW: Final = "job_output reads what it says, job_stop ends it; you are told when it has ended"


def title_of(arguments: Mapping[str, Any]) -> str:
    """Return what a call runs, in one line: its command, else its first argument that is text."""
    texts = (value for value in (arguments.get("command"), *arguments.values()) if isinstance(value, str))
    return " ".join(next(texts, "").split())


def detail_of(metadata: Mapping[str, Any]) -> str:
    """Return how a command ended, in words; nothing when nobody knows."""
    if isinstance(number := metadata.get("signal"), int):
        return f"ended by signal {number}"
    return f"exit status {status}" if isinstance(status := metadata.get("exit_status"), int) else ""


def lost_job(job: str, title: str) -> str:
    """Return what the model is told of a job that an earlier life of the program began."""
    return notice_of(job, title, JobEnding.LOST, ToolOutcome(outcome=Outcome.UNKNOWN, content=""))


def notice_of(job: str, title: str, ending: JobEnding, outcome: ToolOutcome) -> str:
    """Return what the model is told of a job's end: how, what it said last, and where all of it is."""
    how = f": {detail}" if (detail := detail_of(outcome.metadata)) else ""
    lines = [f"The background job {job} ({title[:200]}) {_WORDS[ending]}{how}."]
    if said := outcome.content.strip():
        lines.append(f"The end of what it said:\n{said[-NOTICE_CHARS:]}")
    if outcome.output_file is not None:
        lines.append(f"All it said is in {outcome.output_file}")
    return "\n".join(lines)
