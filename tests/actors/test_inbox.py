"""What an actor may rely on when it reads, and what its askers may rely on when it ends with letters in hand."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import ActorStopped, Cell, Mailbox, Restart
from kesoku_actors.actors.testing import Crash, Echo, Keep, Probe, running


async def _ask_into(answers: list[object], mailbox: Mailbox[int], number: int) -> None:
    try:
        answers.append(await mailbox.ref.ask(number, timeout_s=None))
    except ActorStopped as stopped:
        answers.append(stopped)


async def test_batch_holds_everything_that_waits_up_to_its_limit() -> None:
    sizes: list[int] = []
    mailbox = Mailbox[int]("batching")
    for number in range(150):
        mailbox.ref.tell_nowait(number)

    async def batching(cell: Cell[int]) -> None:
        cell.started()
        async for batch in cell.inbox.batches(limit=64):
            sizes.append(len(batch))

    async with running(Probe("batching").spec(start=batching, mailbox=mailbox)):
        await wait_all_tasks_blocked()
        mailbox.ref.tell_nowait(0)
        await wait_all_tasks_blocked()
    assert sizes == [64, 64, 22, 1]


async def test_batch_leaves_out_letters_whose_asker_has_left(autojump_clock: trio.testing.MockClock) -> None:
    batches: list[list[int]] = []
    mailbox = Mailbox[int]("batching")

    async def batching(cell: Cell[int]) -> None:
        cell.started()
        async for batch in cell.inbox.batches():
            batches.append([letter.message for letter in batch])

    with trio.move_on_after(1):
        await mailbox.ref.ask(1)
    mailbox.ref.tell_nowait(2)
    with trio.move_on_after(1):
        await mailbox.ref.ask(3)
    async with running(Probe("batching").spec(start=batching, mailbox=mailbox)):
        await wait_all_tasks_blocked()
    assert batches == [[2]]


@pytest.mark.parametrize("how", ["crash", "return", "cancel"])
async def test_end_with_a_batch_in_hand_strands_no_asker(
    how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    answers: list[object] = []
    mailbox = Mailbox[int]("batching")

    async def batching(cell: Cell[int]) -> None:
        cell.started()
        async for batch in cell.inbox.batches():
            if len(batch) > 1:
                batch[1].reply("answered before the end")
                if how == "crash":
                    raise ValueError("in the middle of a batch")
                if how == "return":
                    return
                await trio.sleep_forever()

    for number in range(5):
        nursery.start_soon(_ask_into, answers, mailbox, number)
    await wait_all_tasks_blocked()
    async with running(Probe("batching").spec(start=batching, mailbox=mailbox, restart=Restart.TRANSIENT)):
        await wait_all_tasks_blocked()
    assert len(answers) == 5
    assert answers.count("answered before the end") == 1
    assert sum(isinstance(answer, ActorStopped) for answer in answers) == 4


async def test_ask_kept_for_later_is_answered_by_the_crash(nursery: trio.Nursery) -> None:
    probe = Probe("keeper")
    async with running(probe.spec()):
        stopped = trio.Event()

        async def ask() -> None:
            with pytest.raises(ActorStopped):
                await probe.ref.ask(Keep(), timeout_s=None)
            stopped.set()

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert probe.mailbox.statistics().unanswered == 1
        await probe.crash()
        await stopped.wait()
        probe.kept[0].reply("from the grave")
        assert await probe.ref.ask(Echo(1)) == 1


async def test_letters_not_handed_out_meet_the_next_life(nursery: trio.Nursery) -> None:
    probe = Probe("phoenix")
    answers: list[object] = []

    async def ask(number: int) -> None:
        answers.append(await probe.ref.ask(Echo(number)))

    probe.ref.tell_nowait(Crash(ValueError("first")))
    for number in range(3):
        nursery.start_soon(ask, number)
    await wait_all_tasks_blocked()
    probe.ref.tell_nowait(Crash(ValueError("second")))
    nursery.start_soon(ask, 3)
    async with running(probe.spec()):
        await probe.wait_lives(3)
        await wait_all_tasks_blocked()
    assert sorted(answers, key=str) == [0, 1, 2, 3]


async def test_two_tasks_may_read_one_inbox(nursery: trio.Nursery) -> None:
    seen: list[int] = []
    mailbox = Mailbox[int]("shared")

    async def shared(cell: Cell[int]) -> None:
        async def read() -> None:
            async for letter in cell.inbox:
                seen.append(letter.message)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as readers:
            readers.start_soon(read)
            readers.start_soon(read)
            cell.started()

    async with running(Probe("shared").spec(start=shared, mailbox=mailbox)):
        for number in range(100):
            await mailbox.ref.tell(number)
        await wait_all_tasks_blocked()
    assert sorted(seen) == list(range(100))


async def test_two_children_on_one_mailbox_are_refused() -> None:
    probe = Probe("one")
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery(), running(probe.spec(), probe.spec(id="two")):
            pass
    assert "read by an actor already" in repr(caught.value.exceptions[0])


def test_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Mailbox[int]("any").open_inbox().batches(limit=0)
