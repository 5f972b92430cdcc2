"""Goal 13: what an idle session costs in memory, while its worker lives and after it has gone.

The floor is one task waiting at a channel of its own. A live session is one whose model does not answer; a passive one
has had its turn, and the histories kept for the latest sessions count. Each is what a process grows by over a thousand
sessions after a first thousand, of passive ones after the first two, in a child process; needs /proc.
Run `scripts/python -m scripts.bench.memory`.
"""

from __future__ import annotations

import gc
import json
import sys

import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.llm.port import Limits
from kesoku_actors.store import Durability
from scripts.bench.children import resident_kib, run_child
from scripts.bench.daemon import channel, running
from scripts.bench.folders import folder
from scripts.bench.interrupt import Talker
from scripts.bench.report import Row, row, show

ROUNDS = 3
SESSIONS = 1000
AT_ONCE = 100


async def _bare() -> float:
    async def actor(receive: trio.MemoryReceiveChannel[int]) -> None:
        async for _ in receive:
            pass

    senders = []
    async with trio.open_nursery() as nursery:
        sizes = []
        for _ in range(2):
            for _ in range(SESSIONS):
                send, receive = trio.open_memory_channel[int](64)
                senders.append(send)
                nursery.start_soon(actor, receive)
            await wait_all_tasks_blocked()
            gc.collect()
            sizes.append(resident_kib())
        nursery.cancel_scope.cancel()
    return (sizes[1] - sizes[0]) / SESSIONS


async def _live() -> float:
    with folder() as path:
        talker = Talker(is_silent=True, limits=Limits(concurrency=2 * SESSIONS))
        sizes = []
        async with running(path, Durability.NORMAL, model=talker) as daemon:
            for number in range(2 * SESSIONS):
                await daemon.post(channel(number), "Hello.")
                if (number + 1) % SESSIONS == 0:
                    await wait_all_tasks_blocked(0.2)
                    gc.collect()
                    sizes.append(resident_kib())
    return (sizes[1] - sizes[0]) / SESSIONS


async def _passive() -> float:
    with folder() as path:
        sizes = []
        async with running(path, Durability.NORMAL) as daemon:
            for begin in range(0, 3 * SESSIONS, AT_ONCE):  # the caches fill with the first two thousand
                await daemon.turns_at_once([channel(number) for number in range(begin, begin + AT_ONCE)], "Hello.")
                if begin + AT_ONCE in (2 * SESSIONS, 3 * SESSIONS):
                    await wait_all_tasks_blocked(0.2)  # the last workers are gone
                    gc.collect()
                    sizes.append(resident_kib())
    return (sizes[1] - sizes[0]) / SESSIONS


_PROGRAMS = {"bare": _bare, "live": _live, "passive": _passive}


def rows() -> list[Row]:
    """Measure goal 13; takes about half a minute."""
    costs = {
        name: [float(run_child("-m", "scripts.bench.memory", name).said) for _ in range(ROUNDS)] for name in _PROGRAMS
    }
    return [
        row(13, "memory of a live session / a task", limit=3.0, ours=costs["live"], floor=costs["bare"]),
        row(13, "memory of a passive session / a task", limit=0.25, ours=costs["passive"], floor=costs["bare"]),
    ]


def main() -> int:
    """Print the rows; 0 when every goal is reached. With the name of a program: what it measures, KiB."""
    if len(sys.argv) > 1:
        print(json.dumps(trio.run(_PROGRAMS[sys.argv[1]])))
        return 0
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
