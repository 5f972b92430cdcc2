"""What a sender may rely on: tell, tell_nowait, ask."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kesoku_actors.actors import ActorStopped, AskTimeout, Cell, Letter, Mailbox, MailboxFull, Restart
from kesoku_actors.actors.testing import Crash, Echo, Finish, Keep, Probe, running


async def test_ask_returns_what_the_actor_replied() -> None:
    probe = Probe("echo")
    async with running(probe.spec()):
        assert await probe.ref.ask(Echo("hello")) == "hello"
        assert await probe.ref.ask(Echo(None), timeout_s=None) is None


async def test_ask_raises_what_the_actor_refused_with() -> None:
    async def judge(cell: Cell[str]) -> None:
        cell.started()
        async for letter in cell.inbox:
            letter.refuse(LookupError(letter.message))

    mailbox = Mailbox[str]("judge")
    async with running(Probe("judge").spec(start=judge, mailbox=mailbox)):
        with pytest.raises(LookupError, match="nothing here"):
            await mailbox.ref.ask("nothing here")


async def test_letters_keep_the_order_in_which_they_were_sent(nursery: trio.Nursery) -> None:
    seen: list[int] = []

    async def reader(cell: Cell[int]) -> None:
        cell.started()
        async for letter in cell.inbox:
            seen.append(letter.message)

    mailbox = Mailbox[int]("reader", capacity=3)
    for number in range(3):
        mailbox.ref.tell_nowait(number)
    for number in range(3, 200):
        nursery.start_soon(mailbox.ref.tell, number)
        await wait_all_tasks_blocked()
    async with running(Probe("reader").spec(start=reader, mailbox=mailbox)):
        await wait_all_tasks_blocked()
    assert seen == list(range(200))


async def test_tell_nowait_to_a_full_mailbox_raises_and_sends_nothing() -> None:
    mailbox = Mailbox[str]("full", capacity=1)
    mailbox.ref.tell_nowait("first")
    with pytest.raises(MailboxFull) as caught:
        mailbox.ref.tell_nowait("second")
    assert (caught.value.name, caught.value.capacity) == ("full", 1)
    assert mailbox.statistics().waiting == 1


async def test_tell_waits_for_room(nursery: trio.Nursery) -> None:
    probe = Probe("slow", capacity=1)
    probe.ref.tell_nowait(Echo(1))
    sent = trio.Event()

    async def send() -> None:
        await probe.ref.tell(Echo(2))
        sent.set()

    nursery.start_soon(send)
    await wait_all_tasks_blocked()
    assert not sent.is_set()
    async with running(probe.spec()):
        await sent.wait()


async def test_cancelled_tell_sends_nothing() -> None:
    mailbox = Mailbox[str]("any", capacity=1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.ref.tell("never")
    assert scope.cancelled_caught
    mailbox.ref.tell_nowait("first")
    with trio.move_on_after(0) as scope:
        await mailbox.ref.tell("never either")
    assert scope.cancelled_caught
    assert mailbox.statistics().waiting == 1


async def test_a_flood_of_tells_lets_others_run_once_the_mailbox_is_full(
    autojump_clock: trio.testing.MockClock,
) -> None:
    probe = Probe("flooded", capacity=16)
    async with running(probe.spec()):
        with trio.move_on_after(1) as scope:
            while True:
                await probe.ref.tell(Echo(0))
                autojump_clock.jump(0.001)
    assert scope.cancelled_caught


async def test_a_flooded_actor_lets_others_run(nursery: trio.Nursery) -> None:
    turns: list[str] = []
    mailbox = Mailbox[int]("flooded", capacity=1000)
    for number in range(1000):
        mailbox.ref.tell_nowait(number)

    async def reader(cell: Cell[int]) -> None:
        cell.started()
        async for _letter in cell.inbox:
            turns.append("actor")

    async def bystander() -> None:
        while len(turns) < 1000:
            turns.append("other")
            await trio.lowlevel.checkpoint()

    nursery.start_soon(bystander)
    async with running(Probe("flooded").spec(start=reader, mailbox=mailbox)):
        await wait_all_tasks_blocked()
    # The order within one pass of the loop changes, so two drains may stand side by side.
    runs = "".join("a" if turn == "actor" else " " for turn in turns).split()
    assert max(map(len, runs)) <= 128


async def test_ask_times_out_when_the_actor_does_not_answer(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("silent")
    async with running(probe.spec()):
        with pytest.raises(AskTimeout) as caught:
            await probe.ref.ask(Keep(), timeout_s=3)
        assert caught.value.taken
        assert trio.current_time() == 3
        [letter] = probe.kept
        assert not letter.wants_reply
        letter.reply("too late")
        letter.refuse(ValueError("too late"))
        assert await probe.ref.ask(Echo("still well")) == "still well"
        assert probe.mailbox.statistics().unanswered == 0


async def test_ask_timed_out_before_it_was_read_has_no_effect(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("late")
    with pytest.raises(AskTimeout) as caught:
        await probe.ref.ask(Crash(ValueError("must not be read")), timeout_s=1)
    assert not caught.value.taken
    async with running(probe.spec()):
        assert await probe.ref.ask(Echo(1)) == 1
    assert probe.lives == 1


async def test_ask_waits_for_room_within_its_deadline(autojump_clock: trio.testing.MockClock) -> None:
    probe = Probe("crowded", capacity=1)
    probe.ref.tell_nowait(Echo(0))
    with pytest.raises(AskTimeout) as caught:
        await probe.ref.ask(Echo(1), timeout_s=2)
    assert not caught.value.taken
    assert trio.current_time() == 2
    assert probe.mailbox.statistics().waiting == 1


async def test_ask_that_waited_for_room_gets_its_answer(nursery: trio.Nursery) -> None:
    probe = Probe("crowded", capacity=1)
    answers: list[int] = []

    async def ask(number: int) -> None:
        answers.append(await probe.ref.ask(Echo(number)))

    for number in range(10):
        nursery.start_soon(ask, number)
    await wait_all_tasks_blocked()
    async with running(probe.spec()):
        await wait_all_tasks_blocked()
    assert sorted(answers) == list(range(10))


async def test_cancelled_asker_leaves_a_harmless_letter(nursery: trio.Nursery) -> None:
    probe = Probe("patient")
    async with running(probe.spec()):
        with trio.CancelScope() as scope:
            nursery.start_soon(probe.ref.tell, Echo(0))
            async with trio.open_nursery() as askers:
                askers.start_soon(probe.ref.ask, Keep())
                await wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
        probe.kept[0].reply("nobody listens")
        assert await probe.ref.ask(Echo(1)) == 1


async def test_answer_in_the_moment_of_the_deadline_reaches_whoever_still_wanted_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    probe = Probe("tight")
    wanted: list[bool] = []
    answered: list[bool] = []

    async def ask() -> None:
        try:
            answered.append(await probe.ref.ask(Keep(), timeout_s=1) == "in time")
        except AskTimeout:
            answered.append(False)

    async def answer() -> None:
        await trio.sleep(1)
        wanted.append(probe.kept[-1].wants_reply)
        probe.kept[-1].reply("in time")

    async with running(probe.spec()):
        for _ in range(20):
            async with trio.open_nursery() as both:
                both.start_soon(ask)
                both.start_soon(answer)
    assert answered == wanted


async def test_first_answer_wins() -> None:
    letters: list[Letter[str]] = []

    async def hasty(cell: Cell[str]) -> None:
        cell.started()
        async for letter in cell.inbox:
            letters.append(letter)
            letter.reply("first")
            letter.refuse(ValueError("second"))
            letter.reply("third")

    mailbox = Mailbox[str]("hasty")
    async with running(Probe("hasty").spec(start=hasty, mailbox=mailbox)):
        assert await mailbox.ref.ask("?") == "first"


async def test_reply_to_a_tell_does_nothing() -> None:
    probe = Probe("echo")
    async with running(probe.spec()):
        await probe.ref.tell(Keep())
        await wait_all_tasks_blocked()
        [letter] = probe.kept
        assert not letter.wants_reply
        letter.reply(1)
        letter.refuse(ValueError("nobody hears"))
        assert await probe.ref.ask(Echo(2)) == 2


async def test_letter_may_be_answered_later_by_another_task(nursery: trio.Nursery) -> None:
    async def delegating(cell: Cell[int]) -> None:
        async def work(letter: Letter[int]) -> None:
            await trio.lowlevel.checkpoint()
            letter.reply(letter.message * 2)

        async with trio.open_nursery() as helpers:
            cell.started()
            async for letter in cell.inbox:
                helpers.start_soon(work, letter)

    mailbox = Mailbox[int]("delegating")
    async with running(Probe("delegating").spec(start=delegating, mailbox=mailbox)):
        assert await mailbox.ref.ask(21) == 42


@pytest.mark.parametrize("capacity", [1, 8])
async def test_letter_may_be_passed_on_as_a_message(capacity: int, nursery: trio.Nursery) -> None:
    async def answering(cell: Cell[Letter[int]]) -> None:
        cell.started()
        async for letter in cell.inbox:
            letter.message.reply(letter.message.message + 1)
            letter.reply("done")

    async def passing(cell: Cell[int]) -> None:
        cell.started()
        async for letter in cell.inbox:
            await behind.ref.tell(letter)

    front, behind = Mailbox[int]("front", capacity), Mailbox[Letter[int]]("behind", capacity)
    answers: list[int] = []

    async def ask(number: int) -> None:
        answers.append(await front.ref.ask(number))

    async with running(
        Probe("behind").spec(start=answering, mailbox=behind), Probe("front").spec(start=passing, mailbox=front)
    ):
        for number in range(6):
            nursery.start_soon(ask, number)
        await wait_all_tasks_blocked()
    assert sorted(answers) == [1, 2, 3, 4, 5, 6]


async def test_asker_of_an_actor_that_crashes_may_ask_the_next_life() -> None:
    probe = Probe("phoenix")
    async with running(probe.spec()):

        async def ask() -> None:
            with pytest.raises(ActorStopped) as told:
                await probe.ref.ask(Keep())
            assert not told.value.for_good
            assert await probe.ref.ask(Echo("again")) == "again"

        async with trio.open_nursery() as asking:
            asking.start_soon(ask)
            await wait_all_tasks_blocked()
            await probe.crash()


async def test_senders_to_an_actor_gone_for_good_get_actor_stopped() -> None:
    probe = Probe("once")
    async with running(probe.spec(restart=Restart.TEMPORARY)):
        await probe.finish()
        await wait_all_tasks_blocked()
        with pytest.raises(ActorStopped, match="will not run again") as told:
            await probe.ref.ask(Echo(1))
        assert told.value.for_good
        with pytest.raises(ActorStopped):
            await probe.ref.tell(Echo(1))
        with pytest.raises(ActorStopped):
            probe.ref.tell_nowait(Echo(1))
        assert probe.ref.statistics().closed


async def test_whoever_waits_when_the_actor_goes_for_good_is_told(nursery: trio.Nursery) -> None:
    probe = Probe("once", capacity=2)
    told: list[str] = []

    async def send(kind: str) -> None:
        with pytest.raises(ActorStopped):
            await (probe.ref.ask(Echo(kind)) if kind == "ask" else probe.ref.tell(Echo(kind)))
        told.append(kind)

    probe.ref.tell_nowait(Finish())
    for kind in ("ask", "ask", "tell", "tell"):  # one is queued, three wait for room
        nursery.start_soon(send, kind)
        await wait_all_tasks_blocked()
    async with running(probe.spec(restart=Restart.TRANSIENT)):
        await wait_all_tasks_blocked()
        assert sorted(told) == ["ask", "ask", "tell", "tell"]


def test_mailbox_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Mailbox[str]("none", capacity=0)


async def test_an_answer_asked_for_without_waiting_is_heard_unless_its_asker_left() -> None:
    heard: list[object] = []

    def hear(answer: object, error: Exception | None) -> None:
        heard.append(answer if error is None else type(error))

    probe = Probe("echo")
    async with running(probe.spec()):
        probe.ref.ask_nowait(Echo("first"), hear)
        leave = probe.ref.ask_nowait(Echo("second"), hear)
        leave()
        await probe.ref.ask(Echo("third"))
        assert heard == ["first"]
        probe.ref.ask_nowait(Keep(), hear)
        await wait_all_tasks_blocked()
        await probe.crash()
        await wait_all_tasks_blocked()
        assert heard == ["first", ActorStopped]


async def test_who_asks_without_waiting_is_told_at_once_that_there_is_no_room() -> None:
    mailbox = Mailbox[str]("full", capacity=1)
    heard: list[object] = []
    mailbox.ref.ask_nowait("first", lambda *answer: heard.append(answer))
    with pytest.raises(MailboxFull):
        mailbox.ref.ask_nowait("second", lambda *answer: heard.append(answer))
    assert mailbox.statistics().waiting == 1
    assert heard == []
