"""How a turn ended, and the last line that says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from kesoku_actors.llm.prices import dollars
from kesoku_actors.protocol import Message, Status, StoredStep, Type
from kesoku_actors.values import frozen


class ChatState(StrEnum):
    """What became of the posted message."""

    ANSWERED = "answered"
    ERROR = "error"
    STOPPED = "stopped"
    """Stopped, superseded by a newer message, or withdrawn."""
    UNFINISHED = "unfinished"
    """Nobody could read any more before the turn ended: the answer stays pending for the next time."""


STATES: Final[Mapping[Status, ChatState]] = {
    Status.PROCESSED: ChatState.ANSWERED,
    Status.ERROR: ChatState.ERROR,
    Status.INTERRUPTED: ChatState.STOPPED,
}
"""The end of a turn, by the status of its messages (M2)."""

SIGNS: Final[Mapping[ChatState, str]] = {
    ChatState.ANSWERED: "⚡",
    ChatState.ERROR: "🛑",
    ChatState.STOPPED: "🛑",
    ChatState.UNFINISHED: "🛑",
}


@frozen(kw_only=True)
class TurnSummary:
    """What a turn took."""

    turns: int
    """The model's, as people count them: inferences, also those cancelled or failed (M4). History calls them steps."""
    context_tokens: int | None
    """Input of the last inference that said so."""
    tools: int
    """Tool calls."""
    tokens: int | None
    """Input and output of all its inferences; none if no provider counted."""
    seconds: float
    state: ChatState
    cached: int = 0
    """Of the input: what was read from a provider's cache."""
    thinking: int = 0
    """Of the output: what was not said."""
    cost: float | None = None
    """US dollars; none where no price is known."""


@frozen(kw_only=True)
class ChatOutcome:
    """How a chat ended; `gone` says what was lost when it is unfinished."""

    state: ChatState
    summary: TurnSummary
    gone: str | None = None
    reader_left: bool = False
    """Whether it was a reader that left: people expect no word about it."""


def summarize(
    messages: Iterable[Message], steps: Iterable[StoredStep], root_id: str, state: ChatState, seconds: float
) -> TurnSummary:
    """Return what the turn of `root_id` took, from the session's rows and steps."""
    usages = [stored.step.usage for stored in steps if stored.root_id == root_id]
    inputs = [usage.input for usage in usages if usage.input is not None]
    counts = [count for usage in usages for count in (usage.input, usage.output) if count is not None]
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return TurnSummary(
        turns=len(usages),
        context_tokens=inputs[-1] if inputs else None,
        tools=sum(message.type is Type.TOOL_CALL and message.root_id == root_id for message in messages),
        tokens=sum(counts) if counts else None,
        seconds=seconds,
        state=state,
        cached=sum(usage.cached or 0 for usage in usages),
        thinking=sum(usage.thinking or 0 for usage in usages),
        cost=sum(costs) if costs else None,
    )


def summary_line(summary: TurnSummary) -> str:
    """Return the last line: turns, context K, tools, tokens K, cost, seconds and the sign of the state."""
    kinds = (("cached", summary.cached), ("thinking", summary.thinking))
    of_these = ", ".join(f"{_thousands(count)} {kind}" for kind, count in kinds if count)
    tokens = f"tokens {_thousands(summary.tokens)}" + (f" ({of_these})" if of_these else "")
    parts = (
        _counted(summary.turns, "turn"),
        f"context {_thousands(summary.context_tokens)}",
        _counted(summary.tools, "tool"),
        tokens,
        *(() if summary.cost is None else (dollars(summary.cost),)),
        f"{summary.seconds:.1f} s {SIGNS[summary.state]}",
    )
    return " · ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _thousands(count: int | None) -> str:
    return "?" if count is None else f"{count / 1000:.1f}K"
