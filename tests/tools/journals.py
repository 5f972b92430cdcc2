"""A journal in memory, true to the protocol's words: first stage wins, a start is granted once, and it can be away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field, frozen

from kesoku_actors.actors import SupervisorSpec, run_system
from kesoku_actors.clock import Clock
from kesoku_actors.protocol import (
    CallState,
    Job,
    JobBegun,
    JobEnding,
    JobState,
    Outcome,
    Standing,
    TooManyJobs,
)
from kesoku_actors.store.port import StoreBusy
from kesoku_actors.tools import NewJob, ToolCall, ToolEvent, ToolOptions, ToolRegistry, Tools


@frozen(kw_only=True)
class Staged:
    outcome: Outcome
    content: str
    duration_s: float
    metadata: Mapping[str, Any]


@define(kw_only=True)
class MemoryJournal:
    """What a store would hold of some calls."""

    states: dict[str, CallState] = field(factory=dict)
    staged: dict[str, Staged] = field(factory=dict)
    processes: dict[str, tuple[int, float | None]] = field(factory=dict)
    facts: list[str] = field(factory=list)
    """What became durable, in order."""
    away: bool = False
    delay_s: float = 0.0
    approved: set[str] = field(factory=set)
    expires: dict[str, float] = field(factory=dict)
    asked: dict[str, tuple[str, ...] | None] = field(factory=dict)
    begun: dict[str, NewJob] = field(factory=dict)
    over: dict[str, tuple[JobEnding, str, str]] = field(factory=dict)
    loses_replies: int = 0
    """How many of the next replies get lost after the fact is durable."""
    _recorded: trio.Event = field(factory=trio.Event, init=False)

    async def process_of(self, call_id: str) -> int:
        """Wait until the call's process is recorded and return its pid."""
        with trio.fail_after(60):
            while call_id not in self.processes:
                await self._recorded.wait()
        return self.processes[call_id][0]

    async def end_of(self, *call_ids: str) -> None:
        """Wait until the end of these jobs is recorded."""
        with trio.fail_after(100_000):
            while not set(call_ids) <= self.over.keys():
                await self._recorded.wait()

    async def _reach(self) -> None:
        await trio.sleep(self.delay_s)
        if self.away:
            raise StoreBusy("the store is away")

    def _reply(self, value: bool) -> bool:
        if self.loses_replies:
            self.loses_replies -= 1
            raise StoreBusy("the reply was lost")
        return value

    async def started(self, call_id: str) -> bool:
        await self._reach()
        if self.states.get(call_id, CallState.COMMITTED) is not CallState.COMMITTED:
            return self._reply(False)
        self.states[call_id] = CallState.STARTED
        self.facts.append(f"started {call_id}")
        return self._reply(True)

    async def waiting(self, call_id: str, expires: float | None, parts: tuple[str, ...] | None) -> Standing:
        await self._reach()
        state = self.states.get(call_id, CallState.COMMITTED)
        if state is CallState.COMMITTED and call_id not in self.approved and expires is not None:
            state = self.states[call_id] = CallState.WAITING
            self.expires[call_id] = expires
            self.asked[call_id] = parts
            self.facts.append(f"waiting {call_id}")
        self._reply(True)
        settled = self.staged.get(call_id)
        return Standing(
            state=state,
            is_approved=state is CallState.COMMITTED and call_id in self.approved,
            expires=self.expires.get(call_id),
            outcome=settled.outcome if settled else None,
        )

    async def allow(self, call_id: str) -> bool:
        await self._reach()
        if self.states.get(call_id) is not CallState.WAITING:
            return self._reply(False)
        self.approved.add(call_id)
        self.states[call_id] = CallState.COMMITTED
        return self._reply(True)

    async def expired(self, call_id: str) -> bool:
        await self._reach()
        if self.states.get(call_id) is not CallState.WAITING:
            return self._reply(False)
        self._settle(call_id, Staged(outcome=Outcome.ERROR, content="", duration_s=0.0, metadata={"reason": "expired"}))
        return self._reply(True)

    def answer(self, call_id: str, *, approved: bool) -> None:
        """A person says yes or no."""
        assert self.states[call_id] is CallState.WAITING
        self.facts.append(f"{'approved' if approved else 'denied'} {call_id}")
        if approved:
            self.approved.add(call_id)
            self.states[call_id] = CallState.COMMITTED
        else:
            denied = Staged(outcome=Outcome.ERROR, content="", duration_s=0.0, metadata={"reason": "denied"})
            self._settle(call_id, denied)

    async def begin_job(self, call_id: str, job: NewJob) -> JobBegun | TooManyJobs | None:
        await self._reach()
        if call_id not in self.begun:
            if call_id in self.staged:
                return None
            running = [each for each in self.begun if each not in self.over]
            if len(running) >= job.max_jobs:
                return TooManyJobs(max_jobs=job.max_jobs)
            self.begun[call_id] = job
            content = f"job{len(self.begun)}".join(job.content)
            staged = Staged(
                outcome=Outcome.BACKGROUND, content=content, duration_s=job.duration_s, metadata=job.metadata
            )
            self._settle(call_id, staged)
        self._reply(True)
        return JobBegun(number=list(self.begun).index(call_id) + 1)

    async def end_job(self, call_id: str, ending: JobEnding, detail: str, notice: str) -> bool:
        await self._reach()
        if call_id in self.over:
            return self._reply(False)
        self.over[call_id] = (ending, detail, notice)
        self.facts.append(f"over {call_id} {ending}")
        self._recorded.set()
        self._recorded = trio.Event()
        return self._reply(True)

    async def jobs(self, session_id: str) -> tuple[Job, ...]:
        await self._reach()
        return tuple(
            Job(
                number=number,
                session_id=session_id,
                call_id=call_id,
                title=job.title,
                state=JobState.TOLD if call_id in self.over else JobState.RUNNING,
                began=0.0,
                ended=1.0 if call_id in self.over else None,
                ending=self.over[call_id][0] if call_id in self.over else None,
                detail=self.over[call_id][1] if call_id in self.over else "",
                output_file=job.output_file,
            )
            for number, (call_id, job) in enumerate(self.begun.items(), start=1)
        )

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        await self._reach()
        self.processes[call_id] = (pid, process_start)
        self._recorded.set()
        self._recorded = trio.Event()
        self.facts.append(f"process {call_id}")

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        await self._reach()
        if call_id in self.staged:
            return self._reply(False)
        staged = Staged(outcome=outcome, content=content, duration_s=duration_s, metadata=metadata)
        self._settle(call_id, staged)
        return self._reply(True)

    def _settle(self, call_id: str, staged: Staged) -> None:
        self.states[call_id] = CallState.SETTLED
        self.staged[call_id] = staged
        self.facts.append(f"staged {call_id} {staged.outcome}")


@define(kw_only=True)
class Bench:
    """The tool actor at work, with one session's sink writing its events among the journal's facts."""

    tools: Tools
    journal: MemoryJournal
    workspace: Path
    events: list[ToolEvent] = field(factory=list)
    _bell: trio.Event = field(factory=trio.Event)

    def sink(self, event: ToolEvent) -> None:
        self.events.append(event)
        self.journal.facts.append(f"{type(event).__name__} {event.call_id}")
        self._bell.set()
        self._bell = trio.Event()

    def start(self, *calls: ToolCall, parallel: int = 4) -> None:
        self.tools.start(calls, workspace=self.workspace, parallel=parallel)

    async def heard(self, kind: type[ToolEvent], *call_ids: str) -> None:
        """Wait until each of the calls was told of with this kind of event."""
        with trio.fail_after(1000):
            while not set(call_ids) <= {event.call_id for event in self.events if isinstance(event, kind)}:
                await self._bell.wait()

    def outcome(self, call_id: str) -> Staged:
        return self.journal.staged[call_id]


def call(id: str, name: str, *, session_id: str = "s", invalid: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(call_id=id, session_id=session_id, root_id="root", name=name, arguments=arguments, invalid=invalid)


@asynccontextmanager
async def bench(
    functions: Sequence[Callable[..., Any]],
    *,
    workspace: Path = Path(),
    journal: MemoryJournal | None = None,
    options: ToolOptions | None = None,
    registry: ToolRegistry | None = None,
):
    registry = registry or ToolRegistry()
    for function in functions:
        registry.add(function, owner="tests")
    journal = journal or MemoryJournal()
    clock = Clock(wall=trio.current_time, monotonic=trio.current_time)
    tools = Tools(registry=registry, journal=journal, clock=clock, options=options or ToolOptions())
    built = Bench(tools=tools, journal=journal, workspace=workspace)
    tools.attach("s", built.sink)
    tree = SupervisorSpec(id="root", children=(tools.spec(),))
    async with run_system(tree):
        yield built
