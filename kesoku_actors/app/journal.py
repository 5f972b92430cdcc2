"""The tool actor's journal, on the store's face; a call's way passes by here, so its kill points are here too.

::

    tool.before_start | started is durable | tool.started | function or process | tool.spawned | its pid is durable
    | tool.recorded | ... | tool.ended | the outcome is durable | tool.staged
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from kesoku_actors.protocol import Outcome
from kesoku_actors.store import CallProcess, CallStarted, CallWaiting, StageOutcome, Store


@frozen
class StoreJournal:
    """Implements `kesoku_actors.tools.Journal`."""

    store: Store
    probe: Callable[[str], None]
    """Told the names of the points where a crash matters."""

    async def started(self, call_id: str) -> bool:
        self.probe("tool.before_start")
        may_start = await self.store.call_started(CallStarted(call_id=call_id))
        self.probe("tool.started")
        return may_start

    async def waiting(self, call_id: str, expires: float) -> bool:
        return await self.store.call_waiting(CallWaiting(call_id=call_id, expires=expires))

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        self.probe("tool.spawned")
        await self.store.call_process(CallProcess(call_id=call_id, pid=pid, process_start=process_start))
        self.probe("tool.recorded")

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        self.probe("tool.ended")
        is_first = await self.store.stage(
            StageOutcome(call_id=call_id, outcome=outcome, content=content, duration_s=duration_s, metadata=metadata)
        )
        self.probe("tool.staged")
        return is_first
