"""Planted bugs that sampling does not hit: a task must stand still, for long, at the one step that matters.

Three shapes. In the *nested* ones a first task is caught between its check and its act, for as long as a second one
needs to come between its own look and its own act. In the *redundant* ones two parties, each of which would be enough,
are caught in their gaps together. In the *crowded* ones somebody has begun before each of thirty others takes a step,
and goes on only when they have all given up. A priority schedule of depth 3 must put both of its changes on single
steps, or its highest priority on one task of many and a change on one step.
"""

from __future__ import annotations

from contextlib import suppress

import trio

from kesoku_actors.harness.zoo.scenery import Program, emptied, ring, work


def compaction_under_old_lease(*, fixed: bool = False) -> Program:
    """A writer whose lease has passed to the compactor appends, between the compactor's reading and its replacing."""

    async def main() -> None:
        log, acknowledged, lease = ["old"], list[str](), ["writer"]

        async def writer() -> None:
            await work(2)
            if lease[0] != "writer":
                return
            if not fixed:
                await work(1)  # race: the lease may pass to the compactor
            log.append("new")
            acknowledged.append("new")

        async def compactor() -> None:
            await work(20)
            lease[0] = "compactor"
            kept = sorted(log)
            await work(1)  # race: what is appended here is thrown away
            log[:] = kept

        async with trio.open_nursery() as nursery:
            for task in (ring, writer, compactor):
                nursery.start_soon(task)
        assert set(acknowledged) <= set(log), "an acknowledged row was compacted away"

    return main


def message_in_the_last_gap(*, fixed: bool = False) -> Program:
    """A door is shut, its mailbox is swept up and then closed; a letter slips in before the closing."""

    async def main() -> None:
        to_house, mailbox = trio.open_memory_channel[int](9)
        accepted, swept, shut = list[int](), list[int](), trio.Event()

        async def door() -> None:
            for letter in range(2):
                await work(2)
                if shut.is_set():
                    return
                await work(1)  # race: the door may be shut and the mailbox be swept
                try:
                    to_house.send_nowait(letter)
                except trio.BrokenResourceError:
                    return
                accepted.append(letter)

        async def closer() -> None:
            await work(24)
            shut.set()
            swept.extend(emptied(mailbox))
            if not fixed:
                await work(1)  # race: what comes here is accepted, and not swept
            mailbox.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring, 2, 6)
            for task in (door, closer):
                nursery.start_soon(task)
        assert swept == accepted, "an accepted letter was not swept up"

    return main


def both_viewers_in_the_gap(*, fixed: bool = False) -> Program:
    """Of two viewers one is enough, and every event tells the whole state; both subscribe when the last was told."""

    async def main() -> None:
        state, shown, followers = [0], dict[str, int](), list[str]()

        async def publisher() -> None:
            for number in range(1, 16):
                await work(1)
                state[0] = number
                shown.update(dict.fromkeys(followers, number))

        async def viewer(name: str) -> None:
            await work(2)
            if fixed:
                followers.append(name)
            shown[name] = state[0]
            await work(1)  # race: all the rest may be told here
            if not fixed:
                followers.append(name)

        async with trio.open_nursery() as nursery:
            for task in (ring, publisher):
                nursery.start_soon(task)
            for name in ("viewer", "spare"):
                nursery.start_soon(viewer, name)
        assert max(shown.values()) == 15, "both viewers show an old state"

    return main


def both_copies_torn(*, fixed: bool = False) -> Program:
    """A reader takes the copy that is whole, and there are two; both are being written."""

    async def main() -> None:
        copies = [{"head": 0, "body": 0} for _ in range(2)]

        async def writer(number: int, after: int) -> None:
            await work(after)
            copies[number]["head"] = 1
            if not fixed:
                await work(1)  # race: the reader may come, and the other copy be torn too
            copies[number]["body"] = 1

        async def reader() -> None:
            await work(44)
            assert any(copy["head"] == copy["body"] for copy in copies), "both copies were torn"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring, 3, 4)
            nursery.start_soon(writer, 0, 2)
            nursery.start_soon(writer, 1, 22)
            nursery.start_soon(reader)

    return main


def both_waiters_in_the_gap(*, fixed: bool = False) -> Program:
    """Two workers wait for one job; both have found none and are not yet in the line when it is posted."""

    async def main() -> None:
        jobs, line = list[str](), list[trio.Event]()
        is_taken = trio.Event()

        async def worker(after: int) -> None:
            await work(after)
            if not jobs and not is_taken.is_set():
                if not fixed:
                    await work(1)  # race: the job may be posted, and nobody be woken
                if is_taken.is_set():
                    return
                woken = trio.Event()
                line.append(woken)
                await woken.wait()
            if jobs:
                jobs.pop()
                is_taken.set()

        async def poster() -> None:
            await work(52)
            jobs.append("job")
            if line:
                line[0].set()
            await is_taken.wait()
            for woken in line:
                woken.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker, 4)
            nursery.start_soon(worker, 28)
            nursery.start_soon(poster)

    return main


def both_interrupted(*, fixed: bool = False) -> Program:
    """A message is given to two workers, so that one may be interrupted; both are, with the message in hand."""

    async def main() -> None:
        boxes, stored = [["mail"], ["mail"]], set[str]()
        turns = [trio.CancelScope(), trio.CancelScope()]

        async def worker(box: list[str], turn: trio.CancelScope, after: int) -> None:
            with turn:
                await work(after)
                mail = box.pop()
                with trio.CancelScope(shield=fixed):
                    await work(1)  # race: the interruption may come, and find the other here too
                    stored.add(mail)

        async def person() -> None:
            await work(46)
            for turn in turns:
                turn.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ring, 2, 6)
            for box, turn, after in zip(boxes, turns, (2, 22), strict=True):
                nursery.start_soon(worker, box, turn, after)
            nursery.start_soon(person)
        assert stored or any(boxes), "both copies of a message were lost"

    return main


def everybody_asks(*, fixed: bool = False) -> Program:
    """Three actors join by turns, look whether they are asked, and ask the next one; all look before any asks."""

    async def main() -> None:
        ways, joined = [trio.open_memory_channel[int](0) for _ in range(3)], list[int]()

        async def ask(mine: int) -> None:
            with suppress(trio.BrokenResourceError):
                await ways[(mine + 1) % 3][0].send(mine)

        async def answer(mine: int) -> None:
            with suppress(trio.EndOfChannel):
                await ways[mine][1].receive()

        async def actor(mine: int, after: int) -> None:
            await work(after)
            async with ways[(mine + 1) % 3][0], ways[mine][1]:
                if len(joined) != mine:
                    return
                joined.append(mine)
                if ways[mine][1].statistics().tasks_waiting_send:
                    await answer(mine)
                    await ask(mine)
                    return
                await work(1)  # race: the others may look and find nothing, too
                async with trio.open_nursery() as at_once:
                    if fixed:
                        at_once.start_soon(ask, mine)
                    else:
                        await ask(mine)
                    await answer(mine)

        async with trio.open_nursery() as nursery:
            for mine, after in enumerate((2, 20, 38)):
                nursery.start_soon(actor, mine, after)

    return main


def registrar_clears_late(*, fixed: bool = False) -> Program:
    """Thirty workers announce themselves five times, so that no one announcement matters; the registrar opens its
    door before it clears its book, and all of them are forgotten."""

    async def main() -> None:
        book, turned_away, is_open = set[int](), list[int](), [False]

        async def registrar() -> None:
            is_open[0] = True
            if not fixed:
                await work(1)  # race: all of the announcements may come here
            book.clear()

        async def worker(number: int) -> None:
            for _ in range(5):
                if is_open[0]:
                    book.add(number)
                else:
                    turned_away.append(number)
                await work(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(registrar)
            for number in range(30):
                nursery.start_soon(worker, number)
        assert book or turned_away, "everybody was forgotten"

    return main


def promised_refill(*, fixed: bool = False) -> Program:
    """A steward promises to refill, so that none of forty clients does; all have given up when it is done."""

    async def main() -> None:
        permits, served = [0], [0]
        is_promised = trio.Event()

        async def steward() -> None:
            is_promised.set()
            if not fixed:
                await work(1)  # race: everybody may lose patience
            permits[0] += 40

        async def client() -> None:
            is_served = False
            for _ in range(26):
                if permits[0] and not is_served:
                    permits[0] -= 1
                    served[0] += 1
                    is_served = True
                elif not is_promised.is_set():
                    permits[0] += 1
                await work(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(steward)
            for _ in range(40):
                nursery.start_soon(client)
        assert served[0], "a promised refill came for nobody"

    return main


def changes_its_mind(*, fixed: bool = False) -> Program:
    """Seven requests come, each more urgent than all before it, and the dispatcher changes its mind seven times."""

    async def main() -> None:
        favourite, changes = [99], [0]

        async def request(rank: int) -> None:
            await work(1)
            if rank < favourite[0] and not (fixed and changes[0] == 3):  # race: all may come in the one bad order
                favourite[0] = rank
                changes[0] += 1

        async with trio.open_nursery() as nursery:
            for rank in range(7):
                nursery.start_soon(request, rank)
        assert changes[0] < 7, "the dispatcher changed its mind each time"

    return main
