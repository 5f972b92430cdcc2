"""One call carried out: the function entered, its deadline and its end, and what became of it as an outcome.

Nothing a tool does gets past this module but its outcome. A tool is foreign code: whatever it raises (`SystemExit`,
another loop's cancellation) is an `error` the model reads, never a crash of ours. A cancellation from outside (the
supervisor's, after its grace) is not the tool's, and the one thing that goes on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import evolve, field

from kesoku_actors.actors.leaves import has_leaf, leaves
from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.board import Ending, Run
from kesoku_actors.tools.options import ToolOptions
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.tools.raised import said_by
from kesoku_actors.tools.registry import Tool
from kesoku_actors.tools.results import text_of
from kesoku_actors.tools.threads import Stage, ThreadCall
from kesoku_actors.values import define, frozen

NO_OUTPUT: Final = "(no output)"
_ERROR_CHARS: Final = 2_000


@frozen(kw_only=True)
class Execution:
    """What came of a run."""

    outcome: ToolOutcome
    left_thread: bool = False
    """The function still runs in its thread, which nothing can end (I8)."""


@define(kw_only=True, eq=False)
class Executor:
    """Carries out calls."""

    options: ToolOptions
    _threads: trio.CapacityLimiter = field(init=False)
    """Bounds how many functions run in threads at once."""

    def __attrs_post_init__(self) -> None:
        self._threads = trio.CapacityLimiter(self.options.threads)

    @trio.lowlevel.enable_ki_protection
    async def execute(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        run: Run,
        *,
        report_process: Callable[[int, float | None], Awaitable[None]],
        on_thread_return: Callable[[], None],
        become_job: BecomeJob,
    ) -> Execution:
        """Call `tool` with arguments already checked and return what came of it.

        It ends at the tool's deadline, unless `become_job` lets it go on behind its result then, or before by
        `run.end`. `on_thread_return` is called in the trio thread when a function that was left behind in its thread
        returns. A person's Ctrl-C never shows up in here, so that a `KeyboardInterrupt` is the tool's own.
        """
        deadline_s = self.options.deadline_s if tool.deadline_s is None else tool.deadline_s
        if run.ending is not None:
            return Execution(outcome=_ended(run, deadline_s, None))
        raised = functools.partial(self.options.raised, tool.name)
        attempt = _Attempt(run=run, deadline_s=deadline_s, become_job=become_job, raised=raised)
        context = self._context(tool, run, report_process, attempt)
        call = functools.partial(tool.function, **arguments, **context)
        if not tool.signature.is_async:
            return await self._in_thread(tool, call, attempt, on_thread_return)
        outcome = await attempt.carry_out(call, may_become_job=tool.becomes_job)
        if outcome is None:
            sent = attempt.hurry.is_set()
            outcome = _ended(run, deadline_s, attempt.so_far(), attempt.refusal, was_sent_behind=sent)
        return Execution(outcome=outcome)

    async def _in_thread(
        self, tool: Tool, call: Callable[[], Any], attempt: _Attempt, on_thread_return: Callable[[], None]
    ) -> Execution:
        run, deadline_s = attempt.run, attempt.deadline_s
        # What it returned becomes text in the thread as well: it may be large, and its `__str__` is foreign too.
        thread = ThreadCall(lambda: _outcome(call()), trio.lowlevel.current_trio_token(), on_thread_return)
        scope = trio.CancelScope(deadline=trio.current_time() + deadline_s)
        run.on_end = scope.cancel
        try:
            with scope:
                await trio.to_thread.run_sync(
                    thread, abandon_on_cancel=True, limiter=self._threads, thread_name=f"tool {tool.name}"
                )
        except BaseException as error:
            if has_leaf(error, (trio.Cancelled,)):
                raise
            return Execution(outcome=attempt.failed(error))
        finally:
            run.on_end = None
        match thread.leave():
            case Stage.RETURNED:
                return Execution(outcome=attempt.failed(thread.error) if thread.error else thread.result)
            case Stage.LEFT:
                return Execution(outcome=_left(tool, run, deadline_s), left_thread=True)
            case _:
                return Execution(outcome=_ended(run, deadline_s, attempt.so_far()))

    def _context(
        self,
        tool: Tool,
        run: Run,
        report_process: Callable[[int, float | None], Awaitable[None]],
        attempt: _Attempt,
    ) -> dict[str, ToolContext]:
        if tool.signature.context_parameter is None:
            return {}
        context = ToolContext(
            session_id=run.call.session_id,
            call_id=run.call.call_id,
            workspace=run.workspace,
            report_process=report_process,
            watch=attempt.watch,
            go_on_behind=attempt.hurry.set,
            mask=self.options.mask,
        )
        return {tool.signature.context_parameter: context}


BecomeJob = Callable[[ToolOutcome, bool], Awaitable[str | None]]
"""Given what is known so far, and whether the tool asked for it itself: lets a run go on as a job. Returns why it may
not, in words; none: it goes on."""


@define(kw_only=True, eq=False)
class _Attempt:
    """One call of an asynchronous function, and the decision at its deadline."""

    run: Run
    deadline_s: float
    become_job: BecomeJob
    raised: Callable[[BaseException], None]
    hurry: trio.Event = field(factory=trio.Event)
    """Set when the tool asks to become a job before its deadline."""
    refusal: str | None = None
    """Why it did not become one."""
    _watched: Callable[[], ToolOutcome] | None = None
    _is_deciding: bool = False
    _decided: trio.Event = field(factory=trio.Event)

    def watch(self, so_far: Callable[[], ToolOutcome]) -> None:
        """Take what tells what is known so far."""
        self._watched = so_far

    def so_far(self) -> ToolOutcome | None:
        """Return what is known so far, if somebody tells."""
        return self._watched() if self._watched is not None else None

    def failed(self, error: BaseException) -> ToolOutcome:
        """Tell of what the function raised, and return it as a model reads it."""
        self.raised(error)
        return _failure(error)

    async def carry_out(self, call: Callable[[], Awaitable[Any]], *, may_become_job: bool) -> ToolOutcome | None:
        """Return what came of the call; none when it was ended from outside or at its deadline.

        A decision that has begun is waited for: whether the call is a job then must be known, also when the function
        has returned meanwhile.
        """
        deadline = math.inf if may_become_job else trio.current_time() + self.deadline_s
        scope = trio.CancelScope(deadline=deadline)
        self.run.on_end = scope.cancel
        if not may_become_job:
            return await self._call(call, scope)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._decide, scope)
            outcome = await self._call(call, scope)
            if self._is_deciding:
                await self._decided.wait()
            nursery.cancel_scope.cancel()
        return outcome

    async def _call(self, call: Callable[[], Awaitable[Any]], scope: trio.CancelScope) -> ToolOutcome | None:
        outcome = None
        try:
            with scope:
                outcome = _outcome(await call())
        except BaseException as error:
            if has_leaf(error, (trio.Cancelled,)):
                raise
            outcome = self.failed(error)
        self.run.on_end = None
        return outcome

    async def _decide(self, scope: trio.CancelScope) -> None:
        with trio.move_on_after(self.deadline_s):
            await self.hurry.wait()
        self._is_deciding = True
        nothing = ToolOutcome(outcome=Outcome.INTERRUPTED, content="")
        self.refusal = await self.become_job(self.so_far() or nothing, self.hurry.is_set())
        if self.refusal is not None:
            scope.cancel()
        self._decided.set()


def _outcome(result: Any) -> ToolOutcome:
    """What a function returned, as a model reads it."""
    outcome = result if isinstance(result, ToolOutcome) else ToolOutcome(outcome=Outcome.OK, content=text_of(result))
    return outcome if outcome.content.strip() else evolve(outcome, content=NO_OUTPUT)


def _failure(error: BaseException) -> ToolOutcome:
    """A tool that raised: the type and the message, without a traceback; of a group those of its leaves."""
    said = ((type(one).__name__, said_by(one)) for one in leaves(error))
    text = "; ".join(f"{name}: {words}" if words else name for name, words in said)
    return ToolOutcome(outcome=Outcome.ERROR, content=text[:_ERROR_CHARS], metadata={"reason": "raised"})


def _why(run: Run, deadline_s: float) -> tuple[str, str]:
    """The reason of an end from outside, as a word and as a part of a sentence."""
    match run.ending:
        case None:
            return "deadline", f"at its deadline of {deadline_s:g} s"
        case Ending.FORCED:
            return "forced", "by force"
        case Ending.SHUTDOWN:
            return "shutdown", "because the program stopped"
        case Ending.STOPPED:
            return "stopped", "as asked"
        case Ending.CLEARED:
            return "cleared", "because its session was cleared"


def _ended(
    run: Run,
    deadline_s: float,
    kept: ToolOutcome | None,
    refusal: str | None = None,
    *,
    was_sent_behind: bool = False,
) -> ToolOutcome:
    reason, sentence = _why(run, deadline_s)
    said = f"{kept.content.rstrip()}\n" if kept is not None and kept.content.strip() else ""
    because = f": {refusal}" if refusal is not None and run.ending is None else ""
    if because and was_sent_behind:
        sentence = "as it cannot go on in the background"
    return ToolOutcome(
        outcome=Outcome.ERROR if run.ending is None else Outcome.INTERRUPTED,
        content=f"{said}[ended {sentence}{because}]",
        metadata={**(kept.metadata if kept is not None else {}), "reason": reason},
        output_file=kept.output_file if kept is not None else None,
    )


def _left(tool: Tool, run: Run, deadline_s: float) -> ToolOutcome:
    reason, sentence = _why(run, deadline_s)
    return ToolOutcome(
        outcome=Outcome.UNKNOWN,
        content=f"[given up {sentence}: {tool.name} runs on in a thread that cannot be ended; what it does is unknown]",
        metadata={"reason": reason, "thread": f"tool {tool.name}"},
    )
