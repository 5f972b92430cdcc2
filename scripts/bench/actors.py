"""Goals 1 to 3: what an actor under supervision costs, against a bare trio actor and a bare nursery.

Run `scripts/python -m scripts.bench.actors`. Costs are CPU seconds of this process.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from time import process_time

import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import Cell, ChildSpec, Dynamic, DynamicSpec, Mailbox, SupervisorSpec, run_system
from scripts.bench.report import Row, row, show

ROUNDS = 7
MESSAGES = 3000
LISTENERS = 1000
CRASHES = 500


class BareActor:
    """The floor: one task, a channel for messages, a channel for each answer."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[tuple[int, trio.MemorySendChannel[int] | None]](64)

    async def run(self) -> None:
        async for message, answer in self._receive:
            if answer is not None:
                await answer.send(message)

    async def tell(self, message: int) -> None:
        await self._send.send((message, None))

    async def ask(self, message: int) -> int:
        send, receive = trio.open_memory_channel[int](1)
        await self._send.send((message, send))
        return await receive.receive()


async def echo(cell: Cell[int]) -> None:
    """Ours: answers every message with itself, and crashes on a negative one."""
    cell.started()
    async for letter in cell.inbox:
        if letter.message < 0:
            raise ValueError
        letter.reply(letter.message)


def _supervised(mailbox: Mailbox[int], intensity: int = 3) -> SupervisorSpec:
    child = ChildSpec(id=mailbox.name, start=echo, mailbox=mailbox)
    return SupervisorSpec(id="bench", children=(child,), intensity=intensity)


async def _cost(work: Callable[[], Awaitable[None]]) -> float:
    await wait_all_tasks_blocked()
    gc.collect()
    begin = process_time()
    await work()
    return process_time() - begin


async def _one_to_one(costs: dict[str, list[float]]) -> None:
    bare, mailbox = BareActor(), Mailbox[int]("echo")
    ref = mailbox.ref

    async def bare_ask() -> None:
        for number in range(MESSAGES):
            await bare.ask(number)

    async def our_ask() -> None:
        for number in range(MESSAGES):
            await ref.ask(number)

    async def bare_tell() -> None:
        for number in range(MESSAGES):
            await bare.tell(number)
        await bare.ask(0)

    async def our_tell() -> None:
        for number in range(MESSAGES):
            await ref.tell(number)
        await ref.ask(0)

    async with trio.open_nursery() as nursery, run_system(_supervised(mailbox)):
        nursery.start_soon(bare.run)
        for name, work in {"ask": bare_ask, "our ask": our_ask, "tell": bare_tell, "our tell": our_tell}.items():
            costs[name].append(await _cost(work))
        nursery.cancel_scope.cancel()


class Countdown:
    """Tells when every listener has heard a message."""

    def __init__(self) -> None:
        self._left = LISTENERS
        self._done = trio.Event()

    def heard(self) -> None:
        self._left -= 1
        if not self._left:
            self._done.set()

    async def wait(self) -> None:
        await self._done.wait()


async def _bare_listener(receive: trio.MemoryReceiveChannel[Countdown]) -> None:
    async for countdown in receive:
        countdown.heard()


async def _our_listener(cell: Cell[Countdown]) -> None:
    cell.started()
    async for letter in cell.inbox:
        letter.message.heard()


async def _fan_out(costs: dict[str, list[float]]) -> None:
    bare = [trio.open_memory_channel[Countdown](64) for _ in range(LISTENERS)]
    mailboxes = [Mailbox[Countdown](f"listener{number}") for number in range(LISTENERS)]
    dynamic = Dynamic("listeners")
    tree = SupervisorSpec(id="bench", children=(DynamicSpec(id="listeners", dynamic=dynamic),))

    async def bare_fan_out() -> None:
        for _ in range(MESSAGES // LISTENERS):
            countdown = Countdown()
            for send, _receive in bare:
                await send.send(countdown)
            await countdown.wait()

    async def our_fan_out() -> None:
        for _ in range(MESSAGES // LISTENERS):
            countdown = Countdown()
            for mailbox in mailboxes:
                await mailbox.ref.tell(countdown)
            await countdown.wait()

    async with trio.open_nursery() as nursery, run_system(tree):
        for _send, receive in bare:
            nursery.start_soon(_bare_listener, receive)
        for mailbox in mailboxes:
            dynamic.start_nowait(ChildSpec(id=mailbox.name, start=_our_listener, mailbox=mailbox))
        costs["fan-out"].append(await _cost(bare_fan_out))
        costs["our fan-out"].append(await _cost(our_fan_out))
        nursery.cancel_scope.cancel()


async def _crash(costs: dict[str, list[float]]) -> None:
    mailbox = Mailbox[int]("echo")

    async def nothing() -> None:
        return

    async def bare_nursery() -> None:
        for _ in range(CRASHES):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(nothing)

    async def our_restart() -> None:
        for number in range(CRASHES):
            mailbox.ref.tell_nowait(-1)
            await mailbox.ref.ask(number, timeout_s=None)  # queued behind the crash: the next life answers

    async with run_system(_supervised(mailbox, intensity=CRASHES)):
        costs["nursery"].append(await _cost(bare_nursery))
        costs["our restart"].append(await _cost(our_restart))


async def _measure() -> dict[str, list[float]]:
    costs: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        await _one_to_one(costs)
        await _fan_out(costs)
        await _crash(costs)
    return costs


def rows() -> list[Row]:
    """Measure goals 1, 2 and 3; takes about ten seconds."""
    costs = trio.run(_measure)
    return [
        row(1, "ask, supervised, with a deadline / bare", limit=1.3, ours=costs["our ask"], floor=costs["ask"]),
        row(2, "tell 1->1 / bare", limit=0.4, ours=costs["our tell"], floor=costs["tell"]),
        row(2, "tell 1->1000 / bare", limit=1.2, ours=costs["our fan-out"], floor=costs["fan-out"]),
        row(
            3, "crash -> next message / nursery and task", limit=4.0, ours=costs["our restart"], floor=costs["nursery"]
        ),
    ]


def main() -> int:
    """Print the rows; 0 when every goal is reached."""
    return 0 if show(rows()) else 1


if __name__ == "__main__":
    sys.exit(main())
