"""A batch of tool calls, from its start until its results are published. Pure.

Invariants (I3, I4, O3, C7): a started call is never cancelled by a message; when somebody interrupts, stops or the
turn is stale, only what has not started is withdrawn, each call once; force ends what runs, also what had just
started when it was withdrawn; results are published when every call is settled, and nothing else of the turn happens
before, except that a shutdown returns a turn of which nothing runs. While all that is open waits for a person the clock
of the turn stands still (B4).
"""

from __future__ import annotations

from kesoku_actors.protocol import CallState
from kesoku_actors.session.turn_commit import give_back, hear, heard_since, send
from kesoku_actors.session.turn_state import (
    UNSTARTED,
    Aborting,
    Batch,
    Committing,
    Hint,
    State,
    ToolNews,
    Transition,
    Turn,
    enter,
    interrupted,
    know,
    starts_nothing,
    stop_of,
    waits_for_a_person,
)
from kesoku_actors.session.vocabulary import (
    Effect,
    EndJobs,
    EndTools,
    ForceRequested,
    HoldBudget,
    ResumeBudget,
    StartTools,
    WithdrawTools,
)
from kesoku_actors.store.port import ResultMode
from kesoku_actors.values import evolve


def take_up(state: State, turn: Turn) -> Transition:
    """Start the open calls that have not started, unless something speaks against it, and attend to them all."""
    state, effects = attend(state, Batch(turn=turn))
    unstarted = _in_state(turn, UNSTARTED)
    if unstarted and not starts_nothing(state, turn):
        effects = (StartTools(turn.root_id, unstarted), *effects)
    return state, effects


def attend(state: State, batch: Batch) -> Transition:
    """Do what the calls' states and the news ask for, and keep the turn's time."""
    turn, clock = _keep_time(batch.turn)
    state, effects = _attend(state, batch if turn is batch.turn else evolve(batch, turn=turn))
    return state, (*clock, *effects)


def _attend(state: State, batch: Batch) -> Transition:
    """Publish, return the turn, withdraw, end, or wait."""
    turn = batch.turn
    states = set(turn.calls.values())
    if states == {CallState.SETTLED}:
        return send(state, turn, turn, results=ResultMode.PUBLISH)
    if state.session.shutdown and CallState.STARTED not in states:
        return give_back(state, turn)
    withdrawn, ended = _to_withdraw(state, batch), _to_end(state, batch)
    effects: tuple[Effect, ...] = ()
    if withdrawn:
        batch = evolve(batch, withdrawn=batch.withdrawn.union(withdrawn))
        effects = (WithdrawTools(withdrawn),)
    if ended:
        batch = evolve(batch, ended=batch.ended.union(ended))
        effects = (*effects, EndTools(ended))
    return enter(state, batch), effects


def _keep_time(turn: Turn) -> tuple[Turn, tuple[Effect, ...]]:
    """Stop the clock of the turn while nothing of it goes on before a person has decided (B4)."""
    if turn.is_held is waits_for_a_person(turn):
        return turn, ()
    clock = ResumeBudget if turn.is_held else HoldBudget
    return evolve(turn, is_held=not turn.is_held), (clock(turn.root_id),)


def heed(state: State, phase: Batch, event: Hint) -> Transition:
    """Hear of a person, a stop, a mode or the shutdown while calls are open (I3)."""
    return attend(know(state, hear(state.session, event)), phase)


def force(state: State, phase: Batch, _event: ForceRequested) -> Transition:
    """End the running calls of a turn that a stop covers; of any other turn there is nothing to force (I7)."""
    root_id = phase.turn.root_id
    stops = tuple(evolve(stop, forced=True) if root_id in stop.covers else stop for stop in state.session.stops)
    state, effects = attend(know(state, evolve(state.session, stops=stops)), phase)
    return state, (*effects, *end_jobs(state, phase.turn))


def force_jobs(state: State, phase: Aborting | Committing, _event: ForceRequested) -> Transition:
    """Nothing of the turn runs that could be forced but its jobs (I7)."""
    return state, end_jobs(state, phase.turn) if phase.turn else ()


def end_jobs(state: State, turn: Turn) -> tuple[Effect, ...]:
    """Return the end of the jobs of a turn that a stop covers."""
    return (EndJobs(turn.root_id),) if stop_of(state.session, turn) else ()


def hear_tool(state: State, phase: Batch, event: ToolNews) -> Transition:
    """Hear what became of a call; of one that is not open there is nothing to hear."""
    calls = heard_since(phase.turn.calls, (event,))
    if calls is phase.turn.calls:
        return state, ()
    return attend(state, evolve(phase, turn=evolve(phase.turn, calls=calls)))


def _to_withdraw(state: State, batch: Batch) -> tuple[str, ...]:
    turn = batch.turn
    if state.session.shutdown or not (turn.stale or interrupted(state, turn)):
        return ()
    return tuple(call for call in _in_state(turn, UNSTARTED) if call not in batch.withdrawn)


def _to_end(state: State, batch: Batch) -> tuple[str, ...]:
    turn = batch.turn
    stop = stop_of(state.session, turn)
    if not (turn.stale or (stop and stop.forced)):
        return ()
    return tuple(call for call in _in_state(turn, frozenset({CallState.STARTED})) if call not in batch.ended)


def _in_state(turn: Turn, states: frozenset[CallState]) -> tuple[str, ...]:
    return tuple(call for call, state in turn.calls.items() if state in states)
