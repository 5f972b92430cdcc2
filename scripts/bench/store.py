"""The store alone: what an acceptance and a cold history cost, with neither gateway nor listener.

The floor of one poster is an insert and its commit in the loop, with the same `synchronous`; of a hundred, a task that
commits all that waits at once; of a history, SQLite's own rows of the same table. Wall time, as they take turns. Goals
4 and 5 are judged with the whole path (`gateway`); goal 15 here.
Run `scripts/python -m scripts.bench.store`.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter

import apsw
import trio

from kesoku_actors.actors import ChildSpec, Mailbox, SupervisorSpec, run_system
from kesoku_actors.clock import real_world
from kesoku_actors.protocol import AGENT, SYSTEM, Draft, Inbound, Reason, Role, Status, Type
from kesoku_actors.store import (
    BeginEpoch,
    Command,
    Commit,
    Committed,
    Durability,
    Post,
    Posted,
    RegisterWorker,
    Store,
    StoreOptions,
    Taking,
    WorkerKey,
    open_reader,
    queries,
    store_actor,
)
from scripts.bench.floors import BareStore, GroupWriter, bare_store
from scripts.bench.report import Row, row, show

ROUNDS = 7
POSTS = {Durability.NORMAL: 150, Durability.FULL: 15}
POSTERS = 100
HISTORY = 1000
TEXT = "a sentence of a person, as long as one usually is; " * 6


@asynccontextmanager
async def store_in(folder: Path, durability: Durability) -> AsyncIterator[Store]:
    """Run a store in `folder`."""
    options = StoreOptions(path=folder / f"{durability}.db", durability=durability)
    mailbox = Mailbox[Command]("store")
    start = partial(store_actor, options=options, world=real_world(), publish=lambda _publication: None)
    async with run_system(SupervisorSpec(id="bench", children=(ChildSpec(id="store", start=start, mailbox=mailbox),))):
        yield Store(mailbox.ref, open_reader(options))


async def seconds(work: Callable[[], Awaitable[None]]) -> float:
    """Return the wall time of `work`."""
    gc.collect()
    begin = perf_counter()
    await work()
    return perf_counter() - begin


async def post(store: Store, number: int) -> Posted:
    """Post a notice for the model: of these any number may wait."""
    room = f"room {number % 10}"
    inbound = Inbound(chatbot_id="bench", channel_id=room, content=TEXT, role=Role.SYSTEM, sender=SYSTEM)
    reply = await store.post(Post(id=f"{perf_counter()}.{number}", inbound=inbound))
    assert isinstance(reply, Posted)
    return reply


async def _one_poster(store: Store, posts: int) -> None:
    for number in range(posts):
        await post(store, number)


async def _many_posters(store: Store) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(POSTERS):
            nursery.start_soon(post, store, number)


async def _bare_posts(floor: BareStore, posts: int) -> None:
    for _ in range(posts):
        floor.add("session", "user", TEXT)
        await trio.lowlevel.checkpoint()


async def _bare_many(writer: GroupWriter) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(POSTERS):
            nursery.start_soon(writer.post, "session", "user", TEXT)


async def _posting(folder: Path, durability: Durability) -> list[Row]:
    one: list[tuple[float, float]] = []
    many: list[tuple[float, float]] = []
    posts = POSTS[durability]
    with bare_store(folder, durability) as floor:
        writer = GroupWriter(floor)
        async with store_in(folder, durability) as store, trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            for _ in range(ROUNDS):
                least = await seconds(partial(_bare_posts, floor, posts))
                one.append((await seconds(partial(_one_poster, store, posts)), least))
                least = await seconds(partial(_bare_many, writer))
                many.append((await seconds(partial(_many_posters, store)), least))
            nursery.cancel_scope.cancel()
    goal, limit = (4, 2.0) if durability is Durability.NORMAL else (5, 2.2)
    return [
        _row(goal, f"store: post, 1 poster, {durability}", limit, one),
        _row(5, f"store: post, {POSTERS} posters, {durability}", 2.5, many),
    ]


def _row(goal: int, name: str, limit: float, costs: list[tuple[float, float]]) -> Row:
    ours, floor = zip(*costs, strict=True)
    return row(goal, name, limit=limit, ours=ours, floor=floor, judged=False)


async def _talk(store: Store) -> str:
    """Store a session of one long turn; return its id."""
    root = (await post(store, 0)).message
    begun = await store.begin_epoch(BeginEpoch(clean=True))
    key = WorkerKey(session_id=root.session_id, epoch=begun.epoch, worker=1)
    await store.register(RegisterWorker(key=key))
    claim = Commit(id="claim", key=key, claim=Taking(message_id=root.id, reason=Reason.FRESH))
    said = Draft(role=Role.ASSISTANT, type=Type.TEXT, status=Status.RESPONDED, sender=AGENT, content=TEXT)
    for commit in (claim, Commit(id="said", key=key, root_id=root.id, insert=(said,) * (HISTORY - 1))):
        assert isinstance(await store.commit(commit), Committed)
    return root.session_id


async def _reading(folder: Path) -> Row:
    ours: list[float] = []
    floor: list[float] = []
    async with store_in(folder, Durability.NORMAL) as store:
        session_id = await _talk(store)
        read = store.reader.access.read

        def rows(connection: apsw.Connection) -> None:
            scan = "SELECT * FROM messages WHERE session_no = ? AND root_seq > 0 ORDER BY root_seq, place"
            connection.execute(scan, (queries.session_no(connection, session_id),)).fetchall()

        async def all_rows() -> None:
            await read(rows)

        async def history() -> None:
            await store.reader.history(session_id)

        for _ in range(ROUNDS):
            floor.append(await seconds(all_rows))
            ours.append(await seconds(history))
    return row(15, f"store: history of {HISTORY}, to its rows", limit=3.6, ours=ours, floor=floor)


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        posting = [one for durability in Durability for one in await _posting(folder, durability)]
        (folder / "history").mkdir()
        return [*posting, await _reading(folder / "history")]


def rows() -> list[Row]:
    """Measure everything."""
    return trio.run(_measure)


if __name__ == "__main__":
    sys.exit(0 if show(rows()) else 1)
