"""The items of a trace other than calls: what was said, asked, stopped. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kesoku_actors.protocol import LEAVES, Message, Reason, Role, Status, StepState, Stop, StoredStep, Type, Usage
from kesoku_actors.trace.exchanges import Logged, Mask
from kesoku_actors.trace.model import Item, Kind, Part, State, Tokens

_LONGEST_TITLE: Final = 200

_STATES: Final = {
    Status.PROCESSED: State.DONE,
    Status.INTERRUPTED: State.INTERRUPTED,
    Status.ERROR: State.FAILED,
    Status.UNDELIVERABLE: State.FAILED,
    Status.PENDING_AGENT: State.OPEN,
    Status.PROCESSING: State.OPEN,
    Status.PENDING: State.OPEN,
}
_STEP_STATES: Final[Mapping[str, State]] = {
    StepState.FINISHED: State.DONE,
    StepState.CANCELLED: State.INTERRUPTED,
    StepState.FAILED: State.FAILED,
}
_ENDED_BY: Final[Mapping[str, str]] = {
    Reason.INTERRUPTED: "A newer message took over",
    Reason.SUPERSEDED: "A newer message took its place before it was begun",
    Reason.STOPPED: "Stopped by a person",
    Reason.FORCED: "Stopped by a person, with force",
    Reason.CLEARED: "The session was cleared",
    Reason.STALE: "It had begun too long ago to be taken up again",
    Reason.IMPORTED: "It was under way when the session was imported",
}


def title_of(text: str) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text[: 4 * _LONGEST_TITLE].split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def message(row: Message, mask: Mask) -> Item:
    """Return a person's message or a notice."""
    content = mask(row.content)
    facts = [("from", mask(row.sender))] if row.role is Role.USER else []
    reason = row.metadata.get("reason") or row.metadata.get("notice")
    facts += [("status", row.status.value)] + ([("reason", str(reason))] if reason else []) + [("id", row.id)]
    is_person = row.role is Role.USER
    return Item(
        kind=Kind.PERSON if is_person else Kind.NOTICE,
        state=State.DONE if row.status in LEAVES else _STATES.get(row.status, State.DONE),
        title=title_of(content),
        begin=row.timestamp,
        end=row.timestamp,
        parts=(Part(name="message" if is_person else "notice", text=content),),
        facts=tuple(facts),
    )


def thought(row: Message, mask: Mask) -> Item:
    """Return a thought of the model."""
    return _said(Kind.THOUGHT, State.DONE, row, mask)


def text(row: Message, mask: Mask) -> Item:
    """Return what the model said beside its calls, or until it was interrupted."""
    return _said(Kind.TEXT, State.INTERRUPTED if row.metadata.get("partial") else State.DONE, row, mask)


def answer(row: Message, mask: Mask) -> Item:
    """Return a final answer."""
    state = State.FAILED if row.status is Status.UNDELIVERABLE else State.DONE
    detail = str(row.metadata.get("detail") or "the platform refused it")
    error = f"The answer could not be delivered: {mask(detail)}" if state is State.FAILED else None
    return _said(Kind.ANSWER, state, row, mask, (("delivery", row.status.value),), error)


def _said(
    kind: Kind,
    state: State,
    row: Message,
    mask: Mask,
    facts: tuple[tuple[str, str], ...] = (),
    error: str | None = None,
) -> Item:
    content = mask(row.content)
    return Item(
        kind=kind,
        state=state,
        title=title_of(content),
        begin=row.timestamp,
        end=row.timestamp,
        parts=(Part(name=kind.value, text=content),),
        facts=(*facts, ("id", row.id)),
        error=error,
    )


def inference(
    stored: StoredStep,
    said: Sequence[Message],
    times: tuple[float, float] | None,
    now: float,
    exchange: int,
    first_piece_s: float | None,
    mask: Mask,
) -> Item:
    """Return an inference; `times` as the log has them, `now` is when what came before it was over."""
    step = stored.step
    if times is not None:
        begin, end = times
    elif said:
        end = said[0].timestamp
        begin = end - step.duration_s
    else:
        begin, end = now, now + step.duration_s
    facts = [("provider", step.provider), ("model", step.model), ("step", str(stored.index))]
    if step.finish_reason:
        facts.append(("finish reason", step.finish_reason))
    if first_piece_s is not None:
        facts.append(("first piece", f"{first_piece_s:.2f} s"))
    facts.append(("inference", step.inference_id))
    return Item(
        kind=Kind.INFERENCE,
        state=_STEP_STATES[step.state],
        title=mask(step.model) + _brought(step.state, said),
        begin=begin,
        end=end,
        is_timed=times is not None or bool(said),
        error=None if step.error is None else mask(step.error),
        tokens=tokens_of(step.usage),
        facts=tuple((name, mask(value)) for name, value in facts),
        exchange=exchange,
    )


def aside(logged: Logged, exchange: int) -> Item:
    """Return an inference that belongs to no turn."""
    began = logged.began or 0.0
    return Item(
        kind=Kind.INFERENCE,
        state=_STEP_STATES.get(logged.state, State.UNKNOWN),
        title=f"{logged.model} → {logged.purpose}",
        begin=began,
        end=None if logged.latency_s is None else began + logged.latency_s,
        tokens=logged.tokens,
        facts=(("model", logged.model), ("purpose", logged.purpose), ("inference", logged.inference_id)),
        exchange=exchange,
    )


def _brought(state: StepState, said: Sequence[Message]) -> str:
    """Return what came of an inference, in words."""
    calls = sum(row.type is Type.TOOL_CALL for row in said)
    if state is not StepState.FINISHED:
        return " failed" if state is StepState.FAILED else " was cut off"
    if calls:
        return f" → {calls} call{'' if calls == 1 else 's'}"
    return " → answer" if any(row.status in LEAVES for row in said) else ""


def tokens_of(usage: Usage) -> Tokens:
    """Return the tokens of an inference."""
    parts = (usage.input, usage.cached, usage.output, usage.thinking)
    return Tokens(
        input=usage.input or 0,
        cached=usage.cached or 0,
        output=usage.output or 0,
        thinking=usage.thinking or 0,
        is_known=any(part is not None for part in parts),
    )


def stop(one: Stop) -> Item:
    """Return a request to stop."""
    when = datetime.fromtimestamp(one.requested, UTC).isoformat(timespec="seconds")
    facts = [("requested", when), ("force", "yes" if one.forced else "no"), ("over", "yes" if one.done else "not yet")]
    return Item(
        kind=Kind.STOP,
        state=State.DONE if one.done else State.OPEN,
        title="Asked to stop" + (", then to end the running tools" if one.forced else ""),
        begin=one.requested,
        end=one.requested,
        facts=(*facts, ("reason", one.reason.value)),
    )


def interruption(root: Message, later: Message | None, ended: float, mask: Mask) -> Item:
    """Return how a turn without an answer was ended by somebody; `later` is the next turn's first message."""
    reason = root.metadata.get("reason")
    by_message = later is not None and reason in (Reason.INTERRUPTED, Reason.SUPERSEDED)
    when = later.timestamp if later is not None and by_message else ended
    title = _ENDED_BY.get(str(reason), "Ended without an answer")
    if later is not None and by_message:
        title = f"{title}: {title_of(mask(later.content))}"
    return Item(
        kind=Kind.INTERRUPTION,
        state=State.INTERRUPTED,
        title=title,
        begin=when,
        end=when,
        facts=(("reason", str(reason)),),
    )
