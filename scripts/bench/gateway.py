"""Goals 4 and 5: post -> durable -> listener, with one waiter and with a hundred.

The floor of one waiter inserts and commits in the loop and wakes a listener's task; the floor of FULL is that commit
alone; the floor of a hundred is a task that commits all that waits at once. Wall time of each, as they take turns.
Run `scripts/python -m scripts.bench.gateway`.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from time import perf_counter

import trio

from kesoku_actors.store import Durability
from scripts.bench.daemon import TEXT, Daemon, channel, running, threaded
from scripts.bench.floors import BareStore, GroupWriter, bare_store
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

ROUNDS = 9
POSTS = {Durability.NORMAL: 150, Durability.FULL: 15}
POSTERS = 100

Costs = dict[str, list[float]]


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    begin = perf_counter()
    await work()
    return perf_counter() - begin


async def _bare_posts(store: BareStore, posts: int) -> None:
    send, receive = trio.open_memory_channel[int](64)
    heard = trio.Event()

    async def listener() -> None:
        nonlocal heard
        async for _ in receive:
            heard.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener)
        for _ in range(posts):
            heard = trio.Event()
            send.send_nowait(store.add("session", "user", TEXT))
            await heard.wait()
        nursery.cancel_scope.cancel()


async def _our_posts(daemon: Daemon, posts: int) -> None:
    """One after the other into one session; emptied again, as only so many may wait."""
    async with aclosing(daemon.waiting()) as events:
        where = channel(daemon.gateway.world.ids())
        for number in range(posts):
            if number % 50 == 0:
                where = channel(daemon.gateway.world.ids())
            await daemon.post(where)
            await anext(events)


async def _bare_commits(store: BareStore, posts: int) -> None:
    for _ in range(posts):
        store.add("session", "user", TEXT)


async def _bare_posters(store: BareStore) -> None:
    writer = GroupWriter(store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        async with trio.open_nursery() as posters:
            for _ in range(POSTERS):
                posters.start_soon(writer.post, "session", "user", TEXT)
        nursery.cancel_scope.cancel()


async def _our_posters(daemon: Daemon) -> None:
    where = channel(daemon.gateway.world.ids())
    async with aclosing(daemon.waiting()) as events:
        async with trio.open_nursery() as posters:
            for _ in range(POSTERS):
                posters.start_soon(daemon.post, where)
        for _ in range(POSTERS):
            await anext(events)


async def _measure(durability: Durability, in_threads: bool) -> Costs:
    costs: Costs = defaultdict(list)
    posts = POSTS[durability]
    with folder() as path, bare_store(path, durability) as floor:
        store = {"store": threaded(path, durability)} if in_threads else {}
        async with running(path, durability, channels=(), **store) as daemon:
            for _ in range(ROUNDS):
                costs["bare posts"].append(await _seconds(lambda: _bare_posts(floor, posts)))
                costs["posts"].append(await _seconds(lambda: _our_posts(daemon, posts)))
                costs["bare commits"].append(await _seconds(lambda: _bare_commits(floor, posts)))
                costs["bare posters"].append(await _seconds(lambda: _bare_posters(floor)))
                costs["posters"].append(await _seconds(lambda: _our_posters(daemon)))
    return costs


def rows() -> list[Row]:
    """Measure goals 4 and 5; takes about twenty seconds."""
    inline = trio.run(_measure, Durability.NORMAL, False)
    normal = trio.run(_measure, Durability.NORMAL, True)
    full = trio.run(_measure, Durability.FULL, True)

    def one(goal: int, name: str, limit: float, costs: Costs, ours: str, floor: str, judged: bool = True) -> Row:
        return row(goal, name, limit=limit, ours=costs[ours], floor=costs[floor], judged=judged)

    return [
        one(4, "post -> listener, NORMAL, inline", 2.0, inline, "posts", "bare posts"),
        one(4, "post -> listener, NORMAL, in a thread", 2.5, normal, "posts", "bare posts"),
        one(5, "post -> listener, FULL / a bare commit", 2.2, full, "posts", "bare commits"),
        one(5, "100 posters, NORMAL / 100 waiters", 2.5, inline, "posters", "bare posters"),
        one(5, "100 posters, FULL / 100 waiters", 2.5, full, "posters", "bare posters"),
    ]


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
