"""How an actor is asked to stop, cancelled, and what it is given."""

import math

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import ActorStopped, Cell, Mailbox, SystemFailed
from kesoku_actors.actors.testing import Echo, MemoryLog, Probe, running


async def test_stop_request_lets_an_actor_finish_what_it_has_in_hand(autojump_clock: trio.testing.MockClock) -> None:
    done: list[str] = []

    async def careful(cell: Cell[str]) -> None:
        cell.started()
        async for letter in cell.inbox:
            await trio.sleep(3)
            done.append(letter.message)

    mailbox = Mailbox[str]("careful")
    async with running(Probe("careful").spec(start=careful, mailbox=mailbox, shutdown_s=4)):
        mailbox.ref.tell_nowait("in hand")
        mailbox.ref.tell_nowait("queued")
        await trio.sleep(1)
    assert done == ["in hand"]
    assert trio.current_time() == 3


async def test_stop_request_ends_a_loop_over_batches(autojump_clock: trio.testing.MockClock) -> None:
    ends: list[float] = []

    async def batching(cell: Cell[str]) -> None:
        cell.started()
        async for _batch in cell.inbox.batches():
            await trio.sleep(1)
        ends.append(trio.current_time())

    mailbox = Mailbox[str]("batching")
    async with running(Probe("batching").spec(start=batching, mailbox=mailbox)):
        await mailbox.ref.tell("one")
    assert ends == [1]


async def test_asks_still_queued_at_the_stop_are_answered(nursery: trio.Nursery) -> None:
    probe = Probe("stopping")
    refused = trio.Event()

    async def ask() -> None:
        with pytest.raises(ActorStopped):
            await probe.ref.ask(Echo(1))
        refused.set()

    async def busy(cell: Cell[object]) -> None:
        cell.started()
        await cell.stopping.wait()

    async with running(probe.spec(start=busy)):
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
    await refused.wait()


async def test_actor_that_overruns_its_grace_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    probe, log = Probe("lingering"), MemoryLog()
    probe.lingers = True
    async with running(probe.spec(shutdown_s=7), log=log):
        pass
    assert trio.current_time() == 7
    assert log.paths("child_cancelled") == ["test/lingering"]


async def test_actor_without_inbox_waits_for_the_stop_request(autojump_clock: trio.testing.MockClock) -> None:
    async def waiting(cell: Cell[object]) -> None:
        cell.started()
        await cell.stopping.wait()
        await trio.sleep(2)

    async with running(Probe("waiting").spec(start=waiting, mailbox=None, shutdown_s=math.inf)):
        pass
    assert trio.current_time() == 2


async def test_cancelling_the_program_still_gives_every_actor_its_grace(autojump_clock: trio.testing.MockClock) -> None:
    done: list[str] = []

    async def tool(cell: Cell[object]) -> None:
        cell.started()
        await trio.sleep(3)
        done.append("not cut off")

    with trio.move_on_after(1) as scope:
        async with running(Probe("tool").spec(start=tool, mailbox=None)):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert done == ["not cut off"]
    assert trio.current_time() == 3


async def test_cell_knows_its_place_and_its_own_ref() -> None:
    seen: list[object] = []

    async def curious(cell: Cell[object]) -> None:
        seen.extend([cell.name, cell.path, cell.ref])
        cell.started()
        cell.started()
        await cell.stopping.wait()

    mailbox = Mailbox[object]("address")
    async with running(Probe("curious").spec(start=curious, mailbox=mailbox)):
        assert seen[:3] == ["curious", "test/curious", mailbox.ref]


@pytest.mark.parametrize("what", ["inbox", "ref"])
async def test_cell_without_mailbox_says_so(what: str) -> None:
    async def mistaken(cell: Cell[object]) -> None:
        getattr(cell, what)

    with pytest.raises(SystemFailed, match="names no mailbox"):
        async with running(Probe("mistaken").spec(start=mistaken, mailbox=None)):
            pass
