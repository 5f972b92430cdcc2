"""Goals 14, 15, 16: starting over many sessions, reading one long history, and turns of a long talk.

The stores are made once with our own schema and filled by plain inserts. A restart ends when the whole tree is ready;
its floor opens the file, reads where each session's history ends, and starts a task a session. The floor of a history
is one scan and one JSON text a row decoded into a dictionary; a turn's floor is the same turn in a short talk.
Run `scripts/python -m scripts.bench.restart`.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time

import apsw
import trio

from kesoku_actors.clock import real_world
from kesoku_actors.store import Durability, StoreOptions, open_reader
from scripts.bench.daemon import TEXT, channel, running
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

ROUNDS = 5
SESSIONS = 1000
SHORT, LONG = 10, 100
HISTORY = 1000
BRIEF_TALK, LONG_TALK = 10, 5000
TURNS = 15

_SESSION = (
    "INSERT INTO sessions (no, id, chatbot_id, channel_id, state, created, last_activity) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_MESSAGE = (
    "INSERT INTO messages (seq, rev, session_no, root_seq, place, id, sender, role, type, status, content, root_id,"
    " timestamp, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'text', ?, ?, ?, 1.0, '{}')"
)
_HEADS = "SELECT session_no, max(root_seq) FROM messages WHERE root_seq > 0 GROUP BY session_no"


async def _make(path: Path, sessions: int, messages: int, durability: Durability) -> None:
    """Make a store with so many sessions of so many messages, pairs of question and answer."""
    async with running(path, durability):
        pass
    ids = real_world().ids
    connection = apsw.Connection(str(path / "kesoku.db"))
    connection.execute("BEGIN")
    seq = 0
    for no in range(1, sessions + 1):
        where = channel(no)
        connection.execute(_SESSION, (no, ids(), where.chatbot_id, where.channel_id, "open", 1.0, 1.0))
        for _ in range(messages // 2):
            root_id = ids()
            root, answer = seq + 1, seq + 2
            connection.execute(
                _MESSAGE, (root, root, no, root, root, root_id, "Ada", "user", "processed", TEXT, root_id)
            )
            connection.execute(
                _MESSAGE,
                (answer, answer, no, root, answer, ids(), "Kesoku", "assistant", "delivered", TEXT, root_id),
            )
            seq = answer
    connection.execute("UPDATE meta SET value = ? WHERE name = 'counter'", (seq,))
    connection.execute("COMMIT")
    connection.close()


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    begin = perf_counter()
    await work()
    return perf_counter() - begin


async def _bare_restart(path: Path) -> float:
    async def one(receive: trio.MemoryReceiveChannel[int]) -> None:
        async for _ in receive:
            pass

    async with trio.open_nursery() as nursery:

        async def work() -> None:
            connection = apsw.Connection(str(path / "kesoku.db"))
            for _ in connection.execute(_HEADS).fetchall():
                nursery.start_soon(one, trio.open_memory_channel[int](64)[1])
            await trio.lowlevel.checkpoint()
            connection.close()

        took = await _seconds(work)
        nursery.cancel_scope.cancel()
    return took


async def _our_restart(path: Path, durability: Durability) -> float:
    gc.collect()
    begin = perf_counter()
    async with running(path, durability):
        return perf_counter() - begin


async def _restarts(durability: Durability) -> tuple[list[float], list[float], list[float]]:
    floor: list[float] = []
    ours: dict[int, list[float]] = {SHORT: [], LONG: []}
    with folder() as path:
        for messages in ours:
            (path / str(messages)).mkdir()
            await _make(path / str(messages), SESSIONS, messages, durability)
        for _ in range(ROUNDS):
            floor.append(await _bare_restart(path / str(SHORT)))
            for messages, found in ours.items():
                found.append(await _our_restart(path / str(messages), durability))
    return floor, ours[SHORT], ours[LONG]


async def _histories() -> tuple[list[float], list[float]]:
    floor: list[float] = []
    ours: list[float] = []
    with folder() as path:
        await _make(path, 1, HISTORY, Durability.NORMAL)
        connection = apsw.Connection(str(path / "kesoku.db"))
        session_id = connection.execute("SELECT id FROM sessions").fetchall()[0][0]
        connection.execute("CREATE TABLE plain (seq INTEGER PRIMARY KEY, data TEXT)")
        reader = open_reader(StoreOptions(path=path / "kesoku.db", durability=Durability.FULL))
        for seq, message in enumerate((await reader.history(session_id)).messages):
            data = json.dumps({"id": message.id, "role": message.role, "content": message.content, "metadata": {}})
            connection.execute("INSERT INTO plain VALUES (?, ?)", (seq, data))
        for _ in range(2 * ROUNDS):
            gc.collect()
            begin = process_time()
            [json.loads(data) for _, data in connection.execute("SELECT seq, data FROM plain ORDER BY seq").fetchall()]
            between = process_time()
            await reader.history(session_id)
            floor.append(between - begin)
            ours.append(process_time() - between)
        connection.close()
        await reader.close()
    return floor, ours


async def _talks(durability: Durability) -> tuple[list[float], list[float]]:
    costs: dict[int, list[float]] = {BRIEF_TALK: [], LONG_TALK: []}
    with folder() as path:
        for length, found in costs.items():
            home = path / str(length)
            home.mkdir()
            await _make(home, 1, length, durability)
            async with running(home, durability) as daemon:
                await daemon.turns([channel(1)] * 3)
                for _ in range(ROUNDS):
                    gc.collect()
                    begin = process_time()
                    await daemon.turns([channel(1)] * TURNS)
                    found.append(process_time() - begin)
    return costs[LONG_TALK], costs[BRIEF_TALK]


def _rows(durability: Durability) -> list[Row]:
    name, judged = durability.name, durability is Durability.FULL
    floor, short, long = trio.run(_restarts, durability)
    ours, brief = trio.run(_talks, durability)
    return [
        row(14, f"restart, {SESSIONS} sessions, {name}", limit=1.5, ours=short, floor=floor, judged=judged),
        row(14, f"restart, x{LONG} over x{SHORT} messages, {name}", limit=1.2, ours=long, floor=short, judged=judged),
        row(16, f"turn at {LONG_TALK} over {BRIEF_TALK}, {name}", limit=2.0, ours=ours, floor=brief, judged=judged),
    ]


def rows() -> list[Row]:
    """Measure goals 14, 15 and 16; takes about twenty seconds."""
    normal, full = _rows(Durability.NORMAL), _rows(Durability.FULL)
    floor, ours = trio.run(_histories)
    return [*normal, *full, row(15, f"history of {HISTORY} / scan and JSON", limit=1.5, ours=ours, floor=floor)]


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
