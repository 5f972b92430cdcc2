"""The tool actor: a queue and slots per session, and one temporary child per call.

The order of facts about a call (C3, O3): its start is durable, `Started` is told, the function is entered, its outcome
is staged durably, `Settled` is told. A message cancels nothing (I3): a run ends by itself, at its deadline, by `end`
(force) or when the program stops and the grace is over, which begins with `shut_down`, so that those who wait for the
outcome can still store it. A call whose start the journal does not grant is forgotten; one that cannot run (unknown
tool, arguments that do not fit) settles as an error without a start.

A fault of the journal is waited out: the store may restart under a running tool, whose outcome waits for it (C9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import trio
from attrs import define, field, frozen

from kesoku_actors.actors import (
    ActorStopped,
    Cell,
    ChildExit,
    ChildSpec,
    Dynamic,
    DynamicSpec,
    NameTaken,
    Restart,
    Strategy,
    SupervisorSpec,
)
from kesoku_actors.clock import Clock
from kesoku_actors.errors import Fault
from kesoku_actors.protocol import CallState, Outcome
from kesoku_actors.tools.board import Board, Ending, Run
from kesoku_actors.tools.execution import Executor
from kesoku_actors.tools.output import OUTPUT_CHARS
from kesoku_actors.tools.port import Journal, RunningCall, Settled, Sink, Started, ToolCall, ToolOutcome
from kesoku_actors.tools.registry import Tool, ToolRegistry
from kesoku_actors.tools.shapes import InvalidArgument
from kesoku_actors.tools.whole import presentable

DEADLINE_S: Final = 300.0
SHUTDOWN_GRACE_S: Final = 180.0
ENDING_S: Final = 10.0
_FIRST_DELAY_S: Final = 0.05
_LONGEST_DELAY_S: Final = 2.0


@frozen(kw_only=True)
class ToolOptions:
    """How calls are run."""

    deadline_s: float = DEADLINE_S
    output_chars: int = OUTPUT_CHARS
    """Of a longer output the model reads head and tail, and where the whole is."""
    shutdown_grace_s: float = SHUTDOWN_GRACE_S
    """How long started calls may go on when the program stops (C7)."""
    ending_s: float = ENDING_S
    """What a run gets beyond that: to end its processes and to stage its outcome."""
    threads: int = 16
    """How many functions run in threads at once."""
    mask: Callable[[str], str] = str
    """Takes known secrets out of a text before it is staged (T6)."""


@frozen(kw_only=True)
class ToolStatistics:
    """A reading of the tool actor."""

    queued: int
    running: tuple[RunningCall, ...]
    left_threads: tuple[str, ...]
    """Calls settled as `unknown` whose functions have not returned yet."""


@final
@define(kw_only=True, eq=False)
class Tools:
    """The tool actor and its face. Synchronous but for `drop`; to be used from the trio thread alone."""

    registry: ToolRegistry
    journal: Journal
    clock: Clock
    options: ToolOptions = field(factory=ToolOptions)
    _board: Board = field(factory=Board, init=False)
    _left: dict[str, str] = field(factory=dict, init=False)
    """Call id to tool name of the functions left behind in threads."""
    _open: bool = field(default=False, init=False)
    _shut: bool = field(default=False, init=False)
    """Whether the program stops: no other call starts in this life."""
    _runs: Dynamic = field(init=False)
    _executor: Executor = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._runs = Dynamic("tools", on_exit=self._hear_exit)
        threads = trio.CapacityLimiter(self.options.threads)
        self._executor = Executor(deadline_s=self.options.deadline_s, threads=threads)

    def spec(self, id: str = "tools") -> SupervisorSpec:
        """Return its supervision tree: the board stops first, so that nothing starts in the grace of the runs."""
        runs, board = DynamicSpec(id="runs", dynamic=self._runs), ChildSpec(id="board", start=self._keep_board)
        return SupervisorSpec(id=id, strategy=Strategy.REST_FOR_ONE, children=(runs, board))

    def start(self, calls: Sequence[ToolCall], *, workspace: Path, parallel: int) -> None:
        """Run `calls` in order, at most `parallel` of the session's at once. A call known already is not run twice.

        Nothing is done while the session is on hold or the program stops: the calls stay as the store has them.
        """
        if self._shut:
            return
        self._board.enqueue(calls, workspace=workspace, parallel=parallel)
        self._advance()

    def withdraw(self, calls: Iterable[ToolCall], *, workspace: Path) -> None:
        """Settle these as `interrupted` unless they started, or are just starting: then `Started` is told instead.

        A call that was never queued here, as after a restart, is settled too.
        """
        for call in calls:
            run = self._board.find(call.call_id)
            if run is None:
                self._settle_apart(Run(call=call, workspace=workspace), _WITHDRAWN)
            elif run.state is CallState.STARTED:
                self._board.tell(call.session_id, Started(call_id=call.call_id))
            elif self._board.withdraw(call.call_id) is not None:
                self._settle_apart(run, _WITHDRAWN)

    def end(self, call_ids: Iterable[str]) -> None:
        """Force: end what runs of these (`interrupted`, or `unknown` for a function in a thread), withdraw the rest."""
        for call_id in call_ids:
            run = self._board.find(call_id)
            if run is None:
                continue
            if self._board.withdraw(call_id) is not None:
                self._settle_apart(run, _WITHDRAWN)
            else:
                run.end(Ending.FORCED)

    def hold(self, session_id: str, when_quiet: Callable[[], None]) -> None:
        """Start no further call of the session until somebody attaches again, and forget what is queued (C7).

        `when_quiet` is called, maybe at once, when none of its calls is on its way to its start: whoever was to be told
        that one `Started` has been told by then.
        """
        self._board.hold(session_id, when_quiet)

    def shut_down(self) -> None:
        """The program stops: start no further call, and count the grace of those that run from now (C7)."""
        self._shut = True
        for run in self._board.runs():
            if run.taken:
                self._runs.request_stop(run.call.call_id)
            else:
                self._board.withdraw(run.call.call_id)

    def attach(self, session_id: str, sink: Sink) -> None:
        """Tell `sink`, in place of any before it, of the session's calls from now on; a hold is over."""
        self._board.attach(session_id, sink)

    def detach(self, session_id: str) -> None:
        """Tell nobody of the session's calls."""
        self._board.detach(session_id)

    def running(self, session_id: str) -> tuple[RunningCall, ...]:
        """Return the session's calls that wait for a slot or run."""
        return self._board.running(session_id)

    async def drop(self, session_id: str) -> None:
        """Forget the session's calls that have not started; what has started goes on (C3)."""
        self._board.drop(session_id)
        await trio.lowlevel.checkpoint()

    def statistics(self) -> ToolStatistics:
        """Return a reading."""
        runs = self._board.runs()
        return ToolStatistics(
            queued=sum(not run.taken for run in runs),
            running=tuple(run.described() for run in runs if run.taken),
            left_threads=tuple(self._left),
        )

    async def _keep_board(self, cell: Cell[Any]) -> None:
        """Let calls start while it runs. Begun again after a crash of the runs, it settles those that were lost."""
        alive = {child.id for child in self._runs.children()}
        for run in self._board.runs():
            if run.taken and run.call.call_id not in alive:
                self._settle_apart(run, _LOST)
        self._open = True
        cell.started()
        self._advance()
        try:
            await cell.stopping.wait()
        finally:
            self._open = False

    def _advance(self) -> None:
        """Start what has a slot."""
        while self._open and not self._shut and (run := self._board.take()) is not None:
            try:
                self._runs.start_nowait(
                    ChildSpec(
                        id=run.call.call_id,
                        start=partial(self._run, run=run),
                        restart=Restart.TEMPORARY,
                        shutdown_s=self.options.shutdown_grace_s + self.options.ending_s,
                    )
                )
            except (ActorStopped, NameTaken):  # an earlier run of the call is about to be over: `_hear_exit` goes on
                self._board.put_back(run)
                return

    def _settle_apart(self, run: Run, outcome: ToolOutcome) -> None:
        """Stage `outcome` of a call that has no run, in a child of its own: the store may take its time."""
        # The program stops: the call's state stays as the store has it. Or it is being settled already.
        with suppress(ActorStopped, NameTaken):
            self._runs.start_nowait(
                ChildSpec(
                    id=f"settle {run.call.call_id}",
                    start=partial(self._settle_run, run=run, outcome=outcome),
                    restart=Restart.TEMPORARY,
                    shutdown_s=self.options.ending_s,
                )
            )

    async def _settle_run(self, cell: Cell[Any], *, run: Run, outcome: ToolOutcome) -> None:
        cell.started()
        await self._settle(run, outcome, duration_s=0.0)

    async def _run(self, cell: Cell[Any], *, run: Run) -> None:
        cell.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_after_grace, cell, run)
            await self._carry_out(cell, run)
            nursery.cancel_scope.cancel()

    async def _end_after_grace(self, cell: Cell[Any], run: Run) -> None:
        await cell.stopping.wait()
        await trio.sleep(self.options.shutdown_grace_s)
        run.end(Ending.SHUTDOWN)

    async def _carry_out(self, cell: Cell[Any], run: Run) -> None:
        tool = self.registry.find(run.call.name)
        try:
            arguments = self._arguments(tool, run.call)
        except InvalidArgument as problem:
            await self._settle(run, ToolOutcome(outcome=Outcome.ERROR, content=str(problem), metadata=_INVALID), 0.0)
            return
        assert tool is not None
        if not await self._may_start(cell, run):
            self._over(run)
            return
        self._board.mark_started(run)
        began = self.clock.monotonic()
        execution = await self._executor.execute(
            tool,
            arguments,
            run,
            report_process=partial(self._report_process, run),
            on_thread_return=partial(self._hear_thread, run),
        )
        if execution.left_thread:
            self._left[run.call.call_id] = tool.name
        await self._settle(run, execution.outcome, self.clock.monotonic() - began)

    def _arguments(self, tool: Tool | None, call: ToolCall) -> dict[str, Any]:
        if tool is None:
            known = ", ".join(self.registry.names()) or "none"
            raise InvalidArgument(f"there is no tool {call.name!r}; known are: {known}")
        if call.invalid is not None:
            raise InvalidArgument(f"the arguments of {call.name} could not be read: {call.invalid}")
        try:
            return tool.signature.bind(call.arguments)
        except InvalidArgument as problem:
            raise InvalidArgument(f"{call.name} was not run: {problem}") from problem

    async def _may_start(self, cell: Cell[Any], run: Run) -> bool:
        """Record the start. A refusal after a fault may be the answer to our own first try: then it has to settle."""
        faults = 0
        for delay_s in _delays():
            if cell.stopping.is_set():
                return False
            try:
                if await self.journal.started(run.call.call_id):
                    return True
                break
            except Fault:
                faults += 1
                await trio.sleep(delay_s)
        if faults:
            await self._settle(run, _NOT_RECORDED, 0.0)
        return False

    async def _report_process(self, run: Run, pid: int, process_start: float | None) -> None:
        await _until_it_stands(partial(self.journal.process, run.call.call_id, pid, process_start))

    async def _settle(self, run: Run, outcome: ToolOutcome, duration_s: float) -> None:
        """Stage the outcome, then tell and let the slot go. Who was first does not matter here: the call is settled."""
        call_id = run.call.call_id
        options = self.options
        ready = await presentable(
            outcome, mask=options.mask, chars=options.output_chars, workspace=run.workspace, call_id=call_id
        )
        await _until_it_stands(
            partial(self.journal.stage, call_id, ready.outcome, ready.content, max(0.0, duration_s), ready.metadata)
        )
        run.state = CallState.SETTLED
        self._board.tell(run.call.session_id, Settled(call_id=call_id, outcome=outcome.outcome))
        self._over(run)

    def _over(self, run: Run) -> None:
        self._board.finish(run, keeps_slot=run.call.call_id in self._left)
        self._advance()

    def _hear_thread(self, run: Run) -> None:
        """A function that was left behind in its thread has returned."""
        self._left.pop(run.call.call_id, None)
        if run.state is CallState.SETTLED:
            self._board.free(run)
            self._advance()

    def _hear_exit(self, exit: ChildExit) -> None:
        """A run that ended without settling its call crashed, or was cancelled after its grace."""
        run = self._board.find(exit.id)
        if run is not None and run.taken:
            if exit.error is None:
                self._board.finish(run)
            else:
                self._settle_apart(run, _LOST)
        self._advance()


_INVALID: Final[Mapping[str, Any]] = {"reason": "invalid"}
_WITHDRAWN: Final = ToolOutcome(
    outcome=Outcome.INTERRUPTED, content="[not run: withdrawn before it started]", metadata={"reason": "withdrawn"}
)
_LOST: Final = ToolOutcome(
    outcome=Outcome.UNKNOWN, content="[its run was lost; what it did is unknown]", metadata={"reason": "lost"}
)
_NOT_RECORDED: Final = ToolOutcome(
    outcome=Outcome.INTERRUPTED, content="[not run: its start could not be recorded]", metadata={"reason": "store"}
)


def _delays() -> Iterator[float]:
    """Seconds between tries, without an end."""
    delay_s = _FIRST_DELAY_S
    while True:
        yield delay_s
        delay_s = min(2 * delay_s, _LONGEST_DELAY_S)


async def _until_it_stands(record: Callable[[], Awaitable[object]]) -> None:
    """Call `record`, safe to repeat, until the journal takes it."""
    for delay_s in _delays():
        try:
            await record()
        except Fault:
            await trio.sleep(delay_s)
        else:
            return
