"""Commits of the turn machine: how they are sent, and what is known when they stand or are refused. Pure.

Invariants: a commit's id follows from the worker and its ticket (C10); what it takes stops waiting only when it
stands; of a refused plan only the ended step is kept (by the store); whatever was heard while the commit was on its
way is newer than the store's answer and heard again after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from kesoku_actors.protocol import CallState, Draft, Reason, Status, Step, Waiting
from kesoku_actors.session.turn_state import (
    Committing,
    Hint,
    Session,
    State,
    ToolNews,
    Transition,
    Turn,
    covered,
    enter,
    tag,
)
from kesoku_actors.session.turn_words import partial
from kesoku_actors.session.vocabulary import (
    MessageWithdrawn,
    ModeSwitched,
    NoticeArrived,
    PersonSpoke,
    SendCommit,
    ShutdownRequested,
    StopRequested,
    ToolSettled,
    ToolStarted,
    ToolWaiting,
)
from kesoku_actors.store.port import Commit, Committed, Ending, OpenCall, Refused, Registered, ResultMode, Taking
from kesoku_actors.values import evolve

_NEWS: Final[Mapping[type[ToolNews], CallState]] = {
    ToolStarted: CallState.STARTED,
    ToolWaiting: CallState.WAITING,
    ToolSettled: CallState.SETTLED,
}


def send(
    state: State,
    turn: Turn | None,
    next_turn: Turn | None,
    *,
    late: tuple[str, ...] = (),
    step: Step | None = None,
    insert: tuple[Draft, ...] = (),
    results: ResultMode = ResultMode.NONE,
    ends: tuple[Ending, ...] = (),
    adopt: tuple[Taking, ...] = (),
    claim: Taking | None = None,
    claim_adopts: tuple[Taking, ...] = (),
    give_back: bool = False,
) -> Transition:
    """Send a commit of `turn` (none: from idle); once it stands `next_turn` runs."""
    ticket = state.ticket + 1
    commit = Commit(
        id=tag(state, ticket),
        key=state.key,
        root_id=turn.root_id if turn else None,
        late=late,
        step=step,
        insert=insert,
        results=results,
        ends=ends,
        adopt=adopt,
        claim=claim,
        claim_adopts=claim_adopts,
        give_back=give_back,
    )
    phase = Committing(turn=turn, ticket=ticket, commit=commit, next_turn=next_turn)
    return enter(state, phase, ticket), (SendCommit(ticket, commit),)


def endings(turn: Turn, status: Status, reason: Reason | None = None) -> tuple[Ending, ...]:
    """Return the end of the turn's messages: they take every status together (I5)."""
    return tuple(
        Ending(message_id=message_id, status=status, reason=reason) for message_id in (turn.root_id, *turn.adopted)
    )


def covered_endings(session: Session) -> tuple[Ending, ...]:
    """Return the end of the waiting messages that a stop covers (I7)."""
    return tuple(
        Ending(message_id=message_id, status=Status.INTERRUPTED, reason=reason)
        for message_id, reason in covered(session).items()
    )


def takings(messages: Iterable[Waiting], reason: Reason) -> tuple[Taking, ...]:
    """Return the taking of these messages, in the order given."""
    return tuple(Taking(message_id=each.id, reason=reason) for each in messages)


def superseded(skipped: Iterable[Waiting]) -> tuple[Ending, ...]:
    """Return the end of people's messages that get no inference of their own (I5)."""
    return tuple(Ending(message_id=each.id, status=Status.INTERRUPTED, reason=Reason.SUPERSEDED) for each in skipped)


def begun(root: Waiting, along: Iterable[Waiting]) -> Turn:
    """Return the turn that a claim of `root` begins."""
    return Turn(root_id=root.id, adopted=tuple(each.id for each in along))


def in_order(*groups: Iterable[Waiting]) -> list[Waiting]:
    """Return all these messages in the order they were stored (O2)."""
    return sorted((each for group in groups for each in group), key=lambda each: each.seq)


def end_turn(
    state: State, turn: Turn, status: Status, reason: Reason, *told: Draft, covered_too: bool = False
) -> Transition:
    """End the turn without an answer: text so far kept, open calls settled (O4), all its messages together."""
    ends = endings(turn, status, reason)
    return send(
        state,
        turn,
        None,
        step=turn.ended,
        insert=(*partial(turn.text), *told),
        results=ResultMode.SETTLE,
        ends=(*ends, *covered_endings(state.session)) if covered_too else ends,
    )


def give_back(state: State, turn: Turn) -> Transition:
    """Return the turn's messages to those who wait, for the next life of the process (C7); streamed text is dropped."""
    return send(state, turn, None, step=turn.ended, give_back=True)


def hear(session: Session, event: Hint | ToolNews) -> Session:
    """Return what is known after a hint; a message heard of before changes nothing."""
    match event:
        case PersonSpoke(message=message) | NoticeArrived(message=message):
            if message.id in session.known:
                return session
            return evolve(session, waiting={**session.waiting, message.id: message}, known=session.known | {message.id})
        case MessageWithdrawn(message_id=message_id):
            return evolve(session, waiting=_without(session, {message_id}))
        case StopRequested(stop=stop):
            others = tuple(each for each in session.stops if each.seq != stop.seq)
            return evolve(session, stops=others if stop.done else (*others, stop))
        case ModeSwitched(mode=mode):
            return evolve(session, mode=mode)
        case ShutdownRequested():
            return evolve(session, shutdown=True)
        case ToolStarted() | ToolWaiting() | ToolSettled():
            return session


def registered(answer: Registered, *, stale: bool, models: tuple[str, ...]) -> Session:
    """Return what a worker begins with."""
    waiting = {each.id: each for each in answer.waiting}
    return Session(
        mode=answer.mode,
        waiting=waiting,
        known=frozenset((*waiting, *answer.returned)),
        stops=answer.stops,
        returned=answer.returned,
        stale=stale,
        self_started=answer.self_started,
        models=models,
    )


def refused(session: Session, answer: Refused, meanwhile: tuple[Hint | ToolNews, ...]) -> Session:
    """Return what is known after a refusal: the store's rows, then what was heard since the commit was sent."""
    waiting = {each.id: each for each in answer.waiting}
    for event in meanwhile:
        if isinstance(event, PersonSpoke | NoticeArrived):
            waiting[event.message.id] = event.message
    after = evolve(session, waiting=waiting, stops=answer.stops, known=session.known.union(waiting))
    for event in meanwhile:
        after = hear(after, event)
    return after


def stands(state: State, phase: Committing, answer: Committed) -> Session:
    """Return what is known once the commit stands: what it took waits no more, stops, mode and who waits are the
    store's, which may be ahead of what was heard (I4)."""
    session, commit, ended = _with_unheard(state.session, answer.waiting), phase.commit, phase.next_turn
    claimed = (commit.claim, *commit.claim_adopts) if commit.claim else ()
    taken = {each.message_id for each in (*commit.adopt, *claimed)} | {each.message_id for each in commit.ends}
    after = evolve(
        session,
        mode=answer.mode,
        stops=answer.stops,
        waiting=_without(session, taken),
        returned=() if commit.claim else session.returned,
        self_started=_self_started(session, commit),
        after_turn=session.after_turn or (phase.turn is not None and ended is None),
        known=_bounded(session, state.limits.max_known, ended),
    )
    for event in phase.meanwhile:
        after = hear(after, event)
    return after


def open_calls(rows: tuple[OpenCall, ...], meanwhile: tuple[Hint | ToolNews, ...]) -> Mapping[str, CallState]:
    """Return the calls without result as the store read them, brought up to what tools said since."""
    return heard_since({row.call_id: row.state for row in rows}, meanwhile)


def heard_since(calls: Mapping[str, CallState], meanwhile: tuple[Hint | ToolNews, ...]) -> Mapping[str, CallState]:
    """Return the calls as tools left them; news of other calls says nothing of these, and settled is the end."""
    for event in meanwhile:
        if isinstance(event, ToolNews) and calls.get(event.call_id, CallState.SETTLED) is not CallState.SETTLED:
            calls = {**calls, event.call_id: _NEWS[type(event)]}
    return calls


def _with_unheard(session: Session, waiting: tuple[Waiting, ...]) -> Session:
    unheard = {each.id: each for each in waiting if each.id not in session.known}
    if not unheard:
        return session
    return evolve(session, waiting={**session.waiting, **unheard}, known=session.known.union(unheard))


def _without(session: Session, gone: Set[str]) -> Mapping[str, Waiting]:
    if session.waiting.keys().isdisjoint(gone):
        return session.waiting
    return {message_id: each for message_id, each in session.waiting.items() if message_id not in gone}


def _self_started(session: Session, commit: Commit) -> int:
    """Return how many turns in a row started by themselves (I6): a person taken ends the row, a resume is no start."""
    taken = (*commit.adopt, *((commit.claim,) if commit.claim else ()))
    known = [session.waiting[each.message_id] for each in taken if each.message_id in session.waiting]
    if any(each.is_person for each in known):
        return 0
    return session.self_started + (commit.claim is not None and bool(known))


def _bounded(session: Session, max_known: int, turn: Turn | None) -> frozenset[str]:
    if len(session.known) <= max_known:
        return session.known
    own = (turn.root_id, *turn.adopted) if turn else ()
    return frozenset((*session.waiting, *session.returned, *own))
