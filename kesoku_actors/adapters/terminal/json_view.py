"""The view for programs: one JSON object per line, each flushed when it is written.

Every object has an `event`; its other keys are the fields of the value it was made from:

* `message`: a row that is new or has changed (`kesoku_actors.protocol.Message`)
* `answer`, `notice`: a message that leaves, with `text`, `is_ours`, `is_again` and the row as `message`
* `delta`, `activity`, `tool_started`, `tool_ended`: hints (`Delta`, `ActivityChanged`, `ToolProgress`, `ToolEnded`); a
  delta of a later inference or attempt replaces what came before it, and the committed row replaces all of them (B2)
* `removed`, `approval`, `stop_ended`, `mode`: `Removed`, `ApprovalChanged`, `StopEnded`, `ModeChanged`
* `summary`: the last object (`TurnSummary`)

Only ASCII is written, so that no line holds anything a terminal or a line reader could act on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from attrs import asdict, field

from kesoku_actors.adapters.terminal.output import Output
from kesoku_actors.adapters.terminal.summary import TurnSummary
from kesoku_actors.adapters.terminal.view import Leaf
from kesoku_actors.protocol import (
    ActivityChanged,
    ApprovalChanged,
    Changed,
    Delta,
    Event,
    ModeChanged,
    Removed,
    StopEnded,
    ToolEnded,
    ToolProgress,
)
from kesoku_actors.values import define

NAMES: Final[Mapping[type[Event], str]] = {
    Delta: "delta",
    ActivityChanged: "activity",
    ToolProgress: "tool_started",
    ToolEnded: "tool_ended",
    Removed: "removed",
    ApprovalChanged: "approval",
    StopEnded: "stop_ended",
    ModeChanged: "mode",
}


@define(eq=False)
class JsonView:
    """Writes objects."""

    out: Output
    refresh_s: None = field(default=None, init=False)

    async def show(self, event: Event, *, is_ours: bool) -> None:
        """Write the event; of whose turn it is the rows themselves tell."""
        if isinstance(event, Changed):
            await self._write("message", asdict(event.message))
        else:
            await self._write(NAMES[type(event)], asdict(event))

    async def leave(self, leaf: Leaf) -> None:
        """Write an answer or a notice."""
        await self._write("answer" if leaf.is_answer else "notice", asdict(leaf))

    async def refresh(self) -> None:
        """Do nothing: nothing here changes with time."""

    async def finish(self, summary: TurnSummary) -> None:
        """Write the last object."""
        await self._write("summary", asdict(summary))

    async def _write(self, name: str, values: Mapping[str, Any]) -> None:
        await self.out.write(json.dumps({"event": name, **values}, default=_plain) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON data")
