"""The tools by which a model deals with its background jobs: `list_jobs`, `job_output`, `job_stop` (I8).

Each sees the jobs of its own session alone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, Final

import trio

from kesoku_actors.protocol import Job, Outcome, job_number
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.tools.registry import ToolRegistry
from kesoku_actors.tools.runner import Tools
from kesoku_actors.tools.spool import FOLDER, read_part

OWNER: Final = "kesoku"
_PART_BYTES: Final = 12_000
_LISTED: Final = 30


JOB_TOOLS: Final = ("list_jobs", "job_output", "job_stop")


def add_job_tools(registry: ToolRegistry, tools: Callable[[], Tools]) -> None:
    """Register them, where there is a tool that can become a job; `tools` is asked when one of them is called."""
    if any(tool.becomes_job for tool in map(registry.find, registry.names()) if tool is not None):
        for function in job_tools(tools):
            registry.add(function, owner=OWNER)


def job_tools(tools: Callable[[], Tools]) -> tuple[Callable[..., Any], ...]:
    """Return the functions."""

    async def list_jobs(context: ToolContext) -> str:
        """List the background jobs of this session: name, state, and what each runs."""
        jobs = await tools().journal.jobs(context.session_id)
        lines = [_line(job, tools().clock.wall()) for job in jobs[-_LISTED:]]
        earlier = [f"[{len(jobs) - _LISTED} earlier jobs are not listed]"] if len(jobs) > _LISTED else []
        return "\n".join([*earlier, *lines]) or "There are no background jobs in this session."

    async def job_output(job_id: str, context: ToolContext, start: int | None = None) -> ToolOutcome:
        """Read what a background job has said.

        Args:
            job_id: The job's name, as "job1".
            start: The byte to read from; the last line of an answer says where to go on. Without it the end is read.
        """
        job = await _find(tools(), context.session_id, job_id)
        if isinstance(job, ToolOutcome):
            return job
        text, where = await trio.to_thread.run_sync(_part, context, job, start)
        state = _state(job, tools().clock.wall())
        return ToolOutcome(
            outcome=Outcome.OK,
            content=f"{text}\n[{where}; {job.id}: {state}]" if text else f"[{where}; {job.id}: {state}]",
        )

    async def job_stop(job_id: str, context: ToolContext) -> ToolOutcome:
        """End a background job with all its processes.

        Args:
            job_id: The job's name, as "job1".
        """
        job = await _find(tools(), context.session_id, job_id)
        if isinstance(job, ToolOutcome):
            return job
        if not await tools().stop_job(job.call_id):
            return _error(f"{job.id} does not run any more: {_state(job, tools().clock.wall())}")
        return ToolOutcome(outcome=Outcome.OK, content=f"{job.id} was ended.")

    return list_jobs, job_output, job_stop


async def _find(tools: Tools, session_id: str, name: str) -> Job | ToolOutcome:
    jobs = await tools.journal.jobs(session_id)
    number = job_number(name)
    for job in jobs:
        if job.number == number:
            return job
    known = ", ".join(job.id for job in jobs[-_LISTED:]) or "none"
    return _error(f"there is no job {name!r:.60} in this session; there are: {known}")


def _error(text: str) -> ToolOutcome:
    return ToolOutcome(outcome=Outcome.ERROR, content=f"[{text}]", metadata={"reason": "no job"})


def _line(job: Job, now: float) -> str:
    return f"{job.id}  {_state(job, now)}  {job.title}"


def _state(job: Job, now: float) -> str:
    if job.is_running:
        return f"running for {max(0.0, now - job.began):.0f} s in the background"
    how = f" ({job.detail})" if job.detail else ""
    return f"{job.ending}{how} {max(0.0, (job.ended or now) - job.began):.0f} s after it went there"


def _part(context: ToolContext, job: Job, start: int | None) -> tuple[str, str]:
    """A part of the job's output, cut between characters, and which part it is."""
    name = (job.output_file or f"{job.call_id}.txt").removeprefix(f"{FOLDER}/")
    try:
        _, size = read_part(context.workspace, name, 0, 0)
        begin = max(0, size - _PART_BYTES) if start is None else min(max(0, start), size)
        data, size = read_part(context.workspace, name, begin, _PART_BYTES)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            return "", "it has said nothing"
        return "", f"its output cannot be read: {os.strerror(problem.errno or 0)}"
    while data and data[0] & 0xC0 == 0x80:  # the rest of a character that begins before
        data, begin = data[1:], begin + 1
    text = data.decode("utf-8", "ignore")  # a character that is not whole yet is read next time
    end = begin + len(text.encode())
    more = f", {size - end:,} more" if size > end else ""
    return text.rstrip("\n"), f"bytes {begin} to {end} of {size}{more}; go on with start={end}"
