"""What is done while no turn runs: exactly one thing, the first that applies (I5, I6, I7, C2). Pure.

`IDLE` is the rule: what a stop covers ends, a returned turn comes before everything that waits, then people, then a
notice that wakes as long as not too many turns in a row started by themselves. Otherwise the worker ends: an idle
session holds no task (B3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kesoku_actors.protocol import BusyMode, Reason, Waiting
from kesoku_actors.session.turn_commit import begun, covered_endings, in_order, send, superseded, takings
from kesoku_actors.session.turn_state import Done, State, Transition, Turn, enter, notices, people
from kesoku_actors.session.vocabulary import Finish
from kesoku_actors.store.port import Ending, Taking

_GATHERS: Final = frozenset({BusyMode.COLLECT, BusyMode.STEER})


def rest(state: State) -> Transition:
    """Do the first thing that applies while no turn runs."""
    for applies, act in IDLE:
        if applies(state):
            return act(state)
    return finish(state)


def finish(state: State) -> Transition:
    """End the worker: nothing here can become a turn (I6), or the process ends."""
    return enter(state, Done(clean=True)), (Finish(clean=True),)


def end_covered(state: State) -> Transition:
    """End what a stop covers and no turn ever took (I7)."""
    return send(state, None, None, ends=covered_endings(state.session))


def resume(state: State) -> Transition:
    """Take up the turn that the last worker gave back, whole (C2)."""
    session = state.session
    root, *adopted = session.returned
    return send(
        state,
        None,
        Turn(root_id=root, adopted=tuple(adopted), stale=session.stale),
        claim=Taking(message_id=root, reason=Reason.RESUMED),
        claim_adopts=tuple(Taking(message_id=each, reason=Reason.RESUMED) for each in adopted),
    )


def claim_person(state: State) -> Transition:
    """Begin the next turn of people, as the busy mode says who is its root and who comes along (I5)."""
    session = state.session
    who, along = people(session), notices(session)
    if session.mode is BusyMode.INTERRUPT:
        return _claim(state, who[-1], along, superseded(who[:-1]))
    with_root = who[1:] if session.mode in _GATHERS else []
    return _claim(state, who[0], in_order(with_root, along))


def claim_notice(state: State) -> Transition:
    """Begin a turn that no person asked for (I6); every other notice comes along."""
    along = notices(state.session)
    root = next(each for each in along if each.wakes)
    return _claim(state, root, [each for each in along if each is not root])


def _claim(state: State, root: Waiting, along: list[Waiting], ends: tuple[Ending, ...] = ()) -> Transition:
    reason = Reason.QUEUED if state.session.after_turn else Reason.FRESH
    return send(
        state,
        None,
        begun(root, along),
        ends=ends,
        claim=Taking(message_id=root.id, reason=reason),
        claim_adopts=takings(along, Reason.COLLECTED),
    )


def _leaving(state: State) -> bool:
    return state.session.shutdown


def _covered_wait(state: State) -> bool:
    return bool(state.session.stops) and bool(covered_endings(state.session))


def _turn_returned(state: State) -> bool:
    return bool(state.session.returned)


def _person_waits(state: State) -> bool:
    return bool(people(state.session))


def _notice_wakes(state: State) -> bool:
    within = state.session.self_started < state.limits.max_self_started
    return within and any(each.wakes for each in notices(state.session))


IDLE: Final[tuple[tuple[Callable[[State], bool], Callable[[State], Transition]], ...]] = (
    (_leaving, finish),
    (_covered_wait, end_covered),
    (_turn_returned, resume),
    (_person_waits, claim_person),
    (_notice_wakes, claim_notice),
)
