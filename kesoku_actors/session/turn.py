"""The turn machine: `step(state, event) -> (state, effects)`. Pure.

The rules, as the contract numbers them; `TRANSITIONS` is where each is kept:

* thought is interruptible: a prompt, an inference or a backoff ends at once for an interrupting message, a stop or a
  shutdown (I2, I7, C7); what a cancelled inference still brings counts as aborted;
* tools are atomic: while a batch is open only its calls decide when it ends (I3, `turn_batch`);
* while a commit is on its way nothing else is done; what is heard meanwhile is judged when it is answered (C10, I10);
* between batches and between turns exactly one thing is done, the first that applies (I5, `turn_boundary`,
  `turn_idle`);
* an answer, the end of the turn's messages and its step are one commit (C4); so are all calls of a step (O3).

An event that a phase cannot get is ignored only for one of three reasons, and each has its name in the table: `late`
(its ticket is not outstanding any more), `moot` (it changes nothing here), `over` (the worker has ended). Anything
else is a `Misfit`, a fault of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kesoku_actors.errors import Fault
from kesoku_actors.protocol import Activity, Reason, Stop
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn_batch import force, force_jobs, hear_tool, heed
from kesoku_actors.session.turn_state import (
    Aborting,
    BackingOff,
    Batch,
    Committing,
    Done,
    Inferring,
    Phase,
    Prompting,
    Registering,
    State,
    Transition,
    Turn,
    TurnLimits,
    begin,
    stop_of,
    waits_for_a_person,
)
from kesoku_actors.session.turn_stored import keep, keep_tool, mark_both, refuse, resume, stand
from kesoku_actors.session.turn_thought import (
    abort,
    abort_spent,
    aborted,
    failed,
    mark_spent,
    note,
    overspend,
    prompted,
    replied,
    rethink,
    streamed,
    waited,
)

__all__ = ["TRANSITIONS", "Misfit", "State", "TurnLimits", "activity", "begin", "step"]

Handler = Callable[[State, Any, Any], Transition]


class Misfit(Fault):
    """An event came that the phase cannot get: the worker fed the machine wrongly."""


def late(state: State, _phase: Phase, _event: v.Event) -> Transition:
    """Ignore: what this event completes is not outstanding any more."""
    return state, ()


def moot(state: State, _phase: Phase, _event: v.Event) -> Transition:
    """Ignore: here it changes nothing."""
    return state, ()


def over(state: State, _phase: Done, _event: v.Event) -> Transition:
    """Ignore: the worker has ended."""
    return state, ()


def misfit(_state: State, phase: Phase, event: v.Event) -> Transition:
    """Refuse: the worker broke the order of events."""
    raise Misfit(f"{type(event).__name__} cannot come while {type(phase).__name__}")


PHASES: Final = (Registering, Prompting, Inferring, Aborting, BackingOff, Committing, Batch, Done)

# fmt: off
_TABLE: Final[Mapping[type[v.Event], tuple[Handler, ...]]] = {
    # event              Registering  Prompting  Inferring    Aborting      BackingOff  Committing  Batch       Done
    v.Resumed:           (resume,     misfit,    misfit,      misfit,       misfit,     misfit,     misfit,     over),
    v.PersonSpoke:       (misfit,     rethink,   abort,       note,         rethink,    keep,       heed,       over),
    v.NoticeArrived:     (misfit,     note,      note,        note,         note,       keep,       note,       over),
    v.MessageWithdrawn:  (misfit,     note,      note,        note,         note,       keep,       note,       over),
    v.StopRequested:     (misfit,     rethink,   abort,       note,         rethink,    keep,       heed,       over),
    v.ModeSwitched:      (misfit,     rethink,   abort,       note,         rethink,    keep,       heed,       over),
    v.ShutdownRequested: (misfit,     rethink,   abort,       note,         rethink,    keep,       heed,       over),
    v.ForceRequested:    (misfit,     moot,      moot,        force_jobs,   moot,       force_jobs,  force,      over),
    v.BudgetSpent:       (misfit,     overspend, abort_spent, mark_spent,   overspend,  mark_both,  mark_spent, over),
    v.PromptBuilt:       (late,       prompted,  late,        late,         late,       late,       late,       over),
    v.ModelDelta:        (late,       late,      streamed,    moot,         late,       late,       late,       over),
    v.ModelFinished:     (late,       late,      replied,     aborted,      late,       late,       late,       over),
    v.ModelFailed:       (late,       late,      failed,      aborted,      late,       late,       late,       over),
    v.ModelAborted:      (late,       late,      aborted,     aborted,      late,       late,       late,       over),
    v.TimerFired:        (late,       late,      late,        late,         waited,     late,       late,       over),
    v.CommitStands:      (late,       late,      late,        late,         late,       stand,      late,       over),
    v.CommitRefused:     (late,       late,      late,        late,         late,       refuse,     late,       over),
    v.ToolStarted:       (misfit,     moot,      moot,        moot,         moot,       keep_tool,  hear_tool,  over),
    v.ToolWaiting:       (misfit,     moot,      moot,        moot,         moot,       keep_tool,  hear_tool,  over),
    v.ToolSettled:       (misfit,     moot,      moot,        moot,         moot,       keep_tool,  hear_tool,  over),
}
# fmt: on


def _by_phase(table: Mapping[type[v.Event], tuple[Handler, ...]]) -> dict[tuple[type[Phase], type[v.Event]], Handler]:
    return {(phase, event): handler for event, row in table.items() for phase, handler in zip(PHASES, row, strict=True)}


TRANSITIONS: Final = _by_phase(_TABLE)


def step(state: State, event: v.Event) -> Transition:
    """Return the next state and what to do now. Raises `Misfit` for an event the phase cannot get."""
    phase = state.phase
    ticket = getattr(event, "ticket", None)
    if ticket is not None and ticket != getattr(phase, "ticket", None):
        return state, ()
    after, effects = TRANSITIONS[type(phase), type(event)](state, phase, event)
    if isinstance(event, v.StopRequested) and _is_stopped(phase, event.stop):
        effects = (v.EndCompaction(), *effects)
    if after.session is state.session and (after.phase is phase or type(after.phase) is type(phase) is Inferring):
        return after, effects
    return after, (*_told(state, after), *effects)


def activity(state: State) -> tuple[Activity, str | None]:
    """Return what the session does, and in which turn, for surfaces."""
    phase = state.phase
    turn = _running(phase)
    if turn is None:
        return Activity.IDLE, None
    stop = stop_of(state.session, turn) if state.session.stops else None
    if stop:
        return _STOPPING.get(stop.reason, Activity.STOPPING), turn.root_id
    if isinstance(phase, Batch) and waits_for_a_person(phase.turn):
        return Activity.ASKING, turn.root_id
    return _DOING.get(type(phase), Activity.THINKING), turn.root_id


_DOING: Final[Mapping[type[Phase], Activity]] = {Batch: Activity.TOOLS, BackingOff: Activity.RETRYING}
_STOPPING: Final[Mapping[Reason, Activity]] = {Reason.CLEARED: Activity.CLEARING}


def _running(phase: Phase) -> Turn | None:
    """Return the turn that runs, or will once its claim stands."""
    turn: Turn | None = getattr(phase, "turn", None)
    return turn or (phase.next_turn if isinstance(phase, Committing) else None)


def _is_stopped(phase: Phase, stop: Stop) -> bool:
    turn = _running(phase)
    return turn is not None and not stop.done and turn.root_id in stop.covers


def _told(before: State, after: State) -> tuple[v.Effect, ...]:
    if isinstance(after.phase, Done) and not after.phase.clean:
        return ()  # another worker speaks for the session now
    now = activity(after)
    if now == activity(before):
        return ()
    if isinstance(after.phase, BackingOff) and now[0] is Activity.RETRYING:
        return (v.Notify(*now, detail=after.phase.turn.trouble, for_s=after.phase.delay_s),)
    return (v.Notify(*now),)
