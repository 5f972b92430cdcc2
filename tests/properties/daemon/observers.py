"""Who listens to the simulated daemon in one life: to its rows, to its deltas, and as a surface with buttons does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial

import trio
from attrs import define

from kesoku_actors.gateway import Gateway
from kesoku_actors.harness.world import World
from kesoku_actors.log import Logger
from kesoku_actors.protocol import (
    ActivityChanged,
    ApprovalChanged,
    CallState,
    Changed,
    Delta,
    Event,
    Message,
    Removed,
    StopEnded,
    ToolEnded,
)
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
                        self._row("row", row)
                    case Removed(message_id=message_id, rev=rev):
                        self._note("row", life=self.life, id=message_id, rev=rev, status="removed", root=None)
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

    async def surface(self) -> None:
        """Note what a surface is told, which keeps up, and press its buttons."""
        await self.buttons(self._told)

    async def buttons(self, told: Callable[[Event], None] = lambda _event: None) -> None:
        """Press the buttons of calls that wait for a yes (T7); `told` hears what there is to hear."""
        gateway = self.gateway
        async with aclosing(gateway.listen(label="buttons")) as events, trio.open_nursery() as nursery:
            for session in await until_answered(gateway.sessions, self.log, "read the sessions"):
                read = partial(gateway.reader.approvals, session.id)
                for approval in await until_answered(read, self.log, "read what waits"):
                    nursery.start_soon(self._press, approval.call_id)
            async for event in events:
                told(event)
                if isinstance(event, ApprovalChanged) and event.state is CallState.WAITING:
                    nursery.start_soon(self._press, event.call_id)

    async def _press(self, call_id: str) -> None:
        yes = self.answer_to(call_id)
        self._note("asks", call=call_id, state=CallState.WAITING.value)
        await trio.sleep(60 if yes is None else 1)
        self._note("presses", call=call_id, yes=bool(yes))
        answer = partial(self.gateway.answer_approval, call_id, bool(yes), "Ada")
        answered = await until_answered(answer, self.log, "answer")
        self._note("answered", call=call_id, yes=bool(yes), counts=answered.accepted)

    def _told(self, event: Event) -> None:
        match event:
            case Changed(message=row):
                self._row("told", row)
            case StopEnded():
                self._note("receipt", stop=event.stop_seq, ended=event.ended, answered=event.answered)
            case ActivityChanged():
                self._note("shows", session=event.session_id, activity=event.activity.value, root=event.root_id)
            case ToolEnded():
                self._note("over", session=event.session_id, call=event.call_id, outcome=event.outcome.value)
            case ApprovalChanged() if event.state is not CallState.WAITING:
                self._note("asks", call=event.call_id, state=event.state.value)
            case _:
                pass

    def _row(self, kind: str, row: Message) -> None:
        self._note(
            kind,
            life=self.life,
            id=row.id,
            rev=row.rev,
            seq=row.seq,
            session=row.session_id,
            status=row.status.value,
            root=row.root_id,
            place=row.place,
            reason=row.metadata.get("reason"),
            of=row.parent_id,
            type=row.type.value,
            is_person=row.is_person,
        )

    def _note(self, kind: str, **fields: object) -> None:
        if self.is_alive():
            self.world.note(kind, **fields)
