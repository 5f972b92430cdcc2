"""A tool call and its result as one item of a trace. Pure.

A call is committed, may wait for a person or for a slot, runs, and its result is published when the whole batch is
settled. Stored are the first and the last of these times and how long it ran.
"""

from __future__ import annotations

from typing import Final

from kesoku_actors.protocol import CallState, Job, Message, Outcome
from kesoku_actors.store import CallRecord
from kesoku_actors.trace.exchanges import Mask
from kesoku_actors.trace.items import title_of
from kesoku_actors.trace.model import Item, Kind, Part, State, Wait
from kesoku_actors.turnlog import to_yaml

_STATES: Final = {
    Outcome.OK: State.DONE,
    Outcome.ERROR: State.FAILED,
    Outcome.INTERRUPTED: State.INTERRUPTED,
    Outcome.UNKNOWN: State.UNKNOWN,
    Outcome.BACKGROUND: State.BACKGROUND,
}
_OWN_FACTS: Final = frozenset({"tool_name", "tool_call_id", "outcome", "duration_s"})


def call_item(row: Message, result: Message | None, known: CallRecord | None, job: Job | None, mask: Mask) -> Item:
    """Return a call with its result, if it has one."""
    arguments = row.metadata["tool_arguments"]
    parts = [Part(name="arguments", text=mask(to_yaml(arguments)) if arguments else "(none)")]
    facts = [("tool", row.metadata["tool_name"]), ("id", row.id)]
    begin, end = row.timestamp, None
    state, error = State.OPEN, row.metadata.get("invalid")
    if result is not None:
        outcome = Outcome(result.metadata["outcome"])
        state = _STATES[outcome]
        begin, end = _span(row, result, was_asked=known is not None and known.decided_by is not None)
        parts.append(Part(name="result", text=mask(result.content)))
        facts.append(("outcome", outcome.value))
        facts += [(name, str(value)) for name, value in result.metadata.items() if name not in _OWN_FACTS]
        if outcome is Outcome.ERROR:
            error = title_of(result.content)
        elif outcome is not Outcome.OK:
            error = result.metadata.get("reason")
    elif known is not None:
        facts.append(("state", known.state.value))
    if known is not None and known.decided_by is not None:
        facts.append(("decided by", known.decided_by))
    return Item(
        kind=Kind.CALL,
        state=state,
        title=mask(title_of(row.content)),
        begin=begin,
        end=end,
        parts=tuple(parts),
        error=None if error is None else mask(str(error)),
        waits=_waits(row, begin, known, job),
        facts=tuple((name, mask(value)) for name, value in facts),
    )


def _span(row: Message, result: Message, *, was_asked: bool) -> tuple[float, float]:
    """Return when a call ran: from its commit on, unless that leaves it no time before its result."""
    took_s = float(result.metadata.get("duration_s", 0.0))
    latest = max(row.timestamp, result.timestamp - took_s)
    begin = latest if was_asked else min(row.timestamp, latest)
    return begin, begin + took_s


def _waits(row: Message, begin: float, known: CallRecord | None, job: Job | None) -> tuple[Wait, ...]:
    waits = []
    if known is not None and known.state is CallState.WAITING:
        waits.append(Wait(name="waits for approval", begin=row.timestamp, end=None))
    elif known is not None and known.decided_by is not None:
        waits.append(Wait(name=f"approval by {known.decided_by}", begin=row.timestamp, end=begin))
    if job is not None:
        waits.append(Wait(name=f"{job.id} in the background", begin=job.began, end=job.ended))
    return tuple(waits)
