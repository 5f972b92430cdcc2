"""The tool actor's journal, on the store's face; a call's way passes by here, so its kill points are here too.

::

    tool.before_start | started is durable | tool.started | function or process | tool.spawned | its pid is durable
    | tool.recorded | ... | tool.ended | the outcome is durable | tool.staged

    approval.before_wait | that it waits is durable, or known | approval.known ... approval.before_expiry | settled

    tool.recorded | ... | job.before_begin | job and result are durable | job.begun | ... | job.ended | its end is
    durable, its notice with it or with the result | job.told
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kesoku_actors.protocol import Job, JobBegun, JobEnding, Outcome, Standing, TooManyJobs
from kesoku_actors.store import (
    AnswerApproval,
    BeginJob,
    CallExpired,
    CallProcess,
    CallStarted,
    CallWaiting,
    EndJob,
    StageOutcome,
    Store,
)
from kesoku_actors.tools import NewJob
from kesoku_actors.values import frozen

SETTINGS = "the settings"
"""Who decided about a call that nobody need be asked about any more."""


@frozen
class StoreJournal:
    """Implements `kesoku_actors.tools.Journal`."""

    store: Store
    probe: Callable[[str], None]
    """Told the names of the points where a crash matters."""

    async def started(self, call_id: str) -> bool:
        self.probe("tool.before_start")
        may_start = await self.store.call_started(CallStarted(call_id=call_id))
        self.probe("tool.started")
        return may_start

    async def waiting(self, call_id: str, expires: float | None, parts: tuple[str, ...] | None) -> Standing:
        self.probe("approval.before_wait")
        standing = await self.store.call_waiting(CallWaiting(call_id=call_id, expires=expires, parts=parts))
        self.probe("approval.known")
        return standing

    async def allow(self, call_id: str) -> bool:
        allow = AnswerApproval(call_id=call_id, approved=True, by=SETTINGS, is_admin=True)
        return (await self.store.answer_approval(allow)).accepted

    async def expired(self, call_id: str) -> bool:
        self.probe("approval.before_expiry")
        return await self.store.call_expired(CallExpired(call_id=call_id))

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        self.probe("tool.spawned")
        await self.store.call_process(CallProcess(call_id=call_id, pid=pid, process_start=process_start))
        self.probe("tool.recorded")

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        self.probe("tool.ended")
        is_first = await self.store.stage(
            StageOutcome(call_id=call_id, outcome=outcome, content=content, duration_s=duration_s, metadata=metadata)
        )
        self.probe("tool.staged")
        return is_first

    async def begin_job(self, call_id: str, job: NewJob) -> JobBegun | TooManyJobs | None:
        self.probe("job.before_begin")
        begin = BeginJob(
            call_id=call_id,
            title=job.title,
            content=job.content,
            duration_s=job.duration_s,
            metadata=job.metadata,
            output_file=job.output_file,
            max_jobs=job.max_jobs,
        )
        begun = await self.store.begin_job(begin)
        self.probe("job.begun")
        return begun

    async def end_job(self, call_id: str, ending: JobEnding, detail: str, notice: str) -> bool:
        self.probe("job.ended")
        is_first = await self.store.end_job(EndJob(call_id=call_id, ending=ending, detail=detail, notice=notice))
        self.probe("job.told")
        return is_first

    async def jobs(self, session_id: str) -> tuple[Job, ...]:
        return await self.store.reader.jobs(session_id)
