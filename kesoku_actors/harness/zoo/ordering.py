"""Planted bugs of order: between messages, between a snapshot and what follows it, and within a batch."""

from __future__ import annotations

import trio

from kesoku_actors.harness.zoo.scenery import Program, emptied, ring, work


def reply_stored_first(*, fixed: bool = False) -> Program:
    """Two writers are given rows by turns, and a reply is stored before its question."""

    async def main() -> None:
        ways = [trio.open_memory_channel[str](4) for _ in range(1 if fixed else 2)]
        rows: list[str] = []

        async def writer(mailbox: trio.MemoryReceiveChannel[str]) -> None:
            async for row in mailbox:
                await work(2)  # race: the other writer may be quicker
                rows.append(row)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            for _, mailbox in ways:
                nursery.start_soon(writer, mailbox)
            for number, row in enumerate(("question", "reply")):
                await ways[number % len(ways)][0].send(row)
                await work(5)
            for sender, _ in ways:
                sender.close()
        assert rows == ["question", "reply"], "the reply stands before its question"

    return main


def old_model(*, fixed: bool = False) -> Program:
    """The switch of the model and the question go to two actors, and the question is answered by the old model."""

    async def main() -> None:
        to_switcher, switches = trio.open_memory_channel[str](1)
        to_answerer, questions = trio.open_memory_channel[trio.Event](1)
        model, answered_by, switched = ["small"], list[str](), trio.Event()

        async def switcher() -> None:
            async for name in switches:
                await work(2)
                model[0] = name  # race: the question may have come to its actor already
                switched.set()

        async def answerer() -> None:
            async for thought in questions:
                await work(3)
                answered_by.append(model[0])
                thought.set()

        async with trio.open_nursery() as nursery:
            for actor in (ring, switcher, answerer):
                nursery.start_soon(actor)
            async with to_switcher, to_answerer:
                await to_switcher.send("large")
                if fixed:
                    await switched.wait()
                await to_answerer.send(trio.Event())
        assert answered_by == ["large"], "the old model answered"

    return main


def update_before_creation(*, fixed: bool = False) -> Program:
    """A paper is created by way of a clerk and updated directly; the update comes to the index first."""

    async def main() -> None:
        to_clerk, papers = trio.open_memory_channel[str](4)
        to_index, changes = trio.open_memory_channel[tuple[str, str]](4)
        updated: list[str] = []

        async def author(direct: trio.MemorySendChannel[tuple[str, str]]) -> None:
            async with to_clerk, direct:
                await to_clerk.send("paper")
                await work(4)
                await direct.send(("update", "paper"))  # race: with what the clerk passes on

        async def clerk() -> None:
            async with to_index:
                async for paper in papers:
                    await work(1)
                    await to_index.send(("create", paper))

        async def index() -> None:
            known, early = set[str](), set[str]()
            async for kind, paper in changes:
                if kind == "create":
                    known.add(paper)
                elif fixed and paper not in known:
                    early.add(paper)
                else:
                    assert paper in known, "a paper was updated before it was created"
                    updated.append(paper)
            updated.extend(early & known)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring)
            nursery.start_soon(author, to_index.clone())
            nursery.start_soon(clerk)
            nursery.start_soon(index)
        assert updated == ["paper"]

    return main


def snapshot_then_subscribe(*, fixed: bool = False) -> Program:
    """A viewer reads the state and subscribes afterwards: what is published between the two it never sees."""

    async def main() -> None:
        state, mailboxes = [0], list[trio.MemorySendChannel[int]]()
        to_viewer, news = trio.open_memory_channel[int](9)
        shown: list[int] = []

        async def publisher() -> None:
            for number in (1, 2, 3):
                await work(5)
                state[0] = number  # race: between the viewer's look and its subscription
                for mailbox in mailboxes:
                    mailbox.send_nowait(number)

        async def viewer() -> None:
            await work(7)
            if fixed:
                mailboxes.append(to_viewer)
            shown.append(state[0])
            await work(1)
            if not fixed:
                mailboxes.append(to_viewer)

        async with trio.open_nursery() as nursery:
            for task in (ring, publisher, viewer):
                nursery.start_soon(task)
        shown += emptied(news)
        assert shown == list(range(shown[0], 4)), "an event was missed"

    return main


def history_then_live(*, fixed: bool = False) -> Program:
    """A follower gets the live events while it reads the history, and tells twice what is in both."""

    async def main() -> None:
        history, told = list[int](), list[int]()
        to_follower, live = trio.open_memory_channel[int](9)
        follows = trio.Event()

        async def author() -> None:
            for number in range(4):
                history.append(number)
                if follows.is_set():
                    await to_follower.send(number)
                await work(2)
            to_follower.close()

        async def follower() -> None:
            await work(4)
            follows.set()
            await work(1)  # race: what is written here is in the history, and comes live too
            told.extend(history)
            async for number in live:
                if fixed and number in told:
                    continue
                told.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower)
            nursery.start_soon(author)
        assert told == [0, 1, 2, 3], "an event was told twice"

    return main


def mixed_batches(*, fixed: bool = False) -> Program:
    """Two writers put their batches into one journal, row by row, and one batch stands within the other."""

    async def main() -> None:
        journal, turn = list[str](), trio.Lock()

        async def write_batch(name: str, *, after: int) -> None:
            await work(after)
            if fixed:
                await turn.acquire()
            for row in ("begin", "row", "end"):
                journal.append(f"{name} {row}")
                await work(1)  # race: the other writer may put its rows here
            if fixed:
                turn.release()

        async def early() -> None:
            await write_batch("a", after=0)

        async def late() -> None:
            await write_batch("b", after=9)

        async with trio.open_nursery() as nursery:
            for task in (ring, early, late):
                nursery.start_soon(task)
        owners = [row[0] for row in journal]
        assert owners in (sorted(owners), sorted(owners, reverse=True)), "one batch stands within another"

    return main


def half_transfer(*, fixed: bool = False) -> Program:
    """A transfer takes from one account and is interrupted before it gives to the other."""

    async def main() -> None:
        accounts, turn = {"a": 3, "b": 0}, trio.CancelScope()

        async def mover() -> None:
            with turn:
                for _ in range(3):
                    await work(3)
                    with trio.CancelScope(shield=fixed):
                        accounts["a"] -= 1
                        await work(1)  # race: the person may interrupt here
                        accounts["b"] += 1

        async def person() -> None:
            await work(15)
            turn.cancel()

        async with trio.open_nursery() as nursery:
            for task in (ring, mover, person):
                nursery.start_soon(task)
        assert sum(accounts.values()) == 3, "money was lost in a transfer"

    return main
