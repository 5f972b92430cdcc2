"""What the turn machine knows: its limits, the session, the turn, the phase. Pure.

Invariants:

* a phase holds exactly what it needs; a phase with a ticket waits for the event that carries it;
* nothing that a commit plans is true before the commit stands: `Committing` keeps the turn as it is beside the turn
  that follows, so a refused commit (C10) has nothing to undo;
* the answer of the store is older than what was heard while it was on its way, so that is kept and heard again;
* everything is immutable: mappings are copied when they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import field

from kesoku_actors.protocol import BusyMode, CallState, Reason, Step, Stop, Usage, Waiting
from kesoku_actors.session.vocabulary import (
    BudgetSpent,
    Effect,
    MessageWithdrawn,
    ModeSwitched,
    NoticeArrived,
    PersonSpoke,
    ShutdownRequested,
    StopRequested,
    ToolSettled,
    ToolStarted,
    ToolWaiting,
)
from kesoku_actors.store.port import Commit, WorkerKey
from kesoku_actors.values import evolve, frozen

Hint = PersonSpoke | NoticeArrived | MessageWithdrawn | StopRequested | ModeSwitched | ShutdownRequested
ToolNews = ToolStarted | ToolWaiting | ToolSettled

NO_CALLS: Final[Mapping[str, CallState]] = MappingProxyType({})
NO_QUESTIONS: Final[Mapping[str, str]] = MappingProxyType({})
NO_MESSAGES: Final[Mapping[str, Waiting]] = MappingProxyType({})
UNSTARTED: Final = frozenset({CallState.COMMITTED, CallState.WAITING})


@frozen(kw_only=True)
class TurnLimits:
    """What one turn, and one session by itself, may use (B4, I6, P2)."""

    max_steps: int = 50
    max_turn_s: float = 900.0
    """Not counting waits for a person."""
    max_turn_tokens: int | None = None
    """What may go into and come out of the models; none: no bound."""
    max_turn_cost: float | None = None
    """US dollars; none: no bound."""
    max_tries: int = 6
    """Inferences that may fail in a row before the turn ends."""
    first_backoff_s: float = 1.0
    longest_backoff_s: float = 60.0
    """Also the longest `Retry-After` that is waited for."""
    max_self_started: int = 8
    """Turns in a row that no person asked for."""
    max_calls: int = 128
    """Calls of one step that run; each one beyond gets an error as its result."""
    max_same_batches: int = 8
    """Batches of equal calls with equal results in a row that end a turn."""
    max_known: int = 1024
    """Message ids remembered to tell a repeated hint; a forgotten one costs a refused commit, nothing else."""


@frozen(kw_only=True)
class Session:
    """What the worker has heard of its session. Replaced, never changed."""

    mode: BusyMode = BusyMode.INTERRUPT
    waiting: Mapping[str, Waiting] = NO_MESSAGES
    """Messages without a turn, by id."""
    known: frozenset[str] = frozenset()
    """Ids heard of: the same hint may come twice, and a turn's own messages never interrupt it."""
    stops: tuple[Stop, ...] = ()
    returned: tuple[str, ...] = ()
    """The turn given back by the last worker, root first; it comes before everything that waits (C2)."""
    stale: bool = False
    """That turn began too long ago to be resumed (C2)."""
    self_started: int = 0
    models: tuple[str, ...] = ()
    """The models that may answer, in the order they are asked, as people read their names."""
    after_turn: bool = False
    """This worker has ended a turn: what it claims next has been queued behind it."""
    shutdown: bool = False


@frozen(kw_only=True)
class Turn:
    """The turn that runs: its messages, its calls without result, what its last inference left."""

    root_id: str
    adopted: tuple[str, ...] = ()
    steps: int = 0
    """Steps stored."""
    tokens: int = 0
    """What went into and came out of the models in them."""
    cost: float = 0.0
    """What that cost, US dollars, as far as prices are known."""
    last: Usage = field(factory=Usage)
    """Of the last inference that said so: the next one is expected to use as much (B4)."""
    ended: Step | None = None
    """An inference that ended and is not stored yet: it goes with whatever commit follows (M4)."""
    text: str = ""
    """What that inference had streamed: kept as partial if the turn ends here (I2)."""
    calls: Mapping[str, CallState] = NO_CALLS
    """Calls without a result, in order; while there are any nothing is inferred (I4)."""
    tries: int = 0
    """Inferences that failed in a row."""
    delay_s: float = 0.0
    """How long to wait before the next inference."""
    trouble: str = ""
    """Why that wait is needed."""
    model: int = 0
    """Which of the session's models is asked. A turn that failed over stays with the next one (P2)."""
    lost: tuple[str, ...] = ()
    """What became of the models before it, in words."""
    news: str = ""
    """What people are told before the next inference: the last of them was lost."""
    nudge: bool = False
    """The last reply was empty: the next prompt asks for an answer (P3)."""
    too_long: int = 0
    """Inferences whose prompt the model refused as too long."""
    compact: bool = False
    """The last one was: the next prompt is to be compacted, once in a turn (P2)."""
    unshown: frozenset[str] = frozenset()
    """The files its models were not shown, as people have been told."""
    plain: bool = False
    """The model's service refused what it was asked: from now on the turn asks in words alone (P2)."""
    asked: Mapping[str, str] = NO_QUESTIONS
    """The calls whose batch is not published yet, each with what it asks for (`turn_circles`)."""
    batch: tuple[tuple[str, str, str], ...] = ()
    """The batch published last: what was asked for, the outcomes, the results."""
    same_batches: int = 0
    """How often in a row it was the same."""
    unread: bool = True
    """No inference has begun since it last took a message: no time budget ends it yet (B4)."""
    spent: bool = False
    """Its time is used up (B4)."""
    is_held: bool = False
    """Its clock stands still: it waits for a person (B4)."""
    stale: bool = False


@frozen(kw_only=True)
class Registering:
    """Nothing is known yet; `Resumed` comes first."""


@frozen(kw_only=True)
class Prompting:
    """A prompt is being built: thought, interruptible."""

    turn: Turn
    ticket: int


@frozen(kw_only=True)
class Inferring:
    """The model speaks: thought, interruptible."""

    turn: Turn
    ticket: int
    pieces: tuple[str, ...] = ()
    """What it streamed so far, as `with_piece` puts it together."""

    @property
    def text(self) -> str:
        """What it streamed so far."""
        return "".join(self.pieces)


@frozen(kw_only=True)
class Aborting:
    """The inference is being cancelled; whatever comes of it counts as aborted (I2)."""

    turn: Turn
    ticket: int
    text: str


@frozen(kw_only=True)
class BackingOff:
    """Waiting before another try: thought, interruptible."""

    turn: Turn
    ticket: int
    delay_s: float


@frozen(kw_only=True)
class Committing:
    """A commit is on its way, and until it is answered nothing else is done (C10)."""

    turn: Turn | None
    """The turn as it is, and stays if the commit is refused."""
    ticket: int
    commit: Commit
    next_turn: Turn | None
    """The turn that runs once it stands."""
    meanwhile: tuple[Hint | ToolNews, ...] = ()
    """Heard since it was sent: the store's answer may be older."""


@frozen(kw_only=True)
class Batch:
    """Calls of the turn are open. Tools are atomic: only what has not started is withdrawn (I3)."""

    turn: Turn
    withdrawn: frozenset[str] = frozenset()
    """Calls the tools were asked to withdraw."""
    ended: frozenset[str] = frozenset()
    """Calls whose processes the tools were asked to end."""


@frozen(kw_only=True)
class Done:
    """The worker has ended; `clean` as it was told in `Finish`."""

    clean: bool


Phase = Registering | Prompting | Inferring | Aborting | BackingOff | Committing | Batch | Done


@frozen(kw_only=True)
class State:
    """The whole machine."""

    key: WorkerKey
    limits: TurnLimits
    session: Session = field(factory=Session)
    phase: Phase = field(factory=Registering)
    ticket: int = 0
    """The last ticket given."""


Transition = tuple[State, tuple[Effect, ...]]


def begin(key: WorkerKey, limits: TurnLimits) -> State:
    """Return the machine of a new worker; its first event is `Resumed`."""
    return State(key=key, limits=limits)


def enter(state: State, phase: Phase, ticket: int | None = None) -> State:
    """Return the machine in its next phase, which waits for `ticket` if that is a new one."""
    return State(
        key=state.key,
        limits=state.limits,
        session=state.session,
        phase=phase,
        ticket=state.ticket if ticket is None else ticket,
    )


def know(state: State, session: Session) -> State:
    """Return the machine knowing this of its session."""
    return State(key=state.key, limits=state.limits, session=session, phase=state.phase, ticket=state.ticket)


def with_piece(pieces: tuple[str, ...], piece: str) -> tuple[str, ...]:
    """Return the pieces with one more at their end.

    Each piece is longer than the next, so there are few, and a text that comes word by word costs about its length:
    neither the text nor a list of its words is copied for every word.
    """
    kept = len(pieces)
    while kept and len(pieces[kept - 1]) <= len(piece):
        kept -= 1
        piece = pieces[kept] + piece
    return (*pieces[:kept], piece)


def tag(state: State, ticket: int) -> str:
    """Return the id of a commit or inference: unique, and the same whenever the same events are replayed (C10)."""
    return f"{state.key.epoch}.{state.key.worker}.{ticket}"


def covered(session: Session) -> dict[str, Reason]:
    """Return the waiting messages that a stop covers, each with the reason it ends for (I7)."""
    return {
        message_id: reason_of(stop)
        for stop in session.stops
        for message_id in session.waiting
        if message_id in stop.covers
    }


def people(session: Session) -> list[Waiting]:
    """Return the messages of people that wait and are not covered by a stop, in order (O2)."""
    return _asking(session, person=True)


def notices(session: Session) -> list[Waiting]:
    """Return the notices that wait and are not covered by a stop, in order."""
    return _asking(session, person=False)


def _asking(session: Session, *, person: bool) -> list[Waiting]:
    if not session.waiting:
        return []
    gone = covered(session) if session.stops else {}
    asking = [each for each in session.waiting.values() if each.is_person is person and each.id not in gone]
    return sorted(asking, key=lambda each: each.seq)


def stop_of(session: Session, turn: Turn) -> Stop | None:
    """Return the first stop that covers the turn; a forced one if there is one."""
    stops = [stop for stop in session.stops if turn.root_id in stop.covers]
    return next((stop for stop in stops if stop.forced), stops[0] if stops else None)


def reason_of(stop: Stop) -> Reason:
    """Return why what the stop covers ends."""
    return Reason.FORCED if stop.forced else stop.reason


def waits_for_a_person(turn: Turn) -> bool:
    """Say whether nothing of the turn goes on before a person has decided about a call (T7)."""
    open_calls = {state for state in turn.calls.values() if state is not CallState.SETTLED}
    return open_calls == {CallState.WAITING}


def counted(turn: Turn, step: Step | None) -> Turn:
    """Return the turn after a step of it was stored."""
    if step is None or not (step.usage.tokens or step.usage.cost):
        return turn
    usage = step.usage
    return evolve(turn, tokens=turn.tokens + usage.tokens, cost=turn.cost + (usage.cost or 0.0), last=usage)


def spend(turn: Turn, event: BudgetSpent) -> Turn:
    """Return the turn with its time used up, if it is the one that the event names (B4)."""
    return evolve(turn, spent=True) if event.root_id == turn.root_id else turn


def interrupted(state: State, turn: Turn) -> bool:
    """Say whether an interrupting message or a stop waits (I2, I7)."""
    session = state.session
    if session.stops and stop_of(session, turn):
        return True
    return session.mode is BusyMode.INTERRUPT and bool(session.waiting) and bool(people(session))


def starts_nothing(state: State, turn: Turn) -> bool:
    """Say whether calls that have not started stay so (I4, C7, C2)."""
    return state.session.shutdown or turn.stale or interrupted(state, turn)
