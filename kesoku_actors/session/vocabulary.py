"""Events and effects of the turn machine: two closed unions. Pure values.

The worker feeds events, performs effects and decides nothing. Effect -> completing event:

* `BuildPrompt` -> `PromptBuilt`
* `CallModel` -> `ModelFinished` | `ModelFailed` | `ModelAborted`, with `ModelDelta`s before; `AbortModel` ends it
* `SendCommit` -> `Committed` | `CommitRefused` (`kesoku_actors.store`), wrapped with their ticket
* `StartTools` -> `ToolStarted` | `ToolWaiting` | `ToolSettled` per call
* `WithdrawTools` (not started) and `EndTools` (force) -> `ToolSettled` each; a call that had just started answers
  `ToolStarted` instead
* `SetTimer` -> `TimerFired`; `SetBudget` -> `BudgetSpent`, whose clock stands still from `HoldBudget` to `ResumeBudget`
* `EndJobs` completes nothing here: a job's end is a notice
* `EndCompaction`, `Notify` and `Finish` complete nothing

An event with a ticket that is not outstanding is ignored; the others carry none. `PersonSpoke` and
`NoticeArrived` are hints: an id heard before is ignored. What tools say is about a call, not a ticket: kept also
for a call not yet known.
"""

from __future__ import annotations

from attrs import field

from kesoku_actors.llm.port import Remedy, Reply
from kesoku_actors.protocol import Activity, BusyMode, Outcome, Stop, Usage, Waiting
from kesoku_actors.store.port import Commit, Committed, Refused, Registered
from kesoku_actors.values import frozen

# ---- events


@frozen
class Resumed:
    """The worker is registered; always the first event. `stale`: the returned turn began too long ago (C2)."""

    registered: Registered
    stale: bool = False
    models: tuple[str, ...] = ()
    """The models that may answer, in the order they are asked, as people read their names."""


@frozen
class PersonSpoke:
    """A person's message waits (hint)."""

    message: Waiting


@frozen
class NoticeArrived:
    """A notice for the model waits (hint)."""

    message: Waiting


@frozen
class MessageWithdrawn:
    """A waiting message was deleted."""

    message_id: str


@frozen
class StopRequested:
    """A stop was stored (also by a clear); the same `seq` again replaces what was known of it."""

    stop: Stop


@frozen
class ForceRequested:
    """Force was accepted: end the turn's running calls."""


@frozen
class ModeSwitched:
    """The channel's busy mode is another one."""

    mode: BusyMode


@frozen
class ShutdownRequested:
    """The process ends in order (C7)."""


@frozen
class BudgetSpent:
    """The time of the turn is used up (B4)."""

    root_id: str


@frozen
class PromptBuilt:
    """The prompt stands; `late` names its messages whose attachments are still expected (M8)."""

    ticket: int
    late: tuple[str, ...] = ()


@frozen
class ModelDelta:
    """A streamed piece of answer text."""

    ticket: int
    text: str


@frozen
class ModelFinished:
    """The inference ended well."""

    ticket: int
    reply: Reply
    duration_s: float


@frozen
class ModelFailed:
    """The inference failed; `jitter` is a number in [0, 1) drawn by the worker for the backoff."""

    ticket: int
    provider: str
    model: str
    message: str
    remedy: Remedy
    retry_after_s: float | None
    jitter: float
    duration_s: float
    usage: Usage = field(factory=Usage)
    """As far as it is known."""
    kind: str = ""
    """A short name of what went wrong: `auth`, `overloaded`, `filtered`, ..."""


@frozen
class ModelAborted:
    """The inference was cancelled as asked, or never got a slot."""

    ticket: int
    provider: str
    model: str
    duration_s: float
    usage: Usage = field(factory=Usage)
    """As far as it is known."""


@frozen
class CommitStands:
    """The store committed."""

    ticket: int
    committed: Committed


@frozen
class CommitRefused:
    """The store refused."""

    ticket: int
    refused: Refused


@frozen
class TimerFired:
    """A backoff is over."""

    ticket: int


@frozen
class ToolStarted:
    """A call runs."""

    call_id: str


@frozen
class ToolWaiting:
    """A call waits for approval."""

    call_id: str


@frozen
class ToolSettled:
    """A call's outcome is staged."""

    call_id: str
    outcome: Outcome


Event = (
    Resumed
    | PersonSpoke
    | NoticeArrived
    | MessageWithdrawn
    | StopRequested
    | ForceRequested
    | ModeSwitched
    | ShutdownRequested
    | BudgetSpent
    | PromptBuilt
    | ModelDelta
    | ModelFinished
    | ModelFailed
    | ModelAborted
    | CommitStands
    | CommitRefused
    | TimerFired
    | ToolStarted
    | ToolWaiting
    | ToolSettled
)

# ---- effects


@frozen
class BuildPrompt:
    """Build the prompt of the running turn; `nudge` asks once more for an answer (P3).

    A compaction under way is waited for. `compact` asks for one, because the model refused the last prompt as too long.
    With `plain` it is of words alone, because the model's service refused what was asked (P2).
    """

    ticket: int
    root_id: str
    nudge: bool = False
    compact: bool = False
    model: int = 0
    """Which of the models will read it, counted from 0."""
    plain: bool = False


@frozen
class CallModel:
    """Infer with the prompt just built. `attempt` counts the inferences of this turn from 1."""

    ticket: int
    root_id: str
    attempt: int
    inference_id: str
    """What its step is stored under: the request and the deltas carry it."""
    model: int = 0
    """Which of the models is asked: the one its prompt was built for."""
    is_last: bool = True
    """Whether there is none after it. Any other fails at once while its circuit breaker is open."""


@frozen
class AbortModel:
    """Cancel that inference now; the connection closes."""

    ticket: int


@frozen
class SendCommit:
    """Send this to the store, again and again until it says committed or refused (C10)."""

    ticket: int
    commit: Commit


@frozen
class StartTools:
    """Run these committed calls, in order, as slots allow."""

    root_id: str
    call_ids: tuple[str, ...]


@frozen
class WithdrawTools:
    """Settle these as interrupted unless they have started."""

    call_ids: tuple[str, ...]


@frozen
class EndTools:
    """Force: end the process groups of these."""

    call_ids: tuple[str, ...]


@frozen
class SetTimer:
    """Wake the machine after a backoff."""

    ticket: int
    delay_s: float


@frozen
class SetBudget:
    """(Re)start the clock of the turn: spent after `seconds`, not counting waits for a person."""

    root_id: str
    seconds: float


@frozen
class EndCompaction:
    """Cancel the session's compaction, if one is under way: a stop ends that too."""


@frozen
class HoldBudget:
    """Stop the clock of the turn: what goes on waits for a person, which is nobody's time (B4, T7)."""

    root_id: str


@frozen
class ResumeBudget:
    """Let that clock go on where it stood."""

    root_id: str


@frozen
class EndJobs:
    """Force: end the jobs of the turn (I7, I8)."""

    root_id: str


@frozen
class Notify:
    """Tell the surfaces what the session does (hint)."""

    activity: Activity
    root_id: str | None
    detail: str = ""
    """Why, where it is not obvious."""
    for_s: float | None = None
    """How long it will take, where that is known."""


@frozen
class Finish:
    """The worker ends. `clean` is false when it was fenced off or met a fault: the store decides about attempts."""

    clean: bool


Effect = (
    BuildPrompt
    | CallModel
    | AbortModel
    | SendCommit
    | StartTools
    | WithdrawTools
    | EndTools
    | SetTimer
    | SetBudget
    | HoldBudget
    | ResumeBudget
    | EndJobs
    | EndCompaction
    | Notify
    | Finish
)
