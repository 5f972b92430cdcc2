"""Goals 23 and 24: what a search over 100,000 messages costs, and how late the event loop is while they are indexed.

The floor of a search is a query of FTS5 as SQLite ships it, over a table of the same texts in a file of its own: the
ids of the ten best. Ours splits words as Unicode says, keeps to a channel's messages where it is told to, reads what it
found from the store and marks it. For the lag, a task of the loop looks how late it is woken; the goal is absolute.
Run `scripts/python -m scripts.bench.search`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Final

import apsw
import trio

from kesoku_actors.clock import seeded_world
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Role, Status, Type
from kesoku_actors.search import EVERYWHERE, Scope, Search
from kesoku_actors.store import Durability, StoreOptions, open_reader
from kesoku_actors.store.alone import importing_into
from kesoku_actors.store.archive import ArchivedMessage, SessionArchive, SessionHead
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

MESSAGES: Final = 100_000
SESSIONS: Final = 100
WORDS: Final = 60
ROUNDS: Final = 7
MOST: Final = 10.0
MOST_LAG_S: Final = 0.05
BEAT_S: Final = 0.002
_TIMES: Final = 20

QUERIES: Final = {
    "a word of one message": ("needle", EVERYWHERE),
    "a word of 300": ("word17", EVERYWHERE),
    "a word of 300, in one channel": ("word17", Scope(chatbot_id="bench", channel_id="room 7")),
    "a word of all": ("the", EVERYWHERE),
    "two words": ("word17 the", EVERYWHERE),
    "a phrase": ('"red fox"', EVERYWHERE),
    "a beginning": ("word170*", EVERYWHERE),
}


def long_rows() -> list[Row]:
    """Measure both goals; takes about two minutes."""
    with folder() as place:
        _talk(place / "kesoku.db")
        return trio.run(_measure, place)


async def _measure(place: Path) -> list[Row]:
    options = StoreOptions(path=place / "kesoku.db", durability=Durability.FULL)
    reader = open_reader(options)
    log = Logger(sink=lambda _entry: None, wall=lambda: 0.0)
    search = Search(path=place / "kesoku-search.db", reader=reader, log=log)
    try:
        lag = await _lag_while(search)
        rows = [
            row(24, "99th lag of the loop while indexing, s / limit", limit=1.0, ours=[lag], floor=[MOST_LAG_S]),
        ]
        with _bare(place / "bare.db") as bare:
            for name, (query, scope) in QUERIES.items():
                rows.append(await _compare(name, query, scope, search, bare))
        return rows
    finally:
        await search.close()
        await reader.close()


async def _compare(name: str, query: str, scope: Scope, search: Search, bare: apsw.Connection) -> Row:
    ours, floor = [], []
    for _ in range(ROUNDS):
        begun = perf_counter()
        for _ in range(_TIMES):
            await search.find(query, scope)
        ours.append(perf_counter() - begun)
        begun = perf_counter()
        for _ in range(_TIMES):
            bare.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10", (query,)).fetchall()
        floor.append(perf_counter() - begun)
    return row(23, f"search for {name} / bare FTS5", limit=MOST, ours=ours, floor=floor)


async def _lag_while(search: Search) -> float:
    lags: list[float] = []

    async def beat() -> None:
        while True:
            due = trio.current_time() + BEAT_S
            await trio.sleep(BEAT_S)
            lags.append(trio.current_time() - due)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        await search.catch_up()
        nursery.cancel_scope.cancel()
    return quantiles(lags, n=100)[98]


def _texts() -> Iterator[str]:
    rng = random.Random(7)
    words = [f"word{number}" for number in range(20_000)]
    for number in range(MESSAGES):
        special = "needle" if number == MESSAGES // 2 else "red fox" if number % 500 == 0 else "fox"
        yield f"the {' '.join(rng.choices(words, k=WORDS))} {special}"


def _talk(path: Path) -> None:
    """Make a store with the messages, as an import would."""
    texts = _texts()
    world = seeded_world(1)
    with importing_into(path, durability=Durability.NORMAL, world=world, warn=print) as take:
        take(_session(number, [next(texts) for _ in range(MESSAGES // SESSIONS)]) for number in range(SESSIONS))


def _session(number: int, texts: list[str]) -> SessionArchive:
    head = SessionHead(
        id=f"{number:026}",
        chatbot_id="bench",
        channel_id=f"room {number}",
        created=0.0,
        last_activity=0.0,
        turns=len(texts),
        title="",
    )
    return SessionArchive(
        head=head,
        messages=tuple(
            ArchivedMessage(
                id=f"{number}.{seq}",
                seq=seq,
                place=seq,
                root_id=f"{number}.{seq}",
                parent_id=None,
                external_id=None,
                sender="User",
                role=Role.USER,
                type=Type.TEXT,
                status=Status.PROCESSED,
                content=text,
                timestamp=0.0,
                metadata={},
            )
            for seq, text in enumerate(texts, start=1)
        ),
    )


@contextmanager
def _bare(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (content)")
        with connection:
            connection.executemany("INSERT INTO words VALUES (?)", ((text,) for text in _texts()))
        yield connection
    finally:
        connection.close()


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(long_rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
