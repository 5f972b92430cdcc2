"""What the machine may do next, said once more: from what it knows, exactly one thing comes first (I5, I6).

Each effect is named by what it does; the name must be the first whose condition holds. Nothing here is shared with
the machine but its values.
"""

from __future__ import annotations

from attrs import frozen

from kesoku_actors.protocol import BusyMode, CallState, Reason, Waiting
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn_state import Batch, Committing, Done, Session, State, Turn, TurnLimits
from kesoku_actors.store.port import Commit, ResultMode, Taking

STOPS = (Reason.STOPPED, Reason.FORCED, Reason.CLEARED)


@frozen
class Known:
    """What the machine knows of those who wait."""

    covered: frozenset[str]
    people: list[Waiting]
    notices: list[Waiting]


def check_effect(before: State, after: State, effect: v.Effect) -> None:
    """Assert that this effect was the thing to do."""
    session, turn = after.session, getattr(after.phase, "turn", None)
    known = _known(session)
    if turn is None:
        if not _returned(before, after):
            _check_rest(session, known, effect, after.limits)
        return
    match effect:
        case v.SendCommit(commit=commit):
            _check_commit(session, known, turn, commit, after.limits)
        case v.BuildPrompt():
            _check_first("infer", session, known, turn, after.limits)
        case v.SetTimer():
            ready = turn.ended is None and not turn.text
            assert ready, "M4, I2: waiting with a step or text of an inference that is over"
            waiting = _first(session, known, turn, after.limits)
            assert waiting == "infer", f"I5: backing off instead of {waiting}"
        case v.CallModel():
            assert not _thought_ends(session, known, turn), "I2, I7, C7: an inference begins although it must not"
        case v.StartTools(call_ids=calls):
            halted = turn.stale or _thought_ends(session, known, turn)
            assert not halted, "I4: calls start although they must not"
            assert all(turn.calls[call] in (CallState.COMMITTED, CallState.WAITING) for call in calls), "C3: twice"
        case v.WithdrawTools(call_ids=calls):
            assert _interrupted(session, known, turn) or turn.stale, "I3: calls withdrawn for no reason"
            assert all(turn.calls[call] in (CallState.COMMITTED, CallState.WAITING) for call in calls), "I3: started"
        case v.HoldBudget(root_id=root) | v.ResumeBudget(root_id=root):
            assert root == turn.root_id, "B4: the clock of another turn"
        case v.EndJobs(root_id=root):
            assert any(turn.root_id in stop.covers for stop in session.stops), "I7: jobs ended that nobody stopped"
            assert root == turn.root_id
        case v.EndTools(call_ids=calls):
            forced = any(stop.forced and turn.root_id in stop.covers for stop in session.stops)
            assert forced or turn.stale, "I3: running calls ended although nobody forced it"
            assert all(turn.calls[call] is CallState.STARTED for call in calls)
        case _:
            pass


def check_batch(before: State, after: State) -> None:
    """Assert that nothing is left to do for the open calls of a batch but to wait."""
    phase, session = after.phase, after.session
    if not isinstance(phase, Batch):
        return
    states = phase.turn.calls
    untouched = set(states.values()) == {CallState.COMMITTED}
    halted = phase.turn.stale or _thought_ends(session, _known(session), phase.turn)
    late = isinstance(before.phase, Committing) and untouched and halted
    assert not late, "I4: calls wait in a batch although nothing of it may start"
    forced = any(stop.forced and phase.turn.root_id in stop.covers for stop in session.stops)
    started = {call for call, each in states.items() if each is CallState.STARTED}
    assert set(states.values()) != {CallState.SETTLED}, "O3: a settled batch is not published"
    assert not (session.shutdown and not started), "C7: nothing runs and the turn is not returned"
    going_on = {CallState.STARTED, CallState.COMMITTED} & set(states.values())
    assert phase.turn.is_held is not bool(going_on), "B4: a person's time is the turn's, or the other way round"
    if forced or phase.turn.stale:
        assert started <= phase.ended, "I7: forced, and its calls run on"
    if (_interrupted(session, _known(session), phase.turn) or phase.turn.stale) and not session.shutdown:
        unstarted = {call for call, each in states.items() if each in (CallState.COMMITTED, CallState.WAITING)}
        assert unstarted <= phase.withdrawn, "I3: calls not started are left waiting"


def _known(session: Session) -> Known:
    covered = frozenset(name for name in session.waiting for stop in session.stops if name in stop.covers)
    free = sorted((each for each in session.waiting.values() if each.id not in covered), key=lambda each: each.seq)
    return Known(covered, [each for each in free if each.is_person], [each for each in free if not each.is_person])


def _returned(before: State, after: State) -> bool:
    if isinstance(after.phase, Done) and not after.phase.clean:
        return True
    return isinstance(before.phase, Committing) and before.phase.commit.give_back


def _interrupted(session: Session, known: Known, turn: Turn) -> bool:
    stopped = any(turn.root_id in stop.covers for stop in session.stops)
    return stopped or (session.mode is BusyMode.INTERRUPT and bool(known.people))


def _thought_ends(session: Session, known: Known, turn: Turn) -> bool:
    return session.shutdown or _interrupted(session, known, turn)


def _first(session: Session, known: Known, turn: Turn, limits: TurnLimits) -> str:
    steps = turn.steps + (turn.ended is not None)
    conditions = {
        "stop": any(turn.root_id in stop.covers for stop in session.stops),
        "shutdown": session.shutdown,
        "stale": turn.stale,
        "pivot": session.mode is BusyMode.INTERRUPT and bool(known.people),
        "start": bool(turn.calls),
        "budget": steps >= limits.max_steps or (turn.spent and not turn.unread),
        "adopt": session.mode is BusyMode.STEER and bool(known.people),
        "news": bool(turn.news),
        "step": turn.ended is not None,
        "wait": turn.delay_s > 0,
    }
    return next((name for name, holds in conditions.items() if holds), "infer")


def _check_first(done: str, session: Session, known: Known, turn: Turn, limits: TurnLimits) -> None:
    first = _first(session, known, turn, limits)
    assert done == first, f"I5: {done} instead of {first}"


def _check_commit(session: Session, known: Known, turn: Turn, commit: Commit, limits: TurnLimits) -> None:
    reason = next((each.reason for each in commit.ends if each.message_id == turn.root_id), None)
    ends = {each.message_id for each in commit.ends}
    if ends:
        assert {turn.root_id, *turn.adopted} <= ends, "I5: a turn's messages end together"
    if commit.give_back:
        assert CallState.STARTED not in turn.calls.values(), "C7: a turn is returned and its call runs"
        if not turn.calls:
            _check_first("shutdown", session, known, turn, limits)
    elif commit.claim:
        _check_first("pivot", session, known, turn, limits)
        *skipped, root = known.people
        assert commit.claim == Taking(message_id=root.id, reason=Reason.INTERRUPTED)
        assert _names(commit.claim_adopts) == [each.id for each in known.notices]
        assert {each.id for each in skipped} | known.covered <= ends, "I5, I7: somebody is passed over"
    elif commit.adopt:
        _check_first("adopt", session, known, turn, limits)
        everybody = sorted(known.people + known.notices, key=lambda each: each.seq)
        assert _names(commit.adopt) == [each.id for each in everybody], "I5: adopted in another order"
    elif reason in STOPS:
        _check_first("stop", session, known, turn, limits)
        assert known.covered <= ends, "I7: a covered message is left"
    elif reason in (Reason.STALE, Reason.BUDGET):
        _check_first(reason.value, session, known, turn, limits)
    elif commit.results is ResultMode.PUBLISH:
        assert set(turn.calls.values()) == {CallState.SETTLED}, "O3: published before every call is settled"
    elif turn.news and not ends and not commit.late:
        _check_first("news", session, known, turn, limits)
        assert [each.metadata["notice"] for each in commit.insert] == ["provider"], "P2: failing over is not told"
    elif not ends and not commit.insert and not commit.late:
        _check_first("step", session, known, turn, limits)


def _check_rest(session: Session, known: Known, effect: v.Effect, limits: TurnLimits) -> None:
    within = session.self_started < limits.max_self_started
    conditions = {
        "finish": session.shutdown,
        "covered": bool(known.covered),
        "resume": bool(session.returned),
        "person": bool(known.people),
        "notice": within and any(each.wakes for each in known.notices),
    }
    first = next((name for name, holds in conditions.items() if holds), "finish")
    match effect:
        case v.Finish():
            assert first == "finish", f"I6: the worker ends instead of {first}"
        case v.SendCommit(commit=Commit(claim=None, ends=ends)):
            assert first == "covered", f"I7: covered messages end instead of {first}"
            assert {each.message_id for each in ends} == known.covered
        case v.SendCommit(commit=Commit(claim=Taking() as claim, claim_adopts=along, ends=ends)):
            taken = [claim.message_id, *_names(along)]
            if first == "resume":
                assert taken == list(session.returned), "C2: a turn goes back whole"
            elif first == "notice":
                root = next(each for each in known.notices if each.wakes)
                assert taken == [root.id, *(each.id for each in known.notices if each is not root)]
            else:
                assert first == "person", f"I5: a claim instead of {first}"
                _check_claim(session.mode, known, taken, [each.message_id for each in ends])
        case _:
            pass


def _check_claim(mode: BusyMode, known: Known, taken: list[str], ended: list[str]) -> None:
    people = [each.id for each in known.people]
    gathered = people[1:] if mode in (BusyMode.COLLECT, BusyMode.STEER) else []
    root = people[-1] if mode is BusyMode.INTERRUPT else people[0]
    along = sorted([*gathered, *(each.id for each in known.notices)], key=int)
    assert taken == [root, *along], "I5: another turn than the mode asks for"
    assert ended == (people[:-1] if mode is BusyMode.INTERRUPT else []), "I5: superseded"


def _names(takings: tuple[Taking, ...]) -> list[str]:
    return [each.message_id for each in takings]
