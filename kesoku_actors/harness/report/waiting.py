"""What a blocked task waits for, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kesoku_actors.harness.counterexample import Blocked

_MOST_PARTNERS: Final = 4


def waiting(one: Blocked) -> str:
    """Return what a task waits for, and who could let it go on."""
    return f"{one.waits_for or 'waits'}{_until(one)}"


def _until(one: Blocked) -> str:
    if one.waits_for.startswith("waits until its tasks"):
        return f": {_names(one.until)}"
    if not one.waits_for:
        return ""
    if not one.until:
        return "; nobody ever does the other half"
    if one.is_held:
        late = [lane for lane in one.until if lane in one.ended]
        ended = f" ({_names(late)} has ended and never let go)" if late else ""
        return f", which {_names(one.until)} has{ended}"
    late = [lane for lane in one.until if lane in one.ended]
    alive = [lane for lane in one.until if lane not in one.ended]
    if not alive:
        return f"; only {_names(late)} could let it go on, and has ended"
    return f"; only {_names(alive)} could let it go on"


def _names(lanes: Sequence[str]) -> str:
    said = ", ".join(f"`{lane}`" for lane in lanes[:_MOST_PARTNERS])
    return said if len(lanes) <= _MOST_PARTNERS else f"{said} and {len(lanes) - _MOST_PARTNERS} more"
