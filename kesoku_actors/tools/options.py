"""How a tool actor runs calls, and a reading of it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import field

from kesoku_actors.tools.approval import ApprovalRules
from kesoku_actors.tools.jobs import MAX_JOBS
from kesoku_actors.tools.output import OUTPUT_CHARS
from kesoku_actors.tools.port import RunningCall
from kesoku_actors.values import frozen

DEADLINE_S: Final = 300.0
SHUTDOWN_GRACE_S: Final = 180.0
ENDING_S: Final = 10.0


def _tell_nobody(_line: str) -> None:
    """Keep it to ourselves."""


def _raised_unheard(_tool: str, _error: BaseException) -> None:
    """Leave it to what the model reads."""


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
    approval: ApprovalRules = field(factory=ApprovalRules)
    """Which calls wait for a person's yes (T7)."""
    max_jobs: int = MAX_JOBS
    """How many may run in one session (I8)."""
    tell: Callable[[str], None] = _tell_nobody
    """Told what a person should know, one line each: of jobs that end with the program, of calls denied unasked."""
    raised: Callable[[str, BaseException], None] = _raised_unheard
    """Told the name of a tool and what it raised: the model reads no traceback, and who wrote the tool wants one."""


@frozen(kw_only=True)
class ToolStatistics:
    """A reading of the tool actor."""

    queued: int
    running: tuple[RunningCall, ...]
    left_threads: tuple[str, ...]
    """Calls settled as `unknown` whose functions have not returned yet."""
    jobs: tuple[RunningCall, ...] = ()
    """Calls that went on as jobs."""
