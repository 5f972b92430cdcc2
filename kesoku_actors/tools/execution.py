"""One call carried out: the function entered, its deadline and its end, and what became of it as an outcome.

Nothing a tool does gets past this module but its outcome: what it raises is an `error` the model reads. A cancellation
from outside (the supervisor's, after its grace) is the one thing that goes on.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import define, evolve, frozen

from kesoku_actors.actors.leaves import has_leaf, leaves
from kesoku_actors.protocol import Outcome
from kesoku_actors.tools.board import Ending, Run
from kesoku_actors.tools.port import ToolContext, ToolOutcome
from kesoku_actors.tools.registry import Tool
from kesoku_actors.tools.results import text_of
from kesoku_actors.tools.threads import Stage, ThreadCall

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
    """Carries out calls; `threads` bounds how many functions run in threads at once."""

    deadline_s: float
    threads: trio.CapacityLimiter

    @trio.lowlevel.enable_ki_protection
    async def execute(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        run: Run,
        *,
        report_process: Callable[[int, float | None], Awaitable[None]],
        on_thread_return: Callable[[], None],
    ) -> Execution:
        """Call `tool` with arguments already checked and return what came of it.

        It ends at the tool's deadline, or before by `run.end`. `on_thread_return` is called in the trio thread when
        a function that was left behind in its thread returns. A person's Ctrl-C never shows up in here, so that a
        `KeyboardInterrupt` is the tool's own.
        """
        deadline_s = self.deadline_s if tool.deadline_s is None else tool.deadline_s
        if run.ending is not None:
            return Execution(outcome=_ended(run, deadline_s, None))
        kept: list[ToolOutcome] = []
        call = functools.partial(tool.function, **arguments, **self._context(tool, run, report_process, kept.append))
        scope = trio.CancelScope(deadline=trio.current_time() + deadline_s)
        run.on_end = scope.cancel
        thread = None
        if not tool.signature.is_async:
            # What it returned becomes text in the thread as well: it may be large, and its `__str__` is foreign too.
            thread = ThreadCall(lambda: _outcome(call()), trio.lowlevel.current_trio_token(), on_thread_return)
        try:
            with scope:
                if thread is None:
                    return Execution(outcome=_outcome(await call()))
                await trio.to_thread.run_sync(
                    thread, abandon_on_cancel=True, limiter=self.threads, thread_name=f"tool {tool.name}"
                )
        except BaseException as error:
            # A tool is foreign code: whatever it raises (SystemExit, another loop's cancellation) is a fact for the
            # model, never a crash of ours. A cancellation from outside is not the tool's.
            if has_leaf(error, (trio.Cancelled,)):
                raise
            return Execution(outcome=_failure(error))
        finally:
            run.on_end = None
        if thread is not None:
            stage = thread.leave()
            if stage is Stage.RETURNED:
                return Execution(outcome=_failure(thread.error) if thread.error else thread.result)
            if stage is Stage.LEFT:
                return Execution(outcome=_left(tool, run, deadline_s), left_thread=True)
        return Execution(outcome=_ended(run, deadline_s, kept[-1] if kept else None))

    def _context(
        self,
        tool: Tool,
        run: Run,
        report_process: Callable[[int, float | None], Awaitable[None]],
        keep: Callable[[ToolOutcome], None],
    ) -> dict[str, ToolContext]:
        if tool.signature.context_parameter is None:
            return {}
        context = ToolContext(
            session_id=run.call.session_id,
            call_id=run.call.call_id,
            workspace=run.workspace,
            report_process=report_process,
            keep=keep,
        )
        return {tool.signature.context_parameter: context}


def _outcome(result: Any) -> ToolOutcome:
    """What a function returned, as a model reads it."""
    outcome = result if isinstance(result, ToolOutcome) else ToolOutcome(outcome=Outcome.OK, content=text_of(result))
    return outcome if outcome.content.strip() else evolve(outcome, content=NO_OUTPUT)


def _failure(error: BaseException) -> ToolOutcome:
    """A tool that raised: the type and the message, without a traceback; of a group those of its leaves."""
    text = "; ".join(f"{type(one).__name__}: {one}" if str(one) else type(one).__name__ for one in leaves(error))
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


def _ended(run: Run, deadline_s: float, kept: ToolOutcome | None) -> ToolOutcome:
    reason, sentence = _why(run, deadline_s)
    said = f"{kept.content.rstrip()}\n" if kept is not None and kept.content.strip() else ""
    return ToolOutcome(
        outcome=Outcome.ERROR if run.ending is None else Outcome.INTERRUPTED,
        content=f"{said}[ended {sentence}]",
        metadata={**(kept.metadata if kept is not None else {}), "reason": reason},
    )


def _left(tool: Tool, run: Run, deadline_s: float) -> ToolOutcome:
    reason, sentence = _why(run, deadline_s)
    return ToolOutcome(
        outcome=Outcome.UNKNOWN,
        content=f"[given up {sentence}: {tool.name} runs on in a thread that cannot be ended; what it does is unknown]",
        metadata={"reason": reason, "thread": f"tool {tool.name}"},
    )
