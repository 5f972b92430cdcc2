"""chanio: channels and select, as in Go."""

from __future__ import annotations

import anyio
from chanio import Channel, select

from kesoku_actors.harness import Hold, explore
from scripts.upstream.scenery import RUNS, steps


@explore(runs=RUNS, certify=Hold(1))
async def test_select_takes_from_one_channel_only() -> None:
    """select, "go-style", which lets exactly one of its operations proceed: what it does not return is still there."""
    left, right = Channel[str](1), Channel[str](1)
    got = list[str]()

    async def send(channel: Channel[str], item: str) -> None:
        await channel.send(item)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, left, "left")
        tasks.start_soon(send, right, "right")
        for _ in range(2):
            item, _ = await select(left, right, priority=True)
            got.append(item)
    assert sorted(got) == ["left", "right"]


@explore(runs=RUNS, certify=Hold(1))
async def test_channel_drains_before_it_ends() -> None:
    """Channel.close: "buffered values still drain to receivers first"."""
    channel, got = Channel[int](2), list[int]()

    async def send() -> None:
        async with channel:
            for number in range(4):
                await channel.send(number)

    async def receive() -> None:
        async for number in channel:
            got.append(number)
            await steps(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        tasks.start_soon(receive)
    assert got == [0, 1, 2, 3]
