"""The status line: activity first, then what there is room for. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from rich.cells import cell_len, set_cell_size

from kesoku_actors.adapters.terminal.harmless import one_line
from kesoku_actors.llm.prices import dollars
from kesoku_actors.protocol import Activity
from kesoku_actors.values import frozen

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_S: Final = 0.2
_WORDS: Final[Mapping[Activity, str]] = {
    Activity.IDLE: "ready",
    Activity.THINKING: "thinking",
    Activity.RETRYING: "asks again in",
    Activity.TOOLS: "tools",
    Activity.ASKING: "waits for your yes",
    Activity.STOPPING: "stopping",
    Activity.CLEARING: "clearing",
    Activity.COMPACTING: "summarising",
}
_OFFERS: Final[Mapping[Activity, str]] = {
    Activity.IDLE: "/help",
    Activity.THINKING: "^C stops",
    Activity.RETRYING: "^C stops",
    Activity.TOOLS: "^C stops",
    Activity.ASKING: "/approve, /deny",
    Activity.STOPPING: "^C forces",
    Activity.CLEARING: "^C forces",
    Activity.COMPACTING: "^C stops",
}
_SEPARATOR: Final = " · "
_LONGEST_DETAIL: Final = 60


@frozen(kw_only=True)
class Facts:
    """What the status line tells."""

    activity: Activity = Activity.IDLE
    for_s: float = 0.0
    """How long it has been so."""
    left_s: float = 0.0
    """How long it still takes, as far as known."""
    detail: str = ""
    """Why, where it is not obvious."""
    model: str = ""
    mode: str = ""
    context_tokens: int | None = None
    cost: float | None = None
    """Of the session, US dollars; none where no price is known."""
    waiting: int = 0
    """Messages of people not taken yet."""
    is_folded: bool = True
    notice: str = ""
    """Said instead of the activity for now: what the next Ctrl-C does."""


def status_line(facts: Facts, columns: int) -> str:
    """Return the line, shorter than `columns`; what matters least is left out first."""
    is_busy = facts.activity is not Activity.IDLE
    spinner = f"{_FRAMES[int(facts.for_s / FRAME_S) % len(_FRAMES)]} " if is_busy else ""
    is_retrying = facts.activity is Activity.RETRYING
    seconds = math.ceil(facts.left_s) if is_retrying else max(0.0, facts.for_s)
    spent = f" {seconds:.0f} s" if is_busy else ""
    detail = one_line(facts.detail) if is_retrying else ""
    first = facts.notice or f"{spinner}{_WORDS[facts.activity]}{spent}"
    context = "" if facts.context_tokens is None else f"ctx {facts.context_tokens / 1000:.1f}K"
    # In the order they stand in; the number says which goes first when room is short.
    parts = [
        (9, first),
        (8, _OFFERS[facts.activity] if is_busy and not facts.notice else ""),
        (6, detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL].rstrip()}…"),
        (7, f"{facts.waiting} waiting" if facts.waiting else ""),
        (4, one_line(facts.model)),
        (2, facts.mode),
        (3, context),
        (3, "" if facts.cost is None else dollars(facts.cost)),
        (5, f"^T {'thoughts' if facts.is_folded else 'folds thoughts'}"),
        (1, "" if is_busy else _OFFERS[facts.activity]),
    ]
    parts = [(rank, text) for rank, text in parts if text]
    room = max(1, columns - 1)
    while len(parts) > 1 and cell_len(_joined(parts)) > room:
        parts.remove(min(parts))
    text = _joined(parts)
    text = text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"
    return f"\x1b[2m{text}\x1b[0m"


def _joined(parts: list[tuple[int, str]]) -> str:
    return _SEPARATOR.join(text for _, text in parts)
