"""The live check: events recorded from real workers, fed through the pure machine, give the effects they gave. Pure.

What it proves is that nothing but the machine decided: a worker that had left out an event, fed one twice, or done
something by itself would show here (contract section 8).
"""

from __future__ import annotations

from collections.abc import Iterable

from kesoku_actors.session.turn import State, TurnLimits, begin, step
from kesoku_actors.session.vocabulary import Effect, Event
from kesoku_actors.store import WorkerKey
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class Recorded:
    """One event that a worker took, and the effects it began for it."""

    key: WorkerKey
    event: Event
    effects: tuple[Effect, ...]


@frozen(kw_only=True)
class Difference:
    """Where a worker and the machine part."""

    index: int
    recorded: Recorded
    expected: tuple[Effect, ...]


def first_difference(records: Iterable[Recorded], limits: TurnLimits) -> Difference | None:
    """Return the first record whose effects the machine does not give, or none. Workers may be interleaved."""
    states: dict[WorkerKey, State] = {}
    for index, recorded in enumerate(records):
        state = states.get(recorded.key) or begin(recorded.key, limits)
        states[recorded.key], expected = step(state, recorded.event)
        if expected != recorded.effects:
            return Difference(index=index, recorded=recorded, expected=expected)
    return None
