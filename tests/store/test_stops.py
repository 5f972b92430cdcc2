"""Stop and force (I7, I10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import Channel, Reason, Stop
from kesoku_actors.store import (
    CloseSession,
    GiveBack,
    NothingToStop,
    PostNotice,
    RefusalReason,
    Refused,
    RegisterWorker,
    RequestForce,
    RequestStop,
    StopOutcome,
    TooEarly,
    WithdrawMessage,
)
from tests.store.home import cut, done, living, saying, step, take


async def test_a_stop_covers_the_turn_and_everything_waiting_then(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        waits, notice = await home.say("next"), await home.ring(wakes=False)
        stop = await home.stop(key.session_id)
        later = await home.say("later")
        assert (stop.root_id, stop.covers) == (root.id, {root.id, waits.id, notice.id})
        assert later.id not in stop.covers
        assert not stop.done
        assert home.publications[-2].stops == (stop,)
        assert await home.reader.stops(key.session_id) == (stop,)


async def test_without_a_turn_the_first_waiting_message_stands_for_the_stop(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second = await home.say(), await home.say()
        stop = await home.stop(first.session_id)
        assert (stop.root_id, stop.covers) == (first.id, {first.id, second.id})


async def test_a_named_waiting_message_is_stopped_alone(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        waits, other = await home.say("this"), await home.say("other")
        stop = await home.stop(key.session_id, waits)
        assert (stop.root_id, stop.covers) == (waits.id, {waits.id})
        assert other.id not in stop.covers


async def test_any_message_of_a_turn_stands_for_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call_id,) = await home.call(key, root, "look")
        call = await home.reader.message(call_id)
        assert call is not None
        stop = await home.stop(key.session_id, call)
        assert stop.covers == {root.id}


async def test_any_message_of_a_turn_given_back_stands_for_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        one, two = await home.say("one"), await home.say("two")
        key = await home.hire(one.session_id)
        await home.stand(key, claim=take(one), claim_adopts=(take(two, Reason.COLLECTED),))
        await home.store.give_back(GiveBack(key=key, clean=True))
        stop = await home.stop(key.session_id, two)
        assert (stop.root_id, stop.covers) == (one.id, {one.id, two.id})


async def test_stopping_what_has_ended_changes_nothing_and_says_so(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.answer(key, root)
        head = await home.reader.head()
        for message_id in (None, root.id, "unknown"):
            reply = await home.store.stop(RequestStop(session_id=key.session_id, message_id=message_id))
            assert reply == NothingToStop()
        assert await home.reader.head() == head
        with pytest.raises(NotFound):
            await home.store.stop(RequestStop(session_id="nowhere"))


async def test_a_stop_of_what_is_not_open_here_leaves_the_turn_alone(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, before = await home.begin()
        await home.answer(key, before)
        for_people = await home.store.notice(PostNotice(session_id=key.session_id, content="read this"))
        elsewhere = await home.say(channel=Channel(chatbot_id="bot", channel_id="elsewhere"))
        await home.stand(key, claim=take(await home.say()))
        for named in (before, for_people, elsewhere):
            reply = await home.store.stop(RequestStop(session_id=key.session_id, message_id=named.id))
            assert reply == NothingToStop()
        assert await home.reader.stops(key.session_id) == ()


@pytest.mark.parametrize("way", ["claim", "pivot", "adopt"])
async def test_a_covered_message_cannot_be_taken_any_more(tmp_path: Path, way: str):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        waits = await home.say("next")
        await home.stop(key.session_id)
        match way:
            case "claim":
                await home.stand(key, root, insert=(saying("hi"),), ends=(done(root),))
                reply = await home.commit(key, claim=take(waits))
            case "pivot":
                reply = await home.commit(key, root, ends=(cut(root),), claim=take(waits))
            case _:
                reply = await home.commit(key, root, adopt=(take(waits),))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.MOVED


async def test_a_covered_turn_that_was_given_back_is_taken_up_again_to_be_ended(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        stop = await home.stop(key.session_id)
        await home.store.give_back(GiveBack(key=key, clean=False))
        key = await home.hire(key.session_id)
        assert (await home.stand(key, claim=take(root, Reason.RESUMED))).stops == (stop,)
        assert (await home.stand(key, root, ends=(cut(root, Reason.STOPPED),))).stops == ()


async def test_a_stop_is_done_when_all_it_covers_has_ended(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        waits = await home.say("next")
        stop = await home.stop(key.session_id)
        await home.stand(key, root, ends=(cut(root, Reason.STOPPED),))
        (open_stop,) = await home.reader.stops(key.session_id)
        assert not open_stop.done
        await home.stand(key, ends=(cut(waits, Reason.STOPPED),))
        (told,) = home.published().stops
        assert (told.seq, told.done) == (stop.seq, True)
        assert await home.reader.stop(stop.seq) == told
        assert await home.reader.stops(key.session_id) == ()
        assert await home.reader.stops(key.session_id, done=True) == (told,)


async def test_a_stop_is_obeyed_after_a_restart_of_the_store(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first, second = await home.say(), await home.say()
        stops = await home.stop(first.session_id, first), await home.stop(first.session_id, second)
    async with living(tmp_path / "k.db", seed=1) as home:
        assert await home.reader.stops(first.session_id) == stops
        key = await home.hire(first.session_id)
        assert (await home.store.register(RegisterWorker(key=key))).stops == stops
        reply = await home.commit(key, claim=take(first))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.MOVED
        ends = (cut(first, Reason.STOPPED), cut(second, Reason.STOPPED))
        assert (await home.stand(key, ends=ends)).stops == ()


async def test_a_stop_that_is_done_is_told_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        seqs = []
        for _ in range(2):
            message = await home.say()
            seqs.append((await home.stop(message.session_id)).seq)
            await home.store.withdraw(WithdrawMessage(message_id=message.id))
            assert [told.seq for told in home.published().stops] == seqs[-1:]


async def test_what_two_stops_cover_ends_for_the_reason_of_the_first(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.stop(key.session_id)
        await home.store.close_session(CloseSession(session_id=key.session_id))
        await home.store.give_back(GiveBack(key=key, clean=False, max_attempts=1))
        assert (await home.now(root)).metadata["reason"] == Reason.STOPPED


async def test_a_withdrawn_message_does_not_keep_a_stop_open(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        waits = await home.say()
        stop = await home.stop(waits.session_id)
        await home.store.withdraw(WithdrawMessage(message_id=waits.id))
        (told,) = home.published().stops
        assert (told.seq, told.done) == (stop.seq, True)


async def test_i10_the_receipt_tells_what_ended_from_what_was_answered_before(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        waits = await home.say("next")
        stop = await home.stop(key.session_id)
        await home.stand(key, root, step=step(), insert=(saying("hi"),), ends=(done(root),))
        await home.stand(key, ends=(cut(waits, Reason.STOPPED),))
        assert await home.reader.stop_outcome(stop.seq) == StopOutcome(ended=(waits.id,), answered=(root.id,))


async def test_force_is_accepted_a_second_after_its_stop_and_not_before(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        force = RequestForce(session_id=key.session_id)
        assert await home.store.force(force) == NothingToStop()
        stop = await home.stop(key.session_id)
        home.time.now += 0.25
        assert await home.store.force(force) == TooEarly(wait_s=0.75)
        home.time.now += 0.75
        forced = await home.store.force(force)
        assert isinstance(forced, Stop)
        assert (forced.seq, forced.forced) == (stop.seq, True)
        assert home.published().stops == (forced,)


async def test_a_clock_that_steps_back_puts_force_off_by_a_second_at_most(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        await home.stop(key.session_id)
        home.time.now -= 3600
        force = RequestForce(session_id=key.session_id)
        assert await home.store.force(force) == TooEarly(wait_s=1.0)
        home.time.now += 1
        assert isinstance(await home.store.force(force), Stop)
