"""The tool actor's journal, on the store's face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from kesoku_actors.protocol import Outcome
from kesoku_actors.store import CallProcess, CallStarted, CallWaiting, StageOutcome, Store


@frozen
class StoreJournal:
    """Implements `kesoku_actors.tools.Journal`."""

    store: Store

    async def started(self, call_id: str) -> bool:
        return await self.store.call_started(CallStarted(call_id=call_id))

    async def waiting(self, call_id: str, expires: float) -> bool:
        return await self.store.call_waiting(CallWaiting(call_id=call_id, expires=expires))

    async def process(self, call_id: str, pid: int, process_start: float | None) -> None:
        await self.store.call_process(CallProcess(call_id=call_id, pid=pid, process_start=process_start))

    async def stage(
        self, call_id: str, outcome: Outcome, content: str, duration_s: float, metadata: Mapping[str, Any]
    ) -> bool:
        return await self.store.stage(
            StageOutcome(call_id=call_id, outcome=outcome, content=content, duration_s=duration_s, metadata=metadata)
        )
