"""Clearing a session, busy modes (M7, I5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import BusyMode, Channel, Reason, SessionState, Stop
from kesoku_actors.store import (
    CloseSession,
    Gone,
    NothingToStop,
    PlanDelivery,
    Post,
    RegisterWorker,
    Rules,
    SetMode,
    WipeSession,
)
from kesoku_actors.store.port import RefusalReason, Refused
from tests.store.home import ROOM, cut, living, take
from tests.store.test_posting import inbound


async def test_m7_closing_stops_what_the_session_holds(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        stop = await home.store.close_session(CloseSession(session_id=key.session_id))
        assert isinstance(stop, Stop)
        assert (stop.reason, stop.covers) == (Reason.CLEARED, {root.id})
        assert home.published().closed == (key.session_id,)
        await home.stop(key.session_id)
        assert await home.store.close_session(CloseSession(session_id=key.session_id)) == stop
        assert await home.reader.open_session(ROOM) is None
        assert await home.reader.is_runnable(key.session_id)
        assert (await home.say("next")).session_id != key.session_id


async def test_m7_closing_an_idle_session_stops_nothing_and_closes_it(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.answer(key, root)
        assert await home.store.close_session(CloseSession(session_id=key.session_id)) == NothingToStop()
        session = await home.reader.session(key.session_id)
        assert session is not None
        assert session.state is SessionState.CLOSED
        with pytest.raises(NotFound):
            await home.store.close_session(CloseSession(session_id="nowhere"))


async def test_m7_wiping_deletes_every_row_and_leaves_a_tombstone_for_cursors(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        (call,) = await home.call(key, root, "look")
        before = await home.reader.head()
        stop = await home.store.close_session(CloseSession(session_id=key.session_id))
        assert isinstance(stop, Stop)
        answer = (await home.stand(key, root, results="settle", ends=(cut(root, Reason.CLEARED),))).rows[0]
        await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("a",)))
        assert await home.store.wipe(WipeSession(session_id=key.session_id)) == 3
        assert await home.reader.message(call) is None
        assert (await home.reader.history(key.session_id)).messages == ()
        assert (await home.reader.history(key.session_id)).steps == ()
        assert await home.reader.chunks(answer.id) == ()
        assert await home.reader.sessions(10) == ()
        session = await home.reader.session(key.session_id)
        assert session is not None
        assert session.state is SessionState.TOMBSTONE
        changes = await home.reader.changes(before, 100)
        assert changes.changed == ()
        assert {removed[0] for removed in changes.removed} == {root.id, call, answer.id}
        assert home.published().removed == changes.removed


async def test_m7_a_wiped_session_takes_no_commit_and_no_worker(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.store.close_session(CloseSession(session_id=key.session_id))
        await home.store.wipe(WipeSession(session_id=key.session_id))
        reply = await home.commit(key, claim=take(root))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE
        with pytest.raises(NotFound):
            await home.store.register(RegisterWorker(key=key))


async def test_m7_a_worker_that_has_committed_nothing_ends_with_its_session(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        key = await home.hire(message.session_id)
        await home.store.close_session(CloseSession(session_id=key.session_id))
        await home.store.wipe(WipeSession(session_id=key.session_id))
        reply = await home.commit(key, claim=take(message))
        assert isinstance(reply, Refused)
        assert reply.reason is RefusalReason.STALE


async def test_m7_a_wipe_leaves_what_other_sessions_hold(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        answer = (await home.answer(key, root)).rows[0]
        parts = await home.store.plan_delivery(PlanDelivery(message_id=answer.id, chunks=("a",)))
        waits = await home.say()
        stop = await home.stop(key.session_id)
        history = await home.reader.history(key.session_id)
        elsewhere = await home.say(channel=Channel(chatbot_id="bot", channel_id="elsewhere"))
        await home.store.close_session(CloseSession(session_id=elsewhere.session_id))
        assert await home.store.wipe(WipeSession(session_id=elsewhere.session_id)) == 1
        assert await home.reader.history(key.session_id) == history
        assert await home.reader.chunks(answer.id) == parts
        assert await home.reader.stops(key.session_id) == (stop,)
        assert await home.now(waits) == waits


async def test_m7_a_stop_that_a_wipe_makes_pointless_is_told_as_done(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        stop = await home.store.close_session(CloseSession(session_id=message.session_id))
        assert isinstance(stop, Stop)
        await home.store.wipe(WipeSession(session_id=message.session_id))
        (told,) = home.published().stops
        assert (told.seq, told.done) == (stop.seq, True)


async def test_m7_only_a_closed_session_is_wiped_and_only_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        wipe = WipeSession(session_id=message.session_id)
        assert await home.store.wipe(wipe) == 0
        assert await home.now(message) == message
        await home.store.close_session(CloseSession(session_id=message.session_id))
        assert await home.store.wipe(wipe) == 1
        assert await home.store.wipe(wipe) == 0
        assert await home.store.wipe(WipeSession(session_id="nowhere")) == 0


async def test_a_session_counts_its_turns(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        for turns in (1, 2):
            key, root = await home.begin()
            await home.answer(key, root)
            session = await home.reader.session(key.session_id)
            assert session is not None
            assert session.turns == turns


async def test_m5_seen_ids_survive_a_clear(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say(external_id="x1")
        await home.store.close_session(CloseSession(session_id=message.session_id))
        await home.store.wipe(WipeSession(session_id=message.session_id))
        assert await home.store.post(Post(id="p", inbound=inbound(external_id="x1"))) == Gone(external_id="x1")
        assert await home.reader.last_seen(ROOM) == "x1"


async def test_i5_a_mode_is_the_channels_and_survives_a_restart(tmp_path: Path):
    other = Channel(chatbot_id="bot", channel_id="other")
    async with living(tmp_path / "k.db") as home:
        assert await home.reader.mode(ROOM) is BusyMode.INTERRUPT
        assert await home.store.set_mode(SetMode(channel=ROOM, mode=BusyMode.QUEUE)) is BusyMode.QUEUE
        assert home.published().modes == ((ROOM, BusyMode.QUEUE),)
    async with living(tmp_path / "k.db", seed=1, rules=Rules(default_mode=BusyMode.STEER)) as home:
        assert await home.reader.mode(ROOM) is BusyMode.QUEUE
        assert await home.reader.mode(other) is BusyMode.STEER
        message = await home.say()
        reply = await home.stand(await home.hire(message.session_id), claim=take(message))
        assert reply.mode is BusyMode.QUEUE
