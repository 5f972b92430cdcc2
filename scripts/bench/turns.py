"""Goals 6, 7, 11, 12: durable turns through the whole tree, against the bare loop over one table.

Costs are CPU seconds of the process, all threads; both sides wait for the same disk. One warm turn after the other in
sessions of a few dozen messages (6, 7), then a turn of a thousand sessions at once (11), ten thousand with `--long`,
and five turns each of a hundred sessions, of which none may fail (12). The floor of 11 is of our shape, bare: a task
and a channel for each session, one store that commits in groups.
Run `scripts/python -m scripts.bench.turns`.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from time import process_time

import trio

from kesoku_actors.protocol import Role
from kesoku_actors.store import Durability
from scripts.bench.daemon import ANSWER, TEXT, Daemon, channel, in_both, look, running
from scripts.bench.floors import BareStore, BareTalk, GroupWriter, bare_store
from scripts.bench.folders import folder
from scripts.bench.report import Row, row, show

ROUNDS = 5
TURNS = {Durability.NORMAL: 60, Durability.FULL: 20}
KINDS = {"text": (TEXT, 0), "1 tool": ("1 calls. " + TEXT, 1), "3 tools": ("3 calls. " + TEXT, 3)}
LIMITS = {"text": (6, 8.0), "1 tool": (7, 5.0), "3 tools": (7, 4.0)}
SESSIONS, MANY = 1000, 10_000
CROWD, CROWD_TURNS = 100, 5

Costs = dict[str, list[float]]


async def cpu(work: Callable[[], Awaitable[None]]) -> float:
    """Return the CPU seconds that `work` takes."""
    gc.collect()
    begin = process_time()
    await work()
    return process_time() - begin


def _bare_model(calls: int) -> Callable[[list[str]], Awaitable[tuple[str, int]]]:
    """Asks for `calls` calls once in a turn, then answers."""
    asked = False

    async def model(_history: list[str]) -> tuple[str, int]:
        nonlocal asked
        await trio.lowlevel.checkpoint()
        asked = bool(calls) and not asked
        return (ANSWER.text, calls if asked else 0)

    return model


async def _bare_tool() -> str:
    return await look(0)


def bare_talk(store: BareStore, session: str, calls: int = 0) -> BareTalk:
    """Return a session of the floor whose model asks for `calls` calls in every turn."""
    return BareTalk(store=store, session=session, model=_bare_model(calls), tool=_bare_tool)


async def _one_by_one(daemon: Daemon, floor: BareStore, turns: int, costs: Costs) -> None:
    for number in range(ROUNDS):
        for kind, (text, calls) in KINDS.items():
            talk = bare_talk(floor, f"{kind} {number}", calls)

            async def bare(talk: BareTalk = talk, text: str = text) -> None:
                for _ in range(turns):
                    await talk.turn(text)

            async def ours(where: str = f"{kind} {number}", text: str = text) -> None:
                await daemon.turns([channel(where)] * turns, text)

            costs[f"bare {kind}"].append(await cpu(bare))
            costs[kind].append(await cpu(ours))


async def _at_once(daemon: Daemon, floor: BareStore, sessions: int, prefix: str) -> tuple[float, float]:
    """Return the cost of a turn of each of so many new sessions: ours, the floor's."""
    writer, model = GroupWriter(floor), _bare_model(0)

    async def talk(session: str, said: trio.MemoryReceiveChannel[str]) -> None:
        async for text in said:
            answer, _calls = await model([text])
            await writer.post(session, "assistant", answer)

    async def post(session: str, to: trio.MemorySendChannel[str]) -> None:
        await writer.post(session, "user", TEXT)
        async with to:
            await to.send(TEXT)

    async def bare() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            async with trio.open_nursery() as talks:
                for number in range(sessions):
                    to, said = trio.open_memory_channel[str](64)
                    talks.start_soon(talk, f"{prefix} {number}", said)
                    talks.start_soon(post, f"{prefix} {number}", to)
            nursery.cancel_scope.cancel()

    async def ours() -> None:
        await daemon.turns_at_once([channel(f"{prefix} {number}") for number in range(sessions)])

    least = await cpu(bare)
    return await cpu(ours) / sessions, least / sessions


async def _measure(durability: Durability, rounds: int, sizes: tuple[int, ...]) -> Costs:
    costs: Costs = defaultdict(list)
    with folder() as path, bare_store(path, durability) as floor:
        async with running(path, durability) as daemon:
            if not sizes:
                await _one_by_one(daemon, floor, TURNS[durability], costs)
            for number in range(rounds):
                for sessions in sizes:
                    mine, least = await _at_once(daemon, floor, sessions, f"{number} of {sessions}")
                    costs[f"{sessions}"].append(mine)
                    costs[f"bare {sessions}"].append(least)
    return costs


async def _crowd(durability: Durability) -> int:
    """Return how many of the answers are missing after five turns of a hundred sessions."""
    with folder() as path:
        async with running(path, durability) as daemon:
            where = [channel(number) for number in range(CROWD)]
            for _ in range(CROWD_TURNS):
                await daemon.turns_at_once(where)
            answers = 0
            for session in await daemon.gateway.sessions(limit=CROWD + 1):
                history = await daemon.gateway.history(session.id)
                answers += sum(message.role is Role.ASSISTANT for message in history.messages)
    return CROWD * CROWD_TURNS - answers


def _rows(durability: Durability) -> list[Row]:
    judged, shown = durability is Durability.FULL, durability.name
    costs = trio.run(_measure, durability, 0, ())
    found = [
        row(goal, f"turn, {kind}, {shown}", limit=limit, ours=costs[kind], floor=costs[f"bare {kind}"], judged=judged)
        for kind, (goal, limit) in LIMITS.items()
    ]
    costs = trio.run(_measure, durability, 3, (SESSIONS,))
    ours, floor = costs[f"{SESSIONS}"], costs[f"bare {SESSIONS}"]
    found.append(row(11, f"{SESSIONS} sessions at once, {shown}", limit=4.0, ours=ours, floor=floor, judged=judged))
    missing = trio.run(_crowd, durability)
    name = f"{CROWD} sessions x {CROWD_TURNS}, answers missing, {shown}"
    return [*found, Row(goal=12, name=name, ratio=float(missing), limit=0.0, spread=0.0)]


def rows() -> list[Row]:
    """Measure goals 6, 7, 11 and 12; takes about a minute."""
    return in_both(_rows)


def _long_rows(durability: Durability) -> list[Row]:
    costs = trio.run(_measure, durability, 3, (SESSIONS, MANY))
    name = f"{MANY} sessions / {SESSIONS}, a turn, {durability.name}"
    judged = durability is Durability.FULL
    return [row(11, name, limit=1.3, ours=costs[f"{MANY}"], floor=costs[f"{SESSIONS}"], judged=judged)]


def long_rows() -> list[Row]:
    """Measure how goal 11 grows with ten times the sessions; takes some minutes."""
    return in_both(_long_rows)


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
