"""chrono-daemon: its channel between one sender and one receiver."""

from __future__ import annotations

import anyio
from chrono_daemon import open_channel

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_channel_ends_after_its_buffer() -> None:
    """Channel: everything sent before the send side is closed is received, in order, and then it ends."""
    channel, got = open_channel(2), list[int]()

    async def send() -> None:
        for number in range(4):
            await channel.send.send(number)
        await channel.send.aclose()

    async def receive() -> None:
        async for number in channel.recv:
            got.append(number)
            await steps(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        tasks.start_soon(receive)
    assert got == [0, 1, 2, 3]
