"""Planted bugs of waiting: mailboxes and calls that block each other, wake-ups that are lost, and starvation."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, ring, work

Call = tuple[str, trio.MemorySendChannel[int]]


def crossed_mailboxes(*, fixed: bool = False) -> Program:
    """Two actors write to each other before they read; the news takes the last place in both bounded mailboxes."""

    async def main() -> None:
        ways = [trio.open_memory_channel[int](9 if fixed else 2) for _ in range(2)]

        async def peer(mine: int) -> None:
            for number in range(2):
                await ways[1 - mine][0].send(number)  # race: both mailboxes may be full
            for _ in range(3):
                await ways[mine][1].receive()

        async def news() -> None:
            await work(8)
            for sender, _ in ways:
                await sender.send(99)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(news)
            for place in range(2):
                nursery.start_soon(peer, place)

    return main


def call_back(*, fixed: bool = False) -> Program:
    """A shop asks its bank for each order, and the bank asks the shop at each audit: each waits for the other."""

    async def main() -> None:
        ways = {name: trio.open_memory_channel[Call](4) for name in ("shop", "bank")}

        async def ask(name: str, what: str) -> int:
            reply, answer = trio.open_memory_channel[int](1)
            await ways[name][0].send((what, reply))
            return await answer.receive()

        async def answer(call: Call) -> None:
            what, reply = call
            match what:
                case "order":
                    await ask("bank", "credit")  # race: the bank may be waiting for the shop
                case "audit":
                    await ask("shop", "stock")
                case _:
                    await work(1)
            reply.send_nowait(1)

        async def actor(name: str) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    call = await ways[name][1].receive()
                    if fixed:
                        nursery.start_soon(answer, call)
                    else:
                        await answer(call)

        async def client(name: str, what: str, after: int) -> None:
            await work(after)
            await ask(name, what)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor, "shop")
            nursery.start_soon(actor, "bank")
            nursery.start_soon(client, "shop", "order", 0)
            nursery.start_soon(client, "bank", "audit", 14)

    return main


def lock_across_send(*, fixed: bool = False) -> Program:
    """A producer sends while it holds a lock that the consumer needs before it can receive again."""

    async def main() -> None:
        to_consumer, mailbox = trio.open_memory_channel[int](1)
        ledger, lines = trio.Lock(), list[str]()

        async def producer() -> None:
            async with to_consumer:
                for number in range(4):
                    async with ledger:
                        lines.append(f"sent {number}")
                        if not fixed:
                            await to_consumer.send(number)  # race: full, while its reader waits for the ledger
                    if fixed:
                        await to_consumer.send(number)

        async def consumer() -> None:
            async for number in mailbox:
                async with ledger:
                    lines.append(f"got {number}")

        async with trio.open_nursery() as nursery:
            for task in (ring, producer, consumer):
                nursery.start_soon(task)

    return main


def replaced_event(*, fixed: bool = False) -> Program:
    """A consumer finds nothing, says so, and then replaces the event by which it has just been woken."""

    async def main() -> None:
        items, ready = list[int](), [trio.Event()]

        async def producer() -> None:
            for number in range(3):
                await work(4)
                items.append(number)
                ready[0].set()  # race: the consumer may throw this event away

        async def consumer() -> None:
            taken = 0
            while taken < 3:
                if items:
                    items.pop()
                    taken += 1
                    continue
                if fixed:
                    ready[0] = trio.Event()
                    await work(1)
                else:
                    await work(1)
                    ready[0] = trio.Event()
                await ready[0].wait()

        async with trio.open_nursery() as nursery:
            for task in (ring, consumer, producer):
                nursery.start_soon(task)

    return main


def stolen_wakeup(*, fixed: bool = False) -> Program:
    """A consumer that was woken does not look again, and what it was woken for has been taken by another."""

    async def main() -> None:
        changed, items, taken = trio.Condition(), list[int](), list[int]()

        async def consumer(after: int) -> None:
            await work(after)
            async with changed:
                if not items:
                    await changed.wait()
                while fixed and not items:
                    await changed.wait()
                taken.append(items.pop())  # race: the other consumer may have been before

        async def producer() -> None:
            for number in range(2):
                await work(12)
                async with changed:
                    items.append(number)
                    changed.notify()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer, 0)
            nursery.start_soon(consumer, 17)
            nursery.start_soon(producer)
        assert sorted(taken) == [0, 1]

    return main


def one_signal_two_items(*, fixed: bool = False) -> Program:
    """Two signals become one where there is one already, and the consumer takes one item for each signal."""

    async def main() -> None:
        to_consumer, signals = trio.open_memory_channel[None](1)
        items, handled = list[int](), list[int]()

        async def producer() -> None:
            for number in range(3):
                await work(3)
                items.append(number)
                if not to_consumer.statistics().current_buffer_used:
                    to_consumer.send_nowait(None)  # race: with the consumer, who has not come for the last one

        async def consumer() -> None:
            while len(handled) < 3:
                await signals.receive()
                while items:
                    handled.append(items.pop(0))
                    if not fixed:
                        break

        async with trio.open_nursery() as nursery:
            for task in (ring, consumer, producer):
                nursery.start_soon(task)

    return main


def stop_behind_backlog(*, fixed: bool = False) -> Program:
    """A stop comes into the mailbox behind all the jobs that came before it, and the actor works through them."""

    async def main() -> None:
        to_actor, mailbox = trio.open_memory_channel[str](20)
        stop, after_stop = trio.Event(), list[str]()

        async def producer() -> None:
            for _ in range(8):
                await work(2)
                await to_actor.send("job")

        async def person() -> None:
            await work(24)
            stop.set()
            await to_actor.send("stop")  # race: behind how many jobs

        async def actor() -> None:
            async for message in mailbox:
                if message == "stop" or (fixed and stop.is_set()):
                    return
                if stop.is_set():
                    after_stop.append(message)
                await work(1)

        async with trio.open_nursery() as nursery:
            for task in (producer, person, actor):
                nursery.start_soon(task)
        assert len(after_stop) < 3, "a stop waited behind the backlog"

    return main
