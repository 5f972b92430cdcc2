"""What goes on around a planted bug: work that takes steps, bystanders, and a mailbox that is emptied at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

Program = Callable[[], Awaitable[object]]
Item = TypeVar("Item")


async def work(steps: int) -> None:
    """Take so many steps; others may run at each."""
    for _ in range(steps):
        await trio.lowlevel.checkpoint()


async def ring(length: int = 3, rounds: int = 5) -> None:
    """Be bystanders that hand tokens round, so that a bug does not stand alone in its schedule."""
    channels = [trio.open_memory_channel[int](1) for _ in range(length)]

    async def bystander(place: int) -> None:
        for number in range(rounds):
            await channels[place][0].send(number)
            await channels[place - 1][1].receive()

    async with trio.open_nursery() as nursery:
        for place in range(length):
            nursery.start_soon(bystander, place)


def emptied(mailbox: trio.MemoryReceiveChannel[Item]) -> list[Item]:
    """Return what lies in a mailbox, without waiting for more."""
    items: list[Item] = []
    while mailbox.statistics().current_buffer_used:
        items.append(mailbox.receive_nowait())
    return items
