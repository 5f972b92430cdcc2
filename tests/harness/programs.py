"""Small trio programs with a planted bug each, and their twins without it: for the tests of the harness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

Program = Callable[[], Awaitable[object]]


async def pause(times: int = 1) -> None:
    """Let others run."""
    for _ in range(times):
        await trio.lowlevel.checkpoint()


async def ring(length: int = 3, rounds: int = 5) -> None:
    """Bystanders that hand tokens round."""
    channels = [trio.open_memory_channel[int](1) for _ in range(length)]

    async def hand_on(place: int) -> None:
        for number in range(rounds):
            await channels[place][0].send(number)
            await channels[place - 1][1].receive()

    async with trio.open_nursery() as nursery:
        for place in range(length):
            nursery.start_soon(hand_on, place)


def lost_update(*, fixed: bool = False) -> Program:
    """Two tasks read, wait, and write back: one update is lost."""

    async def main() -> None:
        total, lock = [0], trio.Lock()

        async def add() -> None:
            async with lock if fixed else trio.CapacityLimiter(9):
                seen = total[0]
                await pause(2)
                total[0] = seen + 1

        async def later() -> None:
            await pause(14)
            await add()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(add)
            nursery.start_soon(later)
        assert total[0] == 2, "an update was lost"

    return main


def crossed_mailboxes(*, fixed: bool = False) -> Program:
    """Two tasks fill each other's bounded mailbox before they read their own."""

    async def main() -> None:
        ways = [trio.open_memory_channel[int](20 if fixed else 2) for _ in range(2)]

        async def peer(mine: int) -> None:
            sender, receiver = ways[1 - mine][0], ways[mine][1]
            for number in range(4):
                await sender.send(number)
                if number % 2:
                    await receiver.receive()
            for _ in range(2):
                await receiver.receive()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(peer, 0)
            nursery.start_soon(peer, 1)

    return main


def late_result(*, fixed: bool = False) -> Program:
    """A job is run again when its result does not come in time; the result may come just then."""

    async def main() -> None:
        runs: list[int] = []

        async def job(reply: trio.MemorySendChannel[str]) -> None:
            runs.append(1)
            await pause(6)
            await reply.send("done")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            sender, receiver = trio.open_memory_channel[str](2)
            for _ in range(2):
                nursery.start_soon(job, sender)
                with trio.move_on_after(5):
                    await receiver.receive()
                    break
                if fixed:
                    await receiver.receive()
                    break
        assert len(runs) == 1, "the job ran twice"

    return main


BUGS: dict[str, Callable[..., Program]] = {
    "lost_update": lost_update,
    "crossed_mailboxes": crossed_mailboxes,
    "late_result": late_result,
}
