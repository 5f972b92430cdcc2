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
from kesoku_actors.protocol import CallState, Outcome
from kesoku_actors.store.port import StoreBusy
from kesoku_actors.tools import ToolCall, ToolEvent, ToolOptions, ToolRegistry, Tools


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
    loses_replies: int = 0
    """How many of the next replies get lost after the fact is durable."""
    _recorded: trio.Event = field(factory=trio.Event, init=False)

    async def process_of(self, call_id: str) -> int:
        """Wait until the call's process is recorded and return its pid."""
        with trio.fail_after(60):
            while call_id not in self.processes:
                await self._recorded.wait()
        return self.processes[call_id][0]

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

    async def waiting(self, call_id: str, expires: float) -> bool:
        await self._reach()
        self.states[call_id] = CallState.WAITING
        return self._reply(True)

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
        self.states[call_id] = CallState.SETTLED
        self.staged[call_id] = Staged(outcome=outcome, content=content, duration_s=duration_s, metadata=metadata)
        self.facts.append(f"staged {call_id} {outcome}")
        return self._reply(True)


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
