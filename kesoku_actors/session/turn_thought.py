"""Thought: building a prompt, inferring, waiting for another try. Pure.

Invariants: all of it ends at once for an interrupting message, a stop, a shutdown or spent time, and what comes after
that counts as aborted (I2); an answer, its turn's end and its step are one commit (C4), and so are all calls of a step
(O3); a reply that says nothing is a failed step, asked again once with a nudge (P3); a failure is retried with full
jitter, at least as late as the server asks, within bounds. When they are used up, or another try cannot help, the next
model is asked and people are told; without one the turn ends, naming each (P2). The turn stays with that model to its
end; the next turn begins with the first again.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.llm.port import Finish, Remedy
from kesoku_actors.protocol import Reason, Status, StepState
from kesoku_actors.session import turn_words as words
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn_boundary import judge
from kesoku_actors.session.turn_commit import end_turn, endings, hear, send
from kesoku_actors.session.turn_state import (
    Aborting,
    BackingOff,
    Batch,
    Hint,
    Inferring,
    Phase,
    Prompting,
    State,
    Transition,
    Turn,
    TurnLimits,
    enter,
    interrupted,
    know,
    spend,
    tag,
    with_piece,
)
from kesoku_actors.values import evolve


def prompted(state: State, phase: Prompting, event: v.PromptBuilt) -> Transition:
    """Infer; but first store that attachments are late, and build the prompt again (M8)."""
    turn = phase.turn
    if event.late:
        return send(state, turn, turn, late=event.late)
    ticket = state.ticket + 1
    inferring = Inferring(turn=evolve(turn, unread=False) if turn.unread else turn, ticket=ticket)
    call = v.CallModel(
        ticket, turn.root_id, turn.steps + 1, tag(state, ticket), turn.model, _next_model(state, turn) is None
    )
    return enter(state, inferring, ticket), (call,)


def streamed(state: State, phase: Inferring, event: v.ModelDelta) -> Transition:
    """Remember streamed text in case it is all there will be (I2)."""
    pieces = with_piece(phase.pieces, event.text)
    return enter(state, Inferring(turn=phase.turn, ticket=phase.ticket, pieces=pieces)), ()


def replied(state: State, phase: Inferring, event: v.ModelFinished) -> Transition:
    """Take a reply: calls, an answer, or nothing to go on with."""
    reply, inference_id = event.reply, tag(state, phase.ticket)
    if reply.calls:
        return _call(state, phase, event)
    if reply.text.strip():
        return _answer(state, phase, event)
    why = reply.finish_reason or reply.finish.value
    empty = words.dropped(inference_id, reply, event.duration_s, StepState.FAILED, f"empty reply ({why})")
    turn = evolve(phase.turn, ended=empty)
    if reply.finish is Finish.REFUSED:
        return _give_up(state, turn, f"The model refused to answer ({why}).")
    if turn.nudge:
        return _give_up(state, turn, f"The model gave no answer, also when it was asked again ({why}).")
    return judge(state, evolve(turn, nudge=True))


def failed(state: State, phase: Inferring, event: v.ModelFailed) -> Transition:
    """Try again, or ask the next model, or end the turn and say why.

    A prompt that was too long is compacted, once in a turn, and tried again at once; it is cut shorter each time. One
    that the service takes for wrong is asked again in words alone: nothing that happened may end a session.
    One that the day's money does not pay for was never sent: it is no step (B4).
    """
    if event.kind == _UNPAID:
        told = words.notice(Reason.BUDGET, event.message)
        return end_turn(state, phase.turn, Status.ERROR, Reason.BUDGET, told)
    tries, inference_id = phase.turn.tries + 1, tag(state, phase.ticket)
    error = words.lost(
        inference_id,
        event.provider,
        event.model,
        event.duration_s,
        StepState.FAILED,
        event.message,
        event.usage,
    )
    turn = evolve(phase.turn, ended=error, tries=tries, text=phase.text)
    if event.remedy is Remedy.COMPACT and tries < state.limits.max_tries:
        return judge(state, evolve(turn, too_long=turn.too_long + 1, compact=turn.too_long == 0))
    if event.remedy is Remedy.REPAIR and not turn.plain and tries < state.limits.max_tries:
        return judge(state, evolve(turn, plain=True))
    hopeless = _hopeless(state.limits, event, tries)
    said = event.message.strip() or "The model failed."
    if hopeless is None:
        return judge(state, evolve(turn, delay_s=_wait_s(state.limits, event, tries), trouble=said))
    following = None if event.kind in _NOWHERE_ELSE else _next_model(state, turn)
    if following is not None:
        return judge(state, _failed_over(turn, f"{said}{hopeless}", following))
    return _give_up(state, turn, _all_lost((*turn.lost, f"{said}{hopeless}")))


def aborted(
    state: State, phase: Aborting | Inferring, event: v.ModelFinished | v.ModelFailed | v.ModelAborted
) -> Transition:
    """Count the inference as cancelled, whatever it brought (I2)."""
    inference_id = tag(state, phase.ticket)
    match event:
        case v.ModelFinished(reply=reply, duration_s=duration_s):
            ended = words.dropped(inference_id, reply, duration_s, StepState.CANCELLED)
        case v.ModelFailed() | v.ModelAborted():
            ended = words.lost(
                inference_id,
                event.provider,
                event.model,
                event.duration_s,
                StepState.CANCELLED,
                usage=event.usage,
            )
    return judge(state, evolve(phase.turn, ended=ended, text=phase.text))


def waited(state: State, phase: BackingOff, _event: v.TimerFired) -> Transition:
    """Try again."""
    return judge(state, phase.turn)


def note(state: State, _phase: Phase, event: Hint) -> Transition:
    """Hear of something that changes nothing before the next boundary."""
    return know(state, hear(state.session, event)), ()


def rethink(state: State, phase: Prompting | BackingOff, event: Hint) -> Transition:
    """Hear of something that may end a prompt or a backoff at once."""
    state = know(state, hear(state.session, event))
    return judge(state, phase.turn) if _thought_ends(state, phase.turn) else (state, ())


def abort(state: State, phase: Inferring, event: Hint) -> Transition:
    """Hear of something that may end the inference at once."""
    state = know(state, hear(state.session, event))
    return _abort(state, phase) if _thought_ends(state, phase.turn) else (state, ())


def overspend(state: State, phase: Prompting | BackingOff, event: v.BudgetSpent) -> Transition:
    """End a prompt or a backoff whose turn has no time left, unless a message of it was never read (B4)."""
    turn = spend(phase.turn, event)
    if turn.spent and not turn.unread:
        return judge(state, turn)
    return enter(state, evolve(phase, turn=turn)), ()


def abort_spent(state: State, phase: Inferring, event: v.BudgetSpent) -> Transition:
    """End an inference whose turn has no time left (B4)."""
    if event.root_id != phase.turn.root_id:
        return state, ()
    return _abort(state, evolve(phase, turn=spend(phase.turn, event)))


def mark_spent(state: State, phase: Aborting | Batch, event: v.BudgetSpent) -> Transition:
    """Neither an abort nor a batch ends sooner for it: the next boundary sees it (I3, B4)."""
    return enter(state, evolve(phase, turn=spend(phase.turn, event))), ()


def _answer(state: State, phase: Inferring, event: v.ModelFinished) -> Transition:
    return send(
        state,
        phase.turn,
        None,
        step=words.finished(tag(state, phase.ticket), event.reply, event.duration_s),
        insert=(*words.unshown(_unshown(phase.turn, event)), *words.answer(event.reply)),
        ends=endings(phase.turn, Status.PROCESSED),
    )


def _call(state: State, phase: Inferring, event: v.ModelFinished) -> Transition:
    new = _unshown(phase.turn, event)
    return send(
        state,
        phase.turn,
        evolve(phase.turn, tries=0, nudge=False, unshown=phase.turn.unshown.union(new)),
        step=words.finished(tag(state, phase.ticket), event.reply, event.duration_s),
        insert=(*words.unshown(new), *words.calls(event.reply, state.limits.max_calls)),
    )


def _unshown(turn: Turn, event: v.ModelFinished) -> list[str]:
    """Return the files that people have not been told of yet."""
    return [file for file in event.reply.unshown if file not in turn.unshown]


_UNPAID: Final = "budget"
_NOWHERE_ELSE: Final = frozenset({"filtered"})
"""What one provider refuses for its content is not taken to another one."""


def _next_model(state: State, turn: Turn) -> str | None:
    """Return the name of the model to ask when the turn's one is lost; none after the last."""
    following = state.session.models[turn.model + 1 : turn.model + 2]
    return following[0] if following else None


def _failed_over(turn: Turn, why: str, following: str) -> Turn:
    """Return the turn with the next model, which is tried as if nothing had failed."""
    return evolve(
        turn,
        model=turn.model + 1,
        lost=(*turn.lost, why),
        news=f"{why}\n{following} goes on instead.",
        tries=0,
        too_long=0,
        compact=False,
        nudge=False,
        plain=False,
    )


def _all_lost(lost: tuple[str, ...]) -> str:
    return lost[0] if len(lost) == 1 else "\n".join(("No model could answer.", *lost))


def _give_up(state: State, turn: Turn, sentence: str) -> Transition:
    return end_turn(state, turn, Status.ERROR, Reason.PROVIDER, words.notice(Reason.PROVIDER, sentence))


def _wait_s(limits: TurnLimits, event: v.ModelFailed, tries: int) -> float:
    """Return the seconds before the next try: full jitter below a bound that doubles, at least what was asked for."""
    bound = min(limits.longest_backoff_s, limits.first_backoff_s * 2.0 ** (tries - 1))
    return max(bound * event.jitter, event.retry_after_s or 0.0)


def _hopeless(limits: TurnLimits, event: v.ModelFailed, tries: int) -> str | None:
    """Return why another try is of no use, as the end of the sentence told to people; none when it may help."""
    if event.remedy is not Remedy.RETRY:
        return ""
    if tries >= limits.max_tries:
        return f" (tried {tries} times)"
    if (event.retry_after_s or 0.0) > limits.longest_backoff_s:
        return f" (the provider asks to wait {event.retry_after_s:.0f} s, too long for me to wait; ask again then)"
    return None


def _thought_ends(state: State, turn: Turn) -> bool:
    return state.session.shutdown or interrupted(state, turn)


def _abort(state: State, phase: Inferring) -> Transition:
    aborting = Aborting(turn=phase.turn, ticket=phase.ticket, text=phase.text)
    return enter(state, aborting), (v.AbortModel(phase.ticket),)
