"""What follows when the store answers, and what is kept for that moment. Pure.

Invariants (C10, I10): while a commit is on its way nothing else is done; what is heard meanwhile changes what is known
at once and is heard again after the answer, which may be older; a refusal `moved` judges the same boundary again with
the store's rows, any other refusal ends the worker.
"""

from __future__ import annotations

from kesoku_actors.protocol import CallState
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn_batch import take_up
from kesoku_actors.session.turn_boundary import judge
from kesoku_actors.session.turn_circles import count_batch
from kesoku_actors.session.turn_commit import hear, heard_since, open_calls, refused, registered, stands
from kesoku_actors.session.turn_idle import rest
from kesoku_actors.session.turn_state import (
    Committing,
    Done,
    Hint,
    Registering,
    State,
    ToolNews,
    Transition,
    counted,
    enter,
    know,
    spend,
    starts_nothing,
)
from kesoku_actors.store.port import RefusalReason
from kesoku_actors.values import evolve


def resume(state: State, _phase: Registering, event: v.Resumed) -> Transition:
    """Begin with what the store read when it registered the worker (C2)."""
    return rest(know(state, registered(event.registered, stale=event.stale, models=event.models)))


def stand(state: State, phase: Committing, event: v.CommitStands) -> Transition:
    """Go on as planned; calls of which nothing has started are left alone while something speaks against it (I4)."""
    reply, claim, turn = event.committed, phase.commit.claim, phase.next_turn
    state = know(state, stands(state, phase, reply))
    if turn is None:
        return rest(state)
    calls = open_calls(reply.open_calls, phase.meanwhile)
    left_s = state.limits.max_turn_s - reply.spent_s
    turn = count_batch(turn, reply.rows)
    turn = turn if claim is not None else counted(turn, phase.commit.step)
    turn = evolve(
        turn,
        tokens=turn.tokens if claim is None else reply.tokens,
        cost=turn.cost if claim is None else reply.cost,
        steps=reply.steps,
        calls=calls,
        spent=turn.spent or (claim is not None and left_s <= 0),
    )
    untouched = all(each is CallState.COMMITTED for each in calls.values())
    go_on = judge if untouched and (not calls or starts_nothing(state, turn)) else take_up
    state, effects = go_on(state, turn)
    return state, (v.SetBudget(turn.root_id, left_s), *effects) if claim and left_s > 0 else effects


def refuse(state: State, phase: Committing, event: v.CommitRefused) -> Transition:
    """Judge again with the store's rows, or end the worker (C10). Of the plan the store has kept the ended step."""
    if event.refused.reason is not RefusalReason.MOVED:
        return enter(state, Done(clean=False)), (v.Finish(clean=False),)
    state = know(state, refused(state.session, event.refused, phase.meanwhile))
    turn = phase.turn
    if turn is None:
        return rest(state)
    if phase.commit.step:
        turn = evolve(counted(turn, phase.commit.step), ended=None, steps=turn.steps + 1)
    return judge(state, evolve(turn, calls=heard_since(turn.calls, phase.meanwhile)))


def keep(state: State, phase: Committing, event: Hint) -> Transition:
    """Hear of it now, and again after the store's answer; a message heard of before is no news."""
    session = hear(state.session, event)
    if session is state.session:
        return state, ()
    return enter(know(state, session), evolve(phase, meanwhile=(*phase.meanwhile, event))), ()


def keep_tool(state: State, phase: Committing, event: ToolNews) -> Transition:
    """Keep what tools say, also of a call that only the store's answer will name (C3)."""
    return enter(state, evolve(phase, meanwhile=(*phase.meanwhile, event))), ()


def mark_both(state: State, phase: Committing, event: v.BudgetSpent) -> Transition:
    """Mark the turn spent as it is and as it will be."""
    turn, after = phase.turn, phase.next_turn
    marked = evolve(phase, turn=turn and spend(turn, event), next_turn=after and spend(after, event))
    return enter(state, marked), ()
