"""Who listens to the simulated daemon in one life: to its rows, to its deltas, and for calls that need a yes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial

import trio
from attrs import define

from kesoku_actors.gateway import Gateway
from kesoku_actors.harness.world import World
from kesoku_actors.log import Logger
from kesoku_actors.protocol import ApprovalChanged, CallState, Changed, Delta, Removed
from kesoku_actors.store.again import until_answered


@define(eq=False, kw_only=True)
class Observers:
    """Notes what listeners hear, and presses buttons."""

    world: World
    gateway: Gateway
    log: Logger
    life: int
    is_alive: Callable[[], bool]
    answer_to: Callable[[str], bool | None]
    """What is said of a call: yes, no, or nothing for the first minute."""

    async def rows(self) -> None:
        """Note every row as a listener sees it that falls behind now and then (B1)."""
        listening = self.gateway.listen(after=0, hints=False, label="rows", capacity=2)
        async with aclosing(listening) as events:
            async for event in events:
                match event:
                    case Changed(message=row):
                        self._row(row.id, row.rev, row.status.value, row.root_id)
                    case Removed(message_id=message_id, rev=rev):
                        self._row(message_id, rev, "removed", None)
                    case _:
                        raise AssertionError(f"nobody asked for {event}")

    async def deltas(self) -> None:
        """Note every piece of an answer (B2)."""
        async with aclosing(self.gateway.listen(label="deltas", capacity=16)) as events:
            async for event in events:
                if isinstance(event, Delta) and self.is_alive():
                    self.world.note(
                        "delta",
                        inference=event.inference_id,
                        attempt=event.attempt,
                        offset=event.offset,
                        what=event.kind.value,
                        text=event.text,
                        root=event.root_id,
                    )

    async def buttons(self) -> None:
        """Press the buttons of calls that wait for a yes (T7)."""
        gateway = self.gateway
        async with aclosing(gateway.listen(label="buttons")) as events, trio.open_nursery() as nursery:
            for session in await until_answered(gateway.sessions, self.log, "read the sessions"):
                read = partial(gateway.reader.approvals, session.id)
                for approval in await until_answered(read, self.log, "read what waits"):
                    nursery.start_soon(self._press, approval.call_id)
            async for event in events:
                if isinstance(event, ApprovalChanged) and event.state is CallState.WAITING:
                    nursery.start_soon(self._press, event.call_id)

    async def _press(self, call_id: str) -> None:
        yes = self.answer_to(call_id)
        await trio.sleep(60 if yes is None else 1)
        await until_answered(partial(self.gateway.answer_approval, call_id, bool(yes), "Ada"), self.log, "answer")

    def _row(self, message_id: str, rev: int, status: str, root: str | None) -> None:
        if self.is_alive():
            self.world.note("row", life=self.life, id=message_id, rev=rev, status=status, root=root)
