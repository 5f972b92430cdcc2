"""The money of a day: reserved in the store before an inference, settled after it (B4).

The store is the truth, so the bound holds for everything that runs, and over restarts; a day is a UTC day. Invariants:
`settle` neither waits nor raises, and what is to be settled goes along with the next reservation or is written soon
after, whichever comes first; an orderly stop writes it. Of an inference that a crash cut off, the estimate counts.
"""

from __future__ import annotations

from functools import partial

import trio
from attrs import field

from kesoku_actors.actors import Cell, ChildSpec
from kesoku_actors.clock import World
from kesoku_actors.llm.prices import dollars as shown
from kesoku_actors.log import Logger
from kesoku_actors.store import ReserveSpending, Settlement, SettleSpending, Store
from kesoku_actors.store.again import until_answered
from kesoku_actors.values import define, frozen

DAY_S = 86_400


@frozen(kw_only=True)
class _Open:
    store: Store
    log: Logger


@define(eq=False)
class DayPurse:
    """The face; outlives the lives of its actor. Nothing is reserved before it was opened."""

    most: float
    """US dollars a day."""
    world: World
    _open: _Open | None = field(default=None, init=False)
    _settled: list[Settlement] = field(factory=list, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)

    def open(self, store: Store, log: Logger) -> None:
        """Say where it keeps its books."""
        self._open = _Open(store=store, log=log)

    async def reserve(self, id: str, dollars: float) -> str | None:
        """Reserve what an inference may cost; return why not, in words, when the day has too little left."""
        assert self._open is not None, "opened with the house"
        wall = self.world.clock.wall()
        settled = tuple(self._settled)
        command = ReserveSpending(id=id, day=int(wall // DAY_S), dollars=dollars, most=self.most, settled=settled)
        reply = await until_answered(partial(self._open.store.reserve_spending, command), self._open.log, "reserve")
        self._forget(settled)
        if reply.is_reserved:
            return None
        hours = (DAY_S - wall % DAY_S) / 3600
        return (
            f"I stopped here: {shown(reply.dollars)} of the {shown(self.most)} for today (max_cost_per_day) are spent "
            f"or reserved, and this step may cost {shown(dollars)}. The next day begins in {hours:.1f} h, at 0:00 UTC."
        )

    def settle(self, id: str, dollars: float) -> None:
        """Put what an inference really cost in the place of its reservation."""
        self._settled.append(Settlement(id=id, dollars=dollars))
        self._wake.set()

    def spec(self) -> ChildSpec:
        """Return the child spec of its actor. It stands before whoever infers: it is then stopped after them."""
        return ChildSpec(id="purse", start=self._live)

    async def _live(self, cell: Cell[None]) -> None:
        cell.on_stop = self._ring
        cell.started()
        while self._settled or not cell.stopping.is_set():
            if self._settled:
                await self._write()
            else:
                self._wake = trio.Event()
                await self._wake.wait()

    async def _write(self) -> None:
        assert self._open is not None, "opened with the house"
        settled = tuple(self._settled)
        command = SettleSpending(settled=settled)
        await until_answered(partial(self._open.store.settle_spending, command), self._open.log, "settle")
        self._forget(settled)

    def _forget(self, settled: tuple[Settlement, ...]) -> None:
        """Settling twice changes nothing, so it is no matter who wrote it first."""
        self._settled = [each for each in self._settled if each not in settled]

    def _ring(self) -> None:
        self._wake.set()
