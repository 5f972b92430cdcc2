"""What a store takes and answers: the port that another engine can stand behind. Pure values.

Every change of the system's truth is one of the `Command`s below, committed whole or not at all. Guards are the
store's, decisions are not: a `Commit` says which status each message gets, the store only refuses what no longer
fits (C10).

Replies of a `Commit`: `Committed`, or `Refused` with a reason:

* `stale`: the (epoch, worker) is not the one registered for the session (C2); the worker ends;
* `moved`: a message it takes is no longer waiting, or a stop covers it; the machine judges the boundary again;
* `invalid`: the plan breaks a rule; a fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from attrs import field

from kesoku_actors.errors import Fault
from kesoku_actors.protocol import (
    BusyMode,
    CallState,
    Channel,
    Draft,
    Inbound,
    JobEnding,
    Message,
    Outcome,
    Reason,
    Status,
    Step,
    Stop,
    Waiting,
)
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.values import frozen

if TYPE_CHECKING:
    from kesoku_actors.store.archive import SessionArchive


class StoreFault(Fault):
    """The store cannot do what was asked; the subclasses say whether it is worth another try."""


class StoreBusy(StoreFault):
    """The disk is full or failing, or another process holds the lock, and our retries are used up (C9)."""

    exit_code = 75


class StoreInUse(StoreFault):
    """Another process owns this store (C6); the text names its pid and command."""

    exit_code = 75


class StoreDamaged(StoreFault):
    """The database is corrupt, truncated, not a database, or newer than this program (C8). It was left untouched."""

    exit_code = 65


class StoreUnusable(StoreFault):
    """The path cannot be opened: a directory, a device, no permission, a read-only disk."""

    exit_code = 73


class ResultMode(StrEnum):
    """What a commit does with the calls of its turn that have no result."""

    NONE = "none"
    PUBLISH = "publish"
    """Every call is settled: insert the staged outcomes in call order (O3); anything else is `invalid`."""
    SETTLE = "settle"
    """The turn ends: staged outcome, else `unknown` if started, else `interrupted` (O4)."""


class RefusalReason(StrEnum):
    """Why a commit was refused (C10)."""

    STALE = "stale"
    MOVED = "moved"
    INVALID = "invalid"


@frozen(kw_only=True)
class WorkerKey:
    """Who commits: one registered worker of one life of the agents subtree (C2)."""

    session_id: str
    epoch: int
    worker: int


@frozen(kw_only=True)
class Ending:
    """A message reaches a terminal status."""

    message_id: str
    status: Status
    reason: Reason | None = None


@frozen(kw_only=True)
class Taking:
    """A message goes `pending_agent -> processing`, as the root of a claim or adopted by a turn."""

    message_id: str
    reason: Reason


@frozen(kw_only=True)
class Commit:
    """One transaction of a worker; every part is optional. Parts are carried out in the order of the fields."""

    id: str
    """Idempotent: the same id sent again is answered from what was done (C10)."""
    key: WorkerKey
    root_id: str | None = None
    """The turn the commit belongs to; none for a claim from idle."""
    late: tuple[str, ...] = ()
    """Messages whose expected attachments are settled with the reason `late` (M8)."""
    step: Step | None = None
    insert: tuple[Draft, ...] = ()
    results: ResultMode = ResultMode.NONE
    ends: tuple[Ending, ...] = ()
    """A message without a root ends in this turn if it is older than the turn's root, else as its own root (O1)."""
    adopt: tuple[Taking, ...] = ()
    """In order; each gets the turn as root and a new place."""
    claim: Taking | None = None
    """The next root; with `root_id` set this is a pivot (I2)."""
    claim_adopts: tuple[Taking, ...] = ()
    give_back: bool = False
    """The turn's messages return to `pending_agent`, attempts unchanged (C7), and the worker is unregistered."""


@frozen(kw_only=True)
class OpenCall:
    """A call of the turn that has no result yet, as it is when the reply is sent."""

    call_id: str
    state: CallState


@frozen(kw_only=True)
class Committed:
    """The commit stands. Read fresh when the reply is sent, also when the same commit is sent again."""

    rows: tuple[Message, ...]
    """Rows inserted or changed by it, in `rev` order."""
    open_calls: tuple[OpenCall, ...]
    """Of the turn that runs after it (the claimed one, else `root_id`), in call order."""
    steps: int
    """Steps of that turn so far."""
    spent_s: float
    """Durations of that turn's steps and results so far, seconds (B4)."""
    mode: BusyMode
    stops: tuple[Stop, ...]
    """Of the session, not done."""
    waiting: tuple[Waiting, ...] = ()
    """Those of the session that wait, by seq: whoever spoke before it was carried out may not have been told of yet."""
    said: tuple[str, ...] = ()
    """Ids of the rows committed with its step: what the model said, in order."""
    tokens: int = 0
    """Of a commit that claims: what went into and came out of the models in the claimed turn so far (B4)."""
    cost: float = 0.0
    """And what that cost, US dollars, as far as prices were known."""


@frozen(kw_only=True)
class Refused:
    """Nothing of the commit was kept, except its `step` when the reason is `moved`."""

    reason: RefusalReason
    detail: str
    waiting: tuple[Waiting, ...] = ()
    stops: tuple[Stop, ...] = ()


CommitReply = Committed | Refused


@frozen(kw_only=True)
class Post:
    """Store what an adapter decoded. Answer: `Posted`, `Gone` or `PostRefused`."""

    id: str
    inbound: Inbound


@frozen(kw_only=True)
class Posted:
    """The stored message; `is_new` is false when this external id was posted before (M5)."""

    message: Message
    is_new: bool


@frozen(kw_only=True)
class Gone:
    """This external id was seen and its message is not stored any more (M5); nothing was started."""

    external_id: str


@frozen(kw_only=True)
class PostRefused:
    """The session's waiting messages are at their bound (B4); recorded as seen."""

    max_waiting: int


PostReply = Posted | Gone | PostRefused


@frozen(kw_only=True)
class PostNotice:
    """Store a notice to people: a row that leaves (`pending`). Answer: the `Message`."""

    session_id: str
    content: str
    root_id: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class RequestStop:
    """Stop a turn or a waiting message (I7). Answer: `Stop` or `NothingToStop`."""

    session_id: str
    message_id: str | None = None
    reason: Reason = Reason.STOPPED


@frozen(kw_only=True)
class NothingToStop:
    """The named turn has ended, or nothing runs or waits."""


@frozen(kw_only=True)
class RequestForce:
    """Mark a stop as forced. Answer: the `Stop`, `TooEarly` or `NothingToStop`."""

    session_id: str


@frozen(kw_only=True)
class TooEarly:
    """Force is accepted no sooner than 1 s after its stop; try again in `wait_s` seconds."""

    wait_s: float


@frozen(kw_only=True)
class StopOutcome:
    """What a stop did (I7, I10)."""

    ended: tuple[str, ...] = ()
    """Ids of the messages it covers that ended by it."""
    answered: tuple[str, ...] = ()
    """Ids of those whose answer had been handed over before."""
    jobs: tuple[str, ...] = ()
    """Jobs that end with it, in words."""
    survivors: tuple[str, ...] = ()
    """Processes, threads and jobs that live on, in words."""


@frozen(kw_only=True)
class CloseSession:
    """Begin to clear a session: it is `closed`, a stop with reason `cleared` covers what it holds (M7).

    Answer: `Stop` or `NothingToStop` (closed all the same).
    """

    session_id: str


@frozen(kw_only=True)
class WipeSession:
    """End a clear: delete every row of a closed session, leave a tombstone. Answer: how many rows went."""

    session_id: str


@frozen(kw_only=True)
class SetMode:
    """Change a channel's busy mode (I5). Answer: the mode."""

    channel: Channel
    mode: BusyMode


@frozen(kw_only=True)
class ChooseModel:
    """Remember which model a person chose for a channel; none: the configured one again. Answer: none."""

    channel: Channel
    name: str | None


@frozen(kw_only=True)
class Settlement:
    """What an inference cost in the end, US dollars."""

    id: str
    dollars: float


@frozen(kw_only=True)
class ReserveSpending:
    """An inference is about to begin: reserve what it may cost (B4). Answer: `Spending`. Safe to send again."""

    id: str
    day: int
    """UTC, days since 1970."""
    dollars: float
    most: float
    """What may be spent and reserved in that day."""
    settled: tuple[Settlement, ...] = ()
    """Inferences that have ended; settled first."""


@frozen(kw_only=True)
class Spending:
    """Whether it was reserved, and what of the day was spent and reserved before."""

    is_reserved: bool
    dollars: float


@frozen(kw_only=True)
class SettleSpending:
    """Inferences have ended (B4). Answer: none. Safe to send again."""

    settled: tuple[Settlement, ...]


@frozen(kw_only=True)
class SetTitle:
    """Give a session a better title than `instead_of`, the one it has. Answer: whether it had that one."""

    session_id: str
    title: str
    instead_of: str


@frozen(kw_only=True)
class ImportSessions:
    """Take sessions of an export, all or none; a flaw found while they are iterated refuses all. Answer: `Imported`.

    For a store that nothing else uses meanwhile: what it changes is not published.
    """

    sessions: Iterable[SessionArchive]


@frozen(kw_only=True)
class Imported:
    """What an import brought."""

    sessions: int
    messages: int
    interrupted: int
    """Of them, messages that waited or were worked on."""
    undeliverable: int
    """Of them, messages that were not delivered yet."""


@frozen(kw_only=True)
class EditMessage:
    """Replace the content of a waiting message (M8). Answer: the `Message`, or none when it is taken already."""

    message_id: str
    content: str


@frozen(kw_only=True)
class WithdrawMessage:
    """Delete a waiting message (M8). Answer: whether it was deleted."""

    message_id: str


@frozen(kw_only=True)
class SettleAttachment:
    """An attachment of a message was saved at `path`, or was not for a `reason` (M8).

    Answer: the `Message` as it is stored now, or none when it is gone. The first settlement stands: the file is the
    message's own only when the attachment at `index` names this path. Safe to send again.
    """

    message_id: str
    index: int
    path: str | None = None
    """Relative to the workspace of the message's session, with slashes."""
    mime_type: str | None = None
    """As found in the content; none: as declared."""
    reason: str | None = None


@frozen(kw_only=True)
class AnswerApproval:
    """Approve or deny a waiting call (T7). Answer: `ApprovalAnswer`.

    It is stored who decided and how: a denied call is `settled`, its outcome staged like any other; an approved one is
    `committed` again and may start, after a restart without being asked about again. Who has the call in hand hears of
    it by `Publication.approvals`.
    """

    call_id: str
    approved: bool
    by: str
    """The name that is told to later answers."""
    by_id: str | None = None
    """The platform's id of who answers: only who asked may, unless `is_admin`."""
    is_admin: bool = False
    """Whether who answers may do so for everybody in the channel."""
    for_session: bool = False
    """Whether later calls that the yes covers need no other one (`Approval.parts`)."""


@frozen(kw_only=True)
class ApprovalAnswer:
    """What became of an approval: `accepted` is false when somebody else decided before."""

    accepted: bool
    state: CallState | None
    """None: there is no such call."""
    decided_by: str | None
    """None with a settled call: nobody answered in time, or it was withdrawn."""
    is_allowed: bool = True
    """Whether who answered may; the call still waits when not."""
    is_for_session: bool = False
    """Whether the yes holds for later calls too."""


@frozen(kw_only=True)
class BeginEpoch:
    """A new life of the agents subtree (C2): rows of dead workers go back. Answer: `EpochBegun`.

    `clean` says whether the last life ended in order; otherwise attempts rise. Only `channels` are touched
    (none: all).
    """

    clean: bool
    channels: tuple[Channel, ...] | None = None
    max_attempts: int = 3


@frozen(kw_only=True)
class EpochBegun:
    """The new epoch and the sessions that have work a worker can be started for (I6)."""

    epoch: int
    runnable: tuple[str, ...]
    dead_calls: tuple[DeadCall, ...] = ()
    """Calls `started` in an earlier life of the process, not settled."""
    dead_jobs: tuple[DeadCall, ...] = ()
    """Jobs that an earlier life of the process began and did not end (I8)."""


@frozen(kw_only=True)
class DeadCall:
    """A started call whose run may be gone: its process as it was stored (C3)."""

    call_id: str
    session_id: str
    pid: int | None = None
    process_start: float | None = None
    """Start time as the kernel gives it (clock ticks since boot), to tell a reused pid."""
    job: str = ""
    """The job it became, by name."""
    title: str = ""
    """What the job ran."""


@frozen(kw_only=True)
class RegisterWorker:
    """Make a worker the one of its session (C2). Answer: `Registered`."""

    key: WorkerKey


@frozen(kw_only=True)
class Registered:
    """What a worker begins with: read in the transaction that registered it."""

    channel: Channel
    mode: BusyMode
    waiting: tuple[Waiting, ...]
    """By seq; messages without a root."""
    returned: tuple[str, ...]
    """The turn given back, root first, then adopted by place; empty if none."""
    returned_began: float | None
    """UTC seconds at which that turn was first claimed."""
    stops: tuple[Stop, ...]
    self_started: int
    """Self-started turns in a row (I6)."""
    has_history: bool = True
    """Whether a message has its place in the history (O1) already; without one there is nothing to read."""


@frozen(kw_only=True)
class GiveBack:
    """A worker ended: its turn goes back whole and it is unregistered (C2). Answer: changed rows, a tuple of `Message`.

    An unclean end raises the attempts; at `max_attempts` the turn becomes `error` with a notice to people.
    """

    key: WorkerKey
    clean: bool
    max_attempts: int = 3


@frozen(kw_only=True)
class CallStarted:
    """Durable before the process or function is entered (C3). Answer: whether it may start (state was `committed`)."""

    call_id: str


@frozen(kw_only=True)
class CallWaiting:
    """The call needs a person's yes and waits for it until `expires` (UTC seconds). Answer: `Standing`.

    Whether a call needs approval is decided where tools run (T1), as is when one that nobody answered has expired.
    Asked again it says how the call stands now and changes nothing.
    """

    call_id: str
    expires: float | None
    """None: nobody can be asked here; the answer only tells whether it was approved before."""
    parts: tuple[str, ...] | None = ()
    """What a yes for the session would cover (`Approval.parts`)."""


@frozen(kw_only=True)
class CallExpired:
    """Nobody answered in time (T7): the call is settled. Answer: whether it was still waiting."""

    call_id: str


@frozen(kw_only=True)
class CallProcess:
    """Where a started call runs (C3). Answer: none."""

    call_id: str
    pid: int
    process_start: float | None


@frozen(kw_only=True)
class StageOutcome:
    """The outcome of a call, staged under its id (O3): not a message yet. Answer: whether it was the first."""

    call_id: str
    outcome: Outcome
    content: str
    duration_s: float
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class BeginJob:
    """A started call goes on as a job (I8): its result is staged as `background` in the same transaction.

    Answer: `JobBegun` (also when sent again), `TooManyJobs`, or none when the call is settled already.
    """

    call_id: str
    title: str
    """What runs, for lists."""
    content: tuple[str, str]
    """What the model reads; the job's name stands between the two."""
    duration_s: float
    metadata: Mapping[str, Any] = field(factory=dict)
    """Of the result; the job's name is added as `job`."""
    output_file: str | None = None
    max_jobs: int = 8
    """How many may run in one session."""


@frozen(kw_only=True)
class EndJob:
    """A job has ended (I8): its end and its notice are stored once. Answer: whether it was still running.

    The notice is never stored before the result of its call; it wakes as the ending says (`WAKING`).
    """

    call_id: str
    ending: JobEnding
    detail: str
    """How, in words, for lists."""
    notice: str
    """What the model reads."""


@frozen(kw_only=True)
class PlanDelivery:
    """Store the chunks of a leaving message before the first send (C5).

    Answer: a tuple of `Chunk` as stored; the first plan wins.
    """

    message_id: str
    chunks: tuple[str, ...]


@frozen(kw_only=True)
class Chunk:
    """One part of a delivery. `state` is `planned`, `sent` or `failed`; `nonce` is the same on a resend."""

    message_id: str
    index: int
    content: str
    state: str
    attempts: int
    nonce: str
    remote_id: str | None


@frozen(kw_only=True)
class ChunkAttempt:
    """A chunk is about to be sent: counts an attempt. Answer: the `Chunk`."""

    message_id: str
    index: int


@frozen(kw_only=True)
class ChunkSent:
    """A chunk was sent. Answer: the `Chunk`."""

    message_id: str
    index: int
    remote_id: str | None = None


@frozen(kw_only=True)
class MarkDelivered:
    """A leaving message is `delivered` or `undeliverable`. Answer: whether it was `pending`."""

    message_id: str
    delivered: bool
    detail: str = ""


@frozen(kw_only=True)
class StoreSummaries:
    """Store what a compaction made, all of it or nothing; safe to send again. Answer: whether it stands.

    It does not when the session is closed, or when a turn that it would stand for has not ended or has an open call.
    """

    session_id: str
    summaries: tuple[Summary, ...]
    """Each child before its parent; children may have been stored before."""


Command = (
    Post
    | PostNotice
    | RequestStop
    | RequestForce
    | CloseSession
    | WipeSession
    | SetMode
    | ChooseModel
    | ReserveSpending
    | SettleSpending
    | SetTitle
    | ImportSessions
    | EditMessage
    | WithdrawMessage
    | SettleAttachment
    | AnswerApproval
    | BeginEpoch
    | RegisterWorker
    | GiveBack
    | Commit
    | CallStarted
    | CallWaiting
    | CallExpired
    | CallProcess
    | StageOutcome
    | BeginJob
    | EndJob
    | PlanDelivery
    | ChunkAttempt
    | ChunkSent
    | MarkDelivered
    | StoreSummaries
)


@frozen(kw_only=True)
class Publication:
    """What one group commit changed: handed to the one publisher, in `rev` order (B1)."""

    base: int
    """The counter before it; another one than the last publication's `rev` tells that some were lost."""
    rev: int
    """The counter after it."""
    changed: tuple[Message, ...]
    removed: tuple[tuple[str, str, int], ...] = ()
    """(message id, session id, rev) of rows deleted."""
    stops: tuple[Stop, ...] = ()
    """Stops requested, forced or ended by it, as they are now."""
    modes: tuple[tuple[Channel, BusyMode], ...] = ()
    approvals: tuple[tuple[str, str, CallState], ...] = ()
    """(call id, session id, state) of calls that wait for a person, or do not any more, since (T7); a hint, for the
    calls' states are stored."""
    closed: tuple[str, ...] = ()
    """Sessions whose clear began with it (M7)."""
    begins: bool = False
    """The store begins with it: the last that its earlier life committed may have been told to nobody, and not all of
    that moves the counter."""
