"""Goals 8, 9, 10: how soon a person's message takes the model's word away, and the model reads it.

The floor's session is one task with a channel: the message is stored and committed in the loop, the session hears of
it, cancels the scope of the inference, and infers again. Ours is the whole tree: the message passes the gateway, the
store, the broadcaster, the worker and the pivot's own commit. Wall time, the same disk behind both; the floor of
goal 8 includes its commit, because a message interrupts when it is accepted (C1).
Run `scripts/python -m scripts.bench.interrupt`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import ceil
from statistics import median
from time import perf_counter

import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.llm.port import Emit, Limits, Piece, Reply, Request
from kesoku_actors.protocol import Channel, DeltaKind
from kesoku_actors.store import Durability
from scripts.bench.daemon import TEXT, Daemon, channel, in_both, running
from scripts.bench.floors import BareStore, bare_store
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

ROUNDS = 7
TIMES = {Durability.NORMAL: 40, Durability.FULL: 12}
BUSY = 100
BUSY_TIMES = 100
"""Of fewer the slowest would be the p99, which is one slow write of the disk."""
WORD_S = 0.05

Seen = tuple[float, float]
"""Seconds from the post to the cancel seen, and to the next model call begun."""


@define(eq=False)
class Talker:
    """A model that never comes to an end, and notes when it was begun and when it was stopped."""

    name: str = "talker"
    model: str = "endless"
    context_tokens: int | None = None
    supports_tools: bool = True
    limits: Limits = field(factory=lambda: Limits(concurrency=10 * BUSY))
    begun: trio.Event = field(factory=trio.Event)
    begun_at: float = 0.0
    stopped_at: float = 0.0
    words: int = 0
    is_silent: bool = False
    """Says nothing in any channel."""

    async def infer(self, request: Request, emit: Emit) -> Reply:
        """Say a word now and then in a busy channel; be silent in the one that is measured."""
        if request.history[-1].channel_id != "measured":
            while not self.is_silent:
                await trio.sleep(WORD_S)
                self.words += 1
                emit(Piece(kind=DeltaKind.TEXT, text="word "))
        await self.talk()
        raise AssertionError("it never ends")

    async def talk(self) -> None:
        """Be silent until cancelled."""
        self.begun_at = perf_counter()
        self.begun.set()
        try:
            await trio.sleep_forever()
        finally:
            self.stopped_at = perf_counter()

    async def interrupted_by(self, post: Callable[[], Awaitable[object]]) -> Seen:
        """Post while it talks; return when it was stopped, and when it was begun again."""
        await self.begun.wait()
        await wait_all_tasks_blocked(0.002)
        self.begun = trio.Event()
        posted_at = perf_counter()
        await post()
        await self.begun.wait()
        return self.stopped_at - posted_at, self.begun_at - posted_at


@asynccontextmanager
async def _bare(store: BareStore, talker: Talker, busy: int) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Run the floor's session; yields its post."""
    send, receive = trio.open_memory_channel[int](64)
    over = trio.Event()

    async def infer(scope: trio.CancelScope) -> None:
        with scope:
            await talker.talk()
        over.set()

    async def session(nursery: trio.Nursery) -> None:
        nonlocal over
        while True:
            over, scope = trio.Event(), trio.CancelScope()
            nursery.start_soon(infer, scope)
            await receive.receive()
            scope.cancel()
            await over.wait()

    async def chatter() -> None:
        while True:
            talker.words += 1
            await trio.sleep(WORD_S)

    async def post() -> None:
        send.send_nowait(store.add("measured", "user", TEXT))

    async with trio.open_nursery() as nursery:
        for _ in range(busy):
            nursery.start_soon(chatter)
        nursery.start_soon(session, nursery)
        yield post
        nursery.cancel_scope.cancel()


async def _times(talker: Talker, times: int, post: Callable[[], Awaitable[object]]) -> list[Seen]:
    return [await talker.interrupted_by(post) for _ in range(times)]


async def _our_times(daemon: Daemon, talker: Talker, times: int) -> list[Seen]:
    return await _times(talker, times, partial(daemon.post, channel("measured")))


async def _busy(daemon: Daemon, busy: int) -> None:
    where: list[Channel] = [channel(number) for number in range(busy)]
    for one in where:
        await daemon.post(one)


async def _measure(durability: Durability, busy: int) -> tuple[list[list[Seen]], list[list[Seen]]]:
    """Return what ours and the floor took, by round."""
    ours: list[list[Seen]] = []
    floor: list[list[Seen]] = []
    times = BUSY_TIMES if busy else TIMES[durability]
    with folder() as path, bare_store(path, durability) as store:
        for number in range(ROUNDS):
            talker = Talker()
            async with _bare(store, talker, busy) as post:
                floor.append(await _times(talker, times, post))
            (path / str(number)).mkdir()
            talker = Talker()
            async with running(path / str(number), durability, model=talker) as daemon:
                await _busy(daemon, busy)
                await daemon.post(channel("measured"))
                ours.append(await _our_times(daemon, talker, times))
    return ours, floor


def _p(values: list[Seen], which: int, share: float) -> float:
    ordered = sorted(value[which] for value in values)
    return ordered[ceil(share * len(ordered)) - 1]


def _rows(durability: Durability) -> list[Row]:
    name, full = durability.name, durability is Durability.FULL
    ours, floor = trio.run(_measure, durability, 0)
    found = [
        row(
            goal,
            f"{what}, {name}",
            limit=4.0,
            ours=[median(value[which] for value in values) for values in ours],
            floor=[median(value[which] for value in values) for values in floor],
            judged=judged,
        )
        for goal, what, which, judged in (
            (8, "message -> cancel seen", 0, full),
            (9, "message -> next model call", 1, not full),
        )
    ]
    ours, floor = trio.run(_measure, durability, BUSY)
    p99 = row(
        10,
        f"p99 of cancel seen, {BUSY} busy, {name}",
        limit=2.0,
        ours=[_p(values, 0, 0.99) for values in ours],
        floor=[_p(values, 0, 0.99) for values in floor],
        judged=full,
    )
    return [*found, p99]


def rows() -> list[Row]:
    """Measure goals 8, 9 and 10; takes about a minute."""
    return in_both(_rows)


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
