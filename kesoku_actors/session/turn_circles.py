"""Tells when a turn goes in circles: the same calls with the same results, batch after batch. Pure.

A model that repeats itself would go on until its steps or its money are used up. So a turn ends, like one over its
budget (B4), when a batch was the same `max_same_batches` times in a row: equal tools, arguments, outcomes and results,
in equal order. Anything else in between begins the count anew: a model that varies its calls is bounded by its steps.

A turn resumed by another worker is counted anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from kesoku_actors.protocol import Message, Reason, Status, Type
from kesoku_actors.session import turn_words as words
from kesoku_actors.session.turn_commit import end_turn
from kesoku_actors.session.turn_state import State, Transition, Turn
from kesoku_actors.values import evolve


def count_batch(turn: Turn, rows: Iterable[Message]) -> Turn:
    """Return the turn after a commit that stands: its new calls are known, its published batch is compared."""
    asked = {row.id: _asked(row) for row in rows if row.type is Type.TOOL_CALL}
    if asked:
        return evolve(turn, asked={**turn.asked, **asked})
    results = [row for row in rows if row.type is Type.TOOL_RESULT and row.parent_id in turn.asked]
    if not results:
        return turn
    batch = tuple((turn.asked[row.parent_id or ""], row.metadata["outcome"], row.content) for row in results)
    same = turn.same_batches + 1 if batch == turn.batch else 1
    return evolve(turn, asked={}, batch=batch, same_batches=same)


def goes_in_circles(state: State, turn: Turn) -> bool:
    """Tell whether the last batch was the same too often."""
    return turn.same_batches >= state.limits.max_same_batches


def end_circle(state: State, turn: Turn) -> Transition:
    """End the turn and say why."""
    sentence = (
        f"I stopped here: the same call gave the same result {turn.same_batches} times in a row. "
        "Say how to go on, or ask in another way."
    )
    return end_turn(state, turn, Status.ERROR, Reason.BUDGET, words.notice(Reason.BUDGET, sentence))


def _asked(call: Message) -> str:
    return json.dumps([call.metadata["tool_name"], call.metadata["tool_arguments"]], sort_keys=True, default=str)
