"""Epochs, workers and what they leave (C2, C3, I6)."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import SYSTEM, BusyMode, Channel, Inbound, Message, Outcome, Reason, Role, Status, Type
from kesoku_actors.store import (
    BeginEpoch,
    CallProcess,
    CallStarted,
    Commit,
    DeadCall,
    GiveBack,
    Post,
    Posted,
    RefusalReason,
    Refused,
    RegisterWorker,
    Rules,
    StoreFault,
    WorkerKey,
)
from tests.store.home import ROOM, Home, cut, done, living, saying, step, take


def is_stale(reply: object) -> bool:
    return isinstance(reply, Refused) and reply.reason is RefusalReason.STALE


async def test_c2_only_the_registered_worker_commits(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        for other in (evolve(key, worker=key.worker + 1), evolve(key, epoch=key.epoch - 1)):
            assert is_stale(await home.commit(other, claim=take(message)))
        await home.stand(key, claim=take(message))


async def test_c2_a_worker_that_was_replaced_commits_nothing_more(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        next_key = await home.hire(key.session_id)
        assert is_stale(await home.commit(key, root, insert=(saying("hi"),), ends=(done(root),)))
        assert (await home.now(root)).status is Status.PENDING_AGENT
        assert is_stale(await home.commit(next_key, root))
        await home.stand(next_key, claim=take(root, Reason.RESUMED))


async def test_c2_a_turn_goes_back_whole_and_is_handed_to_the_next_worker(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        one, two, three = await home.say("1"), await home.say("2"), await home.say("3")
        key = await home.hire(one.session_id)
        await home.stand(key, claim=take(one), claim_adopts=(take(three), take(two)))
        rows = await home.store.give_back(GiveBack(key=key, clean=True))
        assert {row.id for row in rows} == {one.id, two.id, three.id}
        assert all(row.status is Status.PENDING_AGENT and row.root_id == one.id for row in rows)
        waits = await home.say("4")
        home.time.now += 7
        registered = await home.store.register(RegisterWorker(key=evolve(key, worker=99)))
        assert registered.returned == (one.id, three.id, two.id)
        assert registered.returned_began == home.time.now - 7
        assert [waiting.id for waiting in registered.waiting] == [waits.id]
        assert (registered.channel, registered.mode, registered.stops) == (ROOM, BusyMode.INTERRUPT, ())


async def test_i6_a_worker_is_told_who_waits_and_what_of_it_wakes(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        unsaid = Inbound(
            chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content="x", sender=SYSTEM, role=Role.SYSTEM
        )
        rows = [await home.say(), await home.ring(), await home.ring(wakes=False)]
        posted = await home.store.post(Post(id="p", inbound=unsaid))
        assert isinstance(posted, Posted)
        rows.append(posted.message)
        key = await home.hire(rows[0].session_id)
        waiting = (await home.store.register(RegisterWorker(key=key))).waiting
        assert [each.id for each in waiting] == [row.id for row in rows]
        assert [(each.is_person, each.wakes) for each in waiting] == [
            (True, True),
            (False, True),
            (False, False),
            (False, False),
        ]


async def test_a_turn_that_has_ended_is_handed_to_no_worker(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.answer(key, root)
        registered = await home.store.register(RegisterWorker(key=evolve(key, worker=99)))
        assert (registered.returned, registered.returned_began) == ((), None)


async def test_a_registration_tells_whether_there_is_a_history_to_read(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        for worker, has_history in ((97, False), (98, True), (99, True)):
            registered = await home.store.register(RegisterWorker(key=evolve(key, worker=worker)))
            history = await home.store.reader.history(message.session_id)
            assert registered.has_history is has_history is bool(history.messages)
            if not has_history:  # a message that ends without a turn is in the history too
                await home.stand(evolve(key, worker=worker), ends=(cut(message),))


async def test_o1_a_resumed_message_keeps_its_place(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        one, two = await home.say("one"), await home.say("two")
        key = await home.hire(one.session_id)
        await home.stand(key, claim=take(one), claim_adopts=(take(two, Reason.COLLECTED),))
        await home.stand(key, one, step=step(), insert=(saying("so far", Status.RESPONDED),))
        await home.store.give_back(GiveBack(key=key, clean=True))
        key = await home.hire(key.session_id)
        await home.stand(key, claim=take(one, Reason.RESUMED), claim_adopts=(take(two, Reason.RESUMED),))
        assert await home.contents(key.session_id) == ["one", "two", "so far"]


async def test_c2_a_returned_turn_comes_before_every_other_message(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        await home.store.give_back(GiveBack(key=key, clean=True))
        other = await home.say("other")
        key = await home.hire(key.session_id)
        reply = await home.commit(key, claim=take(other))
        assert isinstance(reply, Refused)
        assert reply.detail.startswith("C2:")


async def test_c2_attempts_rise_only_after_an_unclean_end_and_the_third_is_the_last(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "look")
        await home.store.call_started(CallStarted(call_id=call))
        rows: tuple[Message, ...] = ()
        for clean in (True, False, True, False, False):
            rows = await home.store.give_back(GiveBack(key=key, clean=clean))
            key = await home.hire(key.session_id)
            if not (await home.now(root)).has_ended:
                await home.stand(key, claim=take(root, Reason.RESUMED))
        now = await home.now(root)
        assert (now.status, now.metadata["reason"]) == (Status.ERROR, Reason.ATTEMPTS)
        assert now in rows
        result = next(
            row for row in (await home.reader.history(key.session_id)).messages if row.type is Type.TOOL_RESULT
        )
        assert (result.parent_id, result.metadata["outcome"]) == (call, Outcome.UNKNOWN)
        (notice,) = await home.reader.leaving(ROOM)
        assert (notice.role, notice.root_id) == (Role.SYSTEM, root.id)
        assert "3 attempts" in notice.content
        assert notice.metadata == {"reason": Reason.ATTEMPTS}


async def test_c2_after_a_turn_that_was_given_up_the_next_begins(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.store.give_back(GiveBack(key=key, clean=False, max_attempts=1))
        assert (await home.now(root)).status is Status.ERROR
        key, following = await home.begin("and this?")
        assert (await home.answer(key, following)).steps == 1


async def test_c2_a_returned_turn_is_taken_up_by_its_root_and_by_no_other_message(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        adopted = await home.say("and this")
        await home.stand(key, root, adopt=(take(adopted, Reason.STEERED),))
        await home.store.give_back(GiveBack(key=key, clean=True))
        key = await home.hire(key.session_id)
        reply = await home.commit(key, claim=take(adopted, Reason.RESUMED))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.INVALID


async def test_c2_a_stored_stop_wins_over_the_last_attempt(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        stop = await home.stop(key.session_id)
        await home.store.give_back(GiveBack(key=key, clean=False, max_attempts=1))
        now = await home.now(root)
        assert (now.status, now.metadata["reason"]) == (Status.INTERRUPTED, Reason.STOPPED)
        assert await home.reader.leaving(ROOM) == ()
        (told,) = home.published().stops
        assert (told.seq, told.done) == (stop.seq, True)


async def test_c2_giving_back_twice_or_by_a_stranger_does_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        stranger = evolve(key, worker=key.worker + 1)
        assert await home.store.give_back(GiveBack(key=stranger, clean=False)) == ()
        assert len(await home.store.give_back(GiveBack(key=key, clean=True))) == 1
        assert await home.store.give_back(GiveBack(key=key, clean=False)) == ()
        nobody = WorkerKey(session_id="nowhere", epoch=1, worker=1)
        assert await home.store.give_back(GiveBack(key=nobody, clean=True)) == ()


async def test_c7_a_commit_that_gives_back_unregisters_its_worker(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        reply = await home.stand(key, root, step=step(), give_back=True)
        assert [row.status for row in reply.rows] == [Status.PENDING_AGENT]
        assert is_stale(await home.commit(key, root))


async def test_c2_a_worker_replaced_without_a_word_was_an_attempt(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        for _ in range(2):
            key = await home.hire(key.session_id)
            await home.stand(key, claim=take(root, Reason.RESUMED))
        await home.hire(key.session_id)
        now = await home.now(root)
        assert (now.status, now.metadata["reason"]) == (Status.ERROR, Reason.ATTEMPTS)


async def test_c7_giving_back_in_order_is_no_attempt(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        for _ in range(3):
            await home.stand(key, root, give_back=True)
            key = await home.hire(key.session_id)
            await home.stand(key, claim=take(root, Reason.RESUMED))
        await home.store.give_back(GiveBack(key=key, clean=False, max_attempts=2))
        assert (await home.now(root)).status is Status.PENDING_AGENT


async def test_c7_an_epoch_begun_in_order_is_no_attempt(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        for _ in range(3):
            await home.new_epoch(clean=True)
            key = await home.hire(key.session_id)
            await home.stand(key, claim=take(root, Reason.RESUMED))
        await home.new_epoch(max_attempts=2)
        assert (await home.now(root)).status is Status.PENDING_AGENT


async def test_c2_what_was_claimed_is_known_after_a_restart_of_the_store(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
    async with living(tmp_path / "k.db", seed=1) as home:
        await home.stand(key, root, step=step())
    async with living(tmp_path / "k.db", seed=2) as home:
        assert await home.new_epoch() == (key.session_id,)
        assert (await home.now(root)).status is Status.PENDING_AGENT
        assert is_stale(await home.commit(key, root))


async def test_c2_a_commit_of_an_earlier_worker_sent_again_is_stale_once_the_next_has_committed(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        claim = Commit(id="claim", key=key, claim=take(message))
        first = await home.store.commit(claim)
        elsewhere = await home.say(channel=Channel(chatbot_id="bot", channel_id="elsewhere"))
        await home.stand(await home.hire(elsewhere.session_id), claim=take(elsewhere))
        assert await home.store.commit(claim) == first
        next_key = await home.hire(key.session_id)
        await home.stand(next_key, claim=take(message, Reason.RESUMED))
        assert is_stale(await home.store.commit(claim))


async def test_c2_a_new_epoch_takes_back_what_the_dead_held(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        assert await home.new_epoch() == (key.session_id,)
        assert (await home.now(root)).status is Status.PENDING_AGENT
        assert is_stale(await home.commit(key, root))
        with pytest.raises(StoreFault, match="C2"):
            await home.store.register(RegisterWorker(key=key))


async def test_c2_rows_of_other_channels_stay_as_they_are(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        elsewhere = Channel(chatbot_id="bot", channel_id="elsewhere")
        assert await home.new_epoch(channels=(elsewhere,)) == ()
        assert (await home.now(root)).status is Status.PROCESSING
        assert await home.new_epoch(channels=(elsewhere, ROOM)) == (key.session_id,)
        assert (await home.now(root)).status is Status.PENDING_AGENT


async def test_registering_again_is_answered_with_what_is_there_now(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        registered = await home.store.register(RegisterWorker(key=key))
        assert registered.returned == (root.id,)
        assert (await home.now(root)).status is Status.PROCESSING
        stop = await home.stop(key.session_id)
        assert (await home.store.register(RegisterWorker(key=key))).stops == (stop,)
        with pytest.raises(NotFound):
            await home.store.register(RegisterWorker(key=evolve(key, session_id="nowhere")))


async def test_c3_calls_started_in_an_earlier_life_are_named_with_their_process(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        started, _never, over, later = await home.call(key, root, "a", "b", "c", "d")
        await home.store.call_started(CallStarted(call_id=later))
        await home.store.call_started(CallStarted(call_id=started))
        await home.run(over)
        await home.store.call_process(CallProcess(call_id=started, pid=7, process_start=3.5))
        assert (await home.store.begin_epoch(BeginEpoch(clean=False))).dead_calls == ()
    async with living(tmp_path / "k.db", seed=1) as home:
        begun = await home.store.begin_epoch(BeginEpoch(clean=False, channels=(ROOM,)))
        dead = DeadCall(call_id=started, session_id=key.session_id, pid=7, process_start=3.5)
        unknown = DeadCall(call_id=later, session_id=key.session_id, pid=None, process_start=None)
        assert begun.dead_calls == (dead, unknown)
        elsewhere = Channel(chatbot_id="bot", channel_id="elsewhere")
        assert (await home.store.begin_epoch(BeginEpoch(clean=False, channels=(elsewhere,)))).dead_calls == ()


async def runnable(home: Home) -> tuple[str, ...]:
    found = await home.reader.runnable()
    for session_id in found:
        assert await home.reader.is_runnable(session_id)
    return found


async def test_i6_a_worker_is_started_only_for_what_can_become_a_turn(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_self_started=1)) as home:
        passive = await home.ring(wakes=False)
        session = passive.session_id
        assert await runnable(home) == ()
        assert not await home.reader.is_runnable(session)
        waking = await home.ring()
        assert await runnable(home) == await home.new_epoch() == (session,)
        key = await home.hire(session)
        await home.stand(key, claim=take(waking), claim_adopts=(take(passive),))
        await home.stand(key, waking, insert=(saying("so"),), ends=(done(waking), done(passive)))
        await home.ring()
        assert await runnable(home) == await home.new_epoch() == (), "the bound of self-started turns is reached"
        await home.stop(session)
        assert await runnable(home) == (session,), "a covered notice has to be ended"


async def test_i6_a_person_sets_the_count_of_self_started_turns_to_zero(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        waking = await home.ring()
        key = await home.hire(waking.session_id)
        await home.stand(key, claim=take(waking))
        assert (await home.store.register(RegisterWorker(key=key))).self_started == 1
        person = await home.say()
        await home.stand(key, waking, adopt=(take(person, Reason.STEERED),))
        assert (await home.store.register(RegisterWorker(key=key))).self_started == 0


async def test_i6_a_turn_that_a_person_begins_sets_it_to_zero_too(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        waking = await home.ring()
        key = await home.hire(waking.session_id)
        await home.stand(key, claim=take(waking))
        person = await home.say()
        await home.stand(key, waking, ends=(cut(waking),), claim=take(person))
        assert (await home.store.register(RegisterWorker(key=key))).self_started == 0


async def test_i6_a_resumed_turn_does_not_count(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        waking = await home.ring()
        key = await home.hire(waking.session_id)
        await home.stand(key, claim=take(waking))
        await home.store.give_back(GiveBack(key=key, clean=False))
        key = await home.hire(waking.session_id)
        await home.stand(key, claim=take(waking, Reason.RESUMED))
        assert (await home.store.register(RegisterWorker(key=key))).self_started == 1
        session = await home.reader.session(key.session_id)
        assert session is not None
        assert session.turns == 1


async def test_sessions_are_runnable_the_one_waiting_longest_first(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        rooms = [Channel(chatbot_id="bot", channel_id=name) for name in "cab"]
        ids = [(await home.say(channel=room)).session_id for room in rooms]
        assert await runnable(home) == tuple(ids)
        assert await home.reader.runnable((rooms[1],)) == (ids[1],)


async def test_a_pivot_keeps_steps_and_time_with_the_turn_they_belong_to(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, old = await home.begin()
        new = await home.say("new")
        reply = await home.stand(key, old, step=step(), ends=(cut(old),), claim=take(new))
        assert (reply.steps, reply.spent_s) == (0, 0.0)
        (stored,) = (await home.reader.history(key.session_id)).steps
        assert stored.root_id == old.id


async def test_c2_a_registration_that_holds_nothing_yet_ends_with_the_store_and_costs_no_attempt(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
    async with living(tmp_path / "k.db", seed=1) as home:
        reply = await home.commit(key, claim=take(message))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE
        assert await home.store.give_back(GiveBack(key=key, clean=False)) == ()
        key = await home.hire(message.session_id)
        assert (await home.stand(key, claim=take(message))).steps == 0
        given_back = await home.store.give_back(GiveBack(key=key, clean=False, max_attempts=2))
        assert [row.status for row in given_back] == [Status.PENDING_AGENT]


async def test_c2_a_worker_that_was_replaced_before_its_first_commit_is_stale(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        first, second = await home.hire(message.session_id), await home.hire(message.session_id)
        reply = await home.commit(first, claim=take(message))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE
        await home.stand(second, claim=take(message))


async def test_c2_a_new_epoch_ends_a_registration_that_holds_nothing_yet(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        await home.new_epoch()
        reply = await home.commit(key, claim=take(message))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE
