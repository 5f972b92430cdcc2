"""What a turn may use: steps, time, tokens, money (B4). Pure.

Steps and time end a turn when they are used up. Tokens and money are reserved: another inference begins only if it can
use as much as the last one did and still keep the bound. What the first one uses nobody knows, so it begins. What an
inference used is settled when its step is stored, cancelled and failed ones too as far as their provider said.
"""

from __future__ import annotations

from kesoku_actors.llm.prices import dollars
from kesoku_actors.session.turn_state import Turn, TurnLimits, counted


def used_up(limits: TurnLimits, turn: Turn) -> str | None:
    """Return what of its budget the turn has used up, in words; none while another inference may begin."""
    if turn.spent and not turn.unread:
        return f"used up its {limits.max_turn_s:g} seconds"
    if turn.steps + (turn.ended is not None) >= limits.max_steps:
        return f"used up its {limits.max_steps} steps"
    so_far = counted(turn, turn.ended)
    if limits.max_turn_tokens is not None and so_far.tokens + so_far.last.tokens > limits.max_turn_tokens:
        used = f"used {so_far.tokens:,} of its {limits.max_turn_tokens:,} tokens"
        return used + _too_little(so_far.tokens < limits.max_turn_tokens, f"{so_far.last.tokens:,}")
    expected = so_far.last.cost or 0.0
    if limits.max_turn_cost is not None and so_far.cost + expected > limits.max_turn_cost:
        used = f"cost {dollars(so_far.cost)} of its {dollars(limits.max_turn_cost)}"
        return used + _too_little(so_far.cost < limits.max_turn_cost, dollars(expected))
    return None


def _too_little(is_left: bool, expected: str) -> str:
    return f", too little is left for another step of about {expected}" if is_left else ""
