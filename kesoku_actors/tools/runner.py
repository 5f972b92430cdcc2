"""The tool actor: a queue and slots per session, and one temporary child per call.

The order of facts about a call (C3, O3): its start is durable, `Started` is told, the function is entered, its outcome
is staged durably, `Settled` is told. A message cancels nothing (I3): a run ends by itself, at its deadline unless it
goes on as a job then (`jobs`), by `end` (force) or when the program stops and the grace is over, which begins with
`shut_down`, so that those who wait for the outcome can still store it. A call whose start the journal does not grant is
forgotten; one that cannot run (unknown tool, arguments that do not fit) settles as an error without a start; one that
needs a person's yes starts when that is stored (`asking`).

A fault of the journal is waited out: the store may restart under a running tool, whose outcome waits for it (C9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import trio
from attrs import field

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
from kesoku_actors.protocol import CallState
from kesoku_actors.tools import verdicts
from kesoku_actors.tools.asking import Asker
from kesoku_actors.tools.binding import bound
from kesoku_actors.tools.board import Board, Ending, Run
from kesoku_actors.tools.execution import Executor
from kesoku_actors.tools.jobs import Jobs
from kesoku_actors.tools.options import ToolOptions, ToolStatistics
from kesoku_actors.tools.patience import delays, until_it_stands
from kesoku_actors.tools.port import Journal, RunningCall, Settled, Sink, Started, ToolCall, ToolOutcome
from kesoku_actors.tools.registry import ToolRegistry
from kesoku_actors.tools.shapes import InvalidArgument
from kesoku_actors.tools.whole import presentable
from kesoku_actors.values import define

_ASKS: Final = "ask "
"""Begins the name of a child that asks for a yes."""


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
    _to_ask: list[Run] = field(factory=list, init=False)
    """Runs that need a yes and nobody asks for yet."""
    _over_now: trio.Event = field(factory=trio.Event, init=False)
    """Set, and replaced, when a call is over."""
    _runs: Dynamic = field(init=False)
    _executor: Executor = field(init=False)
    _asker: Asker = field(init=False)
    _jobs: Jobs = field(init=False)

    def __attrs_post_init__(self) -> None:
        options, journal = self.options, self.journal
        self._runs = Dynamic("tools", on_exit=self._hear_exit)
        self._executor = Executor(options=options)
        self._asker = Asker(
            rules=options.approval,
            board=self._board,
            journal=journal,
            clock=self.clock,
            settle=partial(self._settle, duration_s=0.0),
            advance=self._advance,
            tell=options.tell,
        )
        self._jobs = Jobs(
            journal=journal, board=self._board, clock=self.clock, max_jobs=options.max_jobs, tell=options.tell
        )

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
        known = {run.call.call_id for run in self._board.runs()}
        self._board.enqueue(calls, workspace=workspace, parallel=parallel, needs_yes=self._needs_yes)
        self._to_ask += [run for run in self._board.runs() if run.needs_yes and run.call.call_id not in known]
        self._advance()

    def withdraw(self, calls: Iterable[ToolCall], *, workspace: Path) -> None:
        """Settle these as `interrupted` unless they started, or are just starting: then `Started` is told instead.

        A call that was never queued here, as after a restart, is settled too.
        """
        for call in calls:
            run = self._board.find(call.call_id)
            if run is None:
                self._settle_apart(Run(call=call, workspace=workspace), verdicts.WITHDRAWN)
            elif run.state is CallState.STARTED:
                self._board.tell(call.session_id, Started(call_id=call.call_id))
            elif self._board.withdraw(call.call_id) is not None:
                self._settle_apart(run, verdicts.WITHDRAWN)

    def end(self, call_ids: Iterable[str]) -> None:
        """Force: end what runs of these (`interrupted`, or `unknown` for a function in a thread), withdraw the rest."""
        for call_id in call_ids:
            run = self._board.find(call_id)
            if run is None:
                continue
            if self._board.withdraw(call_id) is not None:
                self._settle_apart(run, verdicts.WITHDRAWN)
            else:
                run.end(Ending.FORCED)

    def look_again(self, session_id: str) -> None:
        """A person may have answered about calls of the session (T7): what was said is stored."""
        for run in self._board.asking(session_id):
            run.look()

    def end_jobs(self, session_id: str, ending: Ending = Ending.FORCED, *, root_id: str | None = None) -> None:
        """End the jobs of a turn, or all of the session (I7, M7)."""
        for run in self._jobs.of(session_id):
            if root_id in (None, run.call.root_id):
                run.end(ending)

    async def clear_jobs(self, session_id: str) -> None:
        """End the jobs of a session that is cleared, and wait until they have (M7)."""
        self.end_jobs(session_id, Ending.CLEARED)
        await self._jobs.until_over(*self._jobs.of(session_id))

    async def stop_job(self, call_id: str) -> bool:
        """End the job that a call became and wait until it has. False: it does not run here."""
        run = self._jobs.find(call_id)
        if run is None:
            return False
        run.end(Ending.STOPPED)
        await self._jobs.until_over(run)
        return True

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
        for run in self._jobs.all():
            self._runs.request_stop(run.call.call_id)

    def attach(self, session_id: str, sink: Sink) -> None:
        """Tell `sink`, in place of any before it, of the session's calls from now on; a hold is over."""
        self._board.attach(session_id, sink)

    def detach(self, session_id: str) -> None:
        """Tell nobody of the session's calls."""
        self._board.detach(session_id)

    def running(self, session_id: str) -> tuple[RunningCall, ...]:
        """Return the session's calls that wait for a slot or run."""
        return self._board.running(session_id)

    def drop(self, session_id: str) -> None:
        """Forget the session's calls that have not started; what has started goes on (C3)."""
        self._board.drop(session_id)

    def statistics(self) -> ToolStatistics:
        """Return a reading."""
        runs = self._board.runs()
        return ToolStatistics(
            queued=sum(not run.taken for run in runs),
            running=tuple(run.described() for run in runs if run.taken),
            left_threads=tuple(self._left),
            jobs=tuple(run.described() for run in self._jobs.all()),
        )

    async def _keep_board(self, cell: Cell[Any]) -> None:
        """Let calls start while it runs. Begun again after a crash of the runs, it settles those that were lost."""
        alive = {child.id for child in self._runs.children()}
        for run in self._board.runs():
            if run.taken and run.call.call_id not in alive:
                self._settle_apart(run, verdicts.LOST)
        for run in self._jobs.all():
            if run.call.call_id not in alive:
                self._lose_apart(run)
        self._to_ask = [run for run in self._board.runs() if run.needs_yes]
        self._open = True
        cell.started()
        self._advance()
        try:
            await cell.stopping.wait()
        finally:
            self._open = False

    def _needs_yes(self, call: ToolCall) -> bool:
        tool = self.registry.find(call.name)
        return tool is not None and self.options.approval.needs_yes(tool, call.channel)

    def _advance(self) -> None:
        """Ask for those that need a yes, and start what has a slot."""
        while self._open and not self._shut and self._to_ask:
            unasked = self._to_ask.pop(0)
            if not self._begin_to_ask(unasked):  # who asked before is about to end: `_hear_exit` goes on
                self._to_ask.insert(0, unasked)
                break
        grace_s = self.options.shutdown_grace_s + self.options.ending_s
        while self._open and not self._shut and (run := self._board.take()) is not None:
            if not self._begin(run.call.call_id, partial(self._run, run=run), grace_s):
                self._board.put_back(run)  # an earlier run of the call is about to be over: `_hear_exit` goes on
                return

    def _begin_to_ask(self, run: Run) -> bool:
        tool = self.registry.find(run.call.name)
        try:
            arguments = bound(run.call, tool, self.registry)
        except InvalidArgument:  # said when it would start; nobody is asked about it
            self._board.clear(run)
            return True
        assert tool is not None
        ask = partial(self._asker.ask, run=run, tool=tool, arguments=arguments)
        return self._begin(f"{_ASKS}{run.call.call_id}", ask, self.options.ending_s)

    def _settle_apart(self, run: Run, outcome: ToolOutcome) -> None:
        """Stage `outcome` of a call that has no run, in a child of its own: the store may take its time."""
        # When none begins, the program stops: the call's state stays as the store has it. Or it is being settled.
        settle = partial(self._settle_run, run=run, outcome=outcome)
        self._begin(f"settle {run.call.call_id}", settle, self.options.ending_s)

    def _lose_apart(self, run: Run) -> None:
        """Record that a job has no run any more."""
        self._begin(f"end {run.call.call_id}", partial(self._lose_job, run=run), self.options.ending_s)

    def _begin(self, id: str, start: Callable[[Cell[Any]], Awaitable[None]], shutdown_s: float) -> bool:
        """Start a child. False: the program stops, or one of this name is about to end."""
        spec = ChildSpec(id=id, start=start, restart=Restart.TEMPORARY, shutdown_s=shutdown_s)
        try:
            self._runs.start_nowait(spec)
        except (ActorStopped, NameTaken):
            return False
        return True

    async def _lose_job(self, cell: Cell[Any], *, run: Run) -> None:
        cell.started()
        await self._jobs.lose(run)

    async def _settle_run(self, cell: Cell[Any], *, run: Run, outcome: ToolOutcome) -> None:
        cell.started()
        await self._settle(run, outcome, duration_s=0.0)
        if outcome is verdicts.LOST:  # it may have become a job without hearing of it
            await self._jobs.lose(run)

    async def _run(self, cell: Cell[Any], *, run: Run) -> None:
        cell.started()
        async with trio.open_nursery() as nursery:
            cell.on_stop = partial(nursery.start_soon, self._end_after_grace, run)
            if cell.stopping.is_set():
                cell.on_stop()
            await self._carry_out(cell, run)
            cell.on_stop = lambda: None
            if nursery.child_tasks:
                nursery.cancel_scope.cancel()

    async def _end_after_grace(self, run: Run) -> None:
        """Started calls go on for the grace, jobs for as long as there are such calls (C7)."""
        with trio.move_on_after(self.options.shutdown_grace_s):
            while run.job is None or any(other.taken for other in self._board.runs()):
                await self._over_now.wait()
        run.end(Ending.SHUTDOWN)

    async def _carry_out(self, cell: Cell[Any], run: Run) -> None:
        tool = self.registry.find(run.call.name)
        try:
            arguments = bound(run.call, tool, self.registry)
        except InvalidArgument as problem:
            await self._settle(run, verdicts.invalid(str(problem)), 0.0)
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
            become_job=partial(self._become_job, run, began),
        )
        if run.job is not None:
            await self._jobs.end(run, await self._presentable(run, execution.outcome))
            return
        if execution.left_thread:
            self._left[run.call.call_id] = tool.name
        await self._settle(run, execution.outcome, self.clock.monotonic() - began)

    async def _become_job(self, run: Run, began: float, said: ToolOutcome, is_asked: bool) -> str | None:
        ready = await self._presentable(run, said)
        refusal = await self._jobs.begin(run, ready, self.clock.monotonic() - began, is_asked=is_asked)
        if refusal is None:
            self._over(run)
        return refusal

    async def _may_start(self, cell: Cell[Any], run: Run) -> bool:
        """Record the start. A refusal after a fault may be the answer to our own first try: then it has to settle."""
        faults = 0
        for delay_s in delays():
            if cell.stopping.is_set():
                return False
            try:
                if await self.journal.started(run.call.call_id):
                    return True
                if not await self._asker.settings_allow(run):
                    break
            except Fault:
                faults += 1
                await trio.sleep(delay_s)
        if faults:
            await self._settle(run, verdicts.NOT_RECORDED, 0.0)
        return False

    async def _report_process(self, run: Run, pid: int, process_start: float | None) -> None:
        await until_it_stands(partial(self.journal.process, run.call.call_id, pid, process_start))

    async def _settle(self, run: Run, outcome: ToolOutcome, duration_s: float) -> None:
        """Stage the outcome, then tell and let the slot go. Who was first does not matter here: the call is settled."""
        call_id, ready = run.call.call_id, await self._presentable(run, outcome)
        await until_it_stands(
            partial(self.journal.stage, call_id, ready.outcome, ready.content, max(0.0, duration_s), ready.metadata)
        )
        run.state = CallState.SETTLED
        self._board.tell(run.call.session_id, Settled(call_id=call_id, outcome=outcome.outcome))
        self._over(run)

    async def _presentable(self, run: Run, outcome: ToolOutcome) -> ToolOutcome:
        options, workspace = self.options, run.workspace
        return await presentable(
            outcome, mask=options.mask, chars=options.output_chars, workspace=workspace, call_id=run.call.call_id
        )

    def _over(self, run: Run) -> None:
        self._board.finish(run, keeps_slot=run.call.call_id in self._left)
        self._over_now.set()
        self._over_now = trio.Event()
        self._advance()

    def _hear_thread(self, run: Run) -> None:
        """A function that was left behind in its thread has returned."""
        self._left.pop(run.call.call_id, None)
        if run.state is CallState.SETTLED:
            self._board.free(run)
            self._advance()

    def _hear_exit(self, exit: ChildExit) -> None:
        """A run that ended without settling its call crashed, or was cancelled after its grace."""
        run = self._board.find(exit.id.removeprefix(_ASKS))
        if exit.id.startswith(_ASKS):
            if exit.error is not None and run is not None and self._board.withdraw(run.call.call_id) is not None:
                self._settle_apart(run, verdicts.NOT_ASKED)
        elif (job := self._jobs.find(exit.id)) is not None:
            self._lose_apart(job)
        elif run is not None and run.taken:
            if exit.error is None:
                self._board.finish(run)
            else:
                self._settle_apart(run, verdicts.LOST)
        self._advance()
