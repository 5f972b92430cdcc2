"""Background jobs in words, for a person (I8). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kesoku_actors.errors import UsageError
from kesoku_actors.protocol import Job, job_number

Lines = tuple[str, ...]


def job_lines(jobs: Sequence[Job], now: float) -> Lines:
    """Return a line for each job, those that run last."""
    if not jobs:
        return ("there are no background jobs in this session",)
    ordered = sorted(jobs, key=lambda job: job.is_running)
    running = "/jobs stop JOB ends one" if any(job.is_running for job in jobs) else "none runs"
    return (*(_line(job, now) for job in ordered), running)


def to_stop(jobs: Sequence[Job], argument: str) -> Job:
    """Return the running job that is named behind `/jobs`. Raises `UsageError`, in words."""
    verb, _, name = argument.partition(" ")
    if verb.lower() != "stop" or not name.strip():
        raise UsageError("/jobs lists them, /jobs stop JOB ends one")
    number = job_number(name)
    for job in jobs:
        if job.number == number and job.is_running:
            return job
        if job.number == number:
            raise UsageError(f"{job.id} does not run any more")
    raise UsageError(f"there is no job {name[:40]!r} in this session; /jobs lists them")


def _line(job: Job, now: float) -> str:
    if job.is_running:
        state = f"running for {max(0.0, now - job.began):.0f} s"
    else:
        state = f"{job.ending}, {job.detail}" if job.detail else f"{job.ending}"
    where = f"  ({job.output_file})" if job.output_file else ""
    return f"{job.id:<6} {state:<24} {job.title[:200]}{where}"
