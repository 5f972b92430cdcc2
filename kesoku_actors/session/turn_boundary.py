"""What is done between two batches of a running turn: exactly one thing, the first that applies (I5). Pure.

`BOUNDARY` is the rule. Results are published before a boundary is reached (`turn_batch`), so the order is:
obey a stop, shutdown, stale, pivot, start calls not started, budget, adopt, infer; nothing is adopted into a turn that
ends there. Each act sends one commit, builds a prompt or starts a timer. Before the first inference of another model
people are told why it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kesoku_actors.protocol import BusyMode, Reason, Status
from kesoku_actors.session import turn_words as words
from kesoku_actors.session.turn_batch import take_up
from kesoku_actors.session.turn_budget import used_up
from kesoku_actors.session.turn_circles import end_circle, goes_in_circles
from kesoku_actors.session.turn_commit import (
    begun,
    covered_endings,
    end_turn,
    endings,
    give_back,
    in_order,
    send,
    superseded,
    takings,
)
from kesoku_actors.session.turn_state import (
    BackingOff,
    Prompting,
    State,
    Transition,
    Turn,
    enter,
    notices,
    people,
    reason_of,
    stop_of,
)
from kesoku_actors.session.vocabulary import BuildPrompt, SetTimer
from kesoku_actors.store.port import ResultMode, Taking
from kesoku_actors.values import evolve


def judge(state: State, turn: Turn) -> Transition:
    """Do the first thing that applies at the boundary of a running turn."""
    for applies, act in BOUNDARY:
        if applies(state, turn):
            return act(state, turn)
    return infer(state, turn)


def obey_stop(state: State, turn: Turn) -> Transition:
    """End the turn and all that waits and is covered (I7)."""
    stop = stop_of(state.session, turn)
    assert stop is not None
    return end_turn(state, turn, Status.INTERRUPTED, reason_of(stop), covered_too=True)


def end_stale(state: State, turn: Turn) -> Transition:
    """End a turn that began too long ago to be resumed, and say so (C2)."""
    sentence = "This began too long ago and was not resumed after the restart; ask again if it still matters."
    told = words.notice(Reason.STALE, sentence)
    return end_turn(state, turn, Status.INTERRUPTED, Reason.STALE, told, covered_too=True)


def pivot(state: State, turn: Turn) -> Transition:
    """End the turn for the last person who waits; those before get no inference of their own (I2, I5)."""
    session = state.session
    *skipped, root = people(session)
    along = notices(session)
    return send(
        state,
        turn,
        begun(root, along),
        step=turn.ended,
        insert=words.partial(turn.text),
        results=ResultMode.SETTLE,
        ends=(
            *endings(turn, Status.INTERRUPTED, Reason.INTERRUPTED),
            *superseded(skipped),
            *covered_endings(session),
        ),
        claim=Taking(message_id=root.id, reason=Reason.INTERRUPTED),
        claim_adopts=takings(along, Reason.COLLECTED),
    )


def end_over_budget(state: State, turn: Turn) -> Transition:
    """End a turn that has used up its steps, time, tokens or money, and say so (B4)."""
    sentence = f"I stopped here: this turn {used_up(state.limits, turn)}. Say so if I should go on."
    told = words.notice(Reason.BUDGET, sentence)
    return end_turn(state, turn, Status.ERROR, Reason.BUDGET, told)


def adopt(state: State, turn: Turn) -> Transition:
    """Let the running turn hear everybody who waits, in order; notices come along with a person (I5)."""
    taken = in_order(people(state.session), notices(state.session))
    adopted = (*turn.adopted, *(each.id for each in taken))
    after = evolve(turn, adopted=adopted, ended=None, text="", unread=True)
    return send(state, turn, after, step=turn.ended, adopt=takings(taken, Reason.STEERED))


def store_step(state: State, turn: Turn) -> Transition:
    """Store a step that left nothing to go on with; the turn infers again, so its text is dropped (I2)."""
    return send(state, turn, evolve(turn, ended=None, text=""), step=turn.ended)


def tell_news(state: State, turn: Turn) -> Transition:
    """Tell people that another model is asked, and why; the step that failed is stored with it (P2)."""
    told = words.notice(Reason.PROVIDER, turn.news)
    return send(state, turn, evolve(turn, ended=None, text="", news=""), step=turn.ended, insert=(told,))


def back_off(state: State, turn: Turn) -> Transition:
    """Wait as long as the last failure asks for (P2)."""
    ticket = state.ticket + 1
    phase = BackingOff(turn=evolve(turn, delay_s=0.0, text=""), ticket=ticket, delay_s=turn.delay_s)
    return enter(state, phase, ticket), (SetTimer(ticket, turn.delay_s),)


def infer(state: State, turn: Turn) -> Transition:
    """Begin an inference with its prompt; what an earlier one had streamed is of no more use."""
    ticket = state.ticket + 1
    after = evolve(turn, text="", compact=False) if turn.text or turn.compact else turn
    prompt = BuildPrompt(ticket, turn.root_id, turn.nudge, turn.compact, turn.model, turn.plain)
    return enter(state, Prompting(turn=after, ticket=ticket), ticket), (prompt,)


def _shutting_down(state: State, _turn: Turn) -> bool:
    return state.session.shutdown


def _stopped(state: State, turn: Turn) -> bool:
    return bool(state.session.stops) and stop_of(state.session, turn) is not None


def _stale(_state: State, turn: Turn) -> bool:
    return turn.stale


def _people_interrupt(state: State, _turn: Turn) -> bool:
    return state.session.mode is BusyMode.INTERRUPT and bool(people(state.session))


def _calls_not_started(_state: State, turn: Turn) -> bool:
    return bool(turn.calls)


def _over_budget(state: State, turn: Turn) -> bool:
    return used_up(state.limits, turn) is not None


def _people_steer(state: State, _turn: Turn) -> bool:
    return state.session.mode is BusyMode.STEER and bool(people(state.session))


def _has_news(_state: State, turn: Turn) -> bool:
    return bool(turn.news)


def _step_not_stored(_state: State, turn: Turn) -> bool:
    return turn.ended is not None


def _must_wait(_state: State, turn: Turn) -> bool:
    return turn.delay_s > 0


BOUNDARY: Final[tuple[tuple[Callable[[State, Turn], bool], Callable[[State, Turn], Transition]], ...]] = (
    (_stopped, obey_stop),
    (_shutting_down, give_back),
    (_stale, end_stale),
    (_people_interrupt, pivot),
    (_calls_not_started, take_up),
    (goes_in_circles, end_circle),
    (_over_budget, end_over_budget),
    (_people_steer, adopt),
    (_has_news, tell_news),
    (_step_not_stored, store_step),
    (_must_wait, back_off),
)
