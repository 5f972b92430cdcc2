"""What the engine keeps at hand between two groups is what is stored, and is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from kesoku_actors.protocol import BusyMode, Channel, Inbound, Reason, SessionState
from kesoku_actors.store import (
    CloseSession,
    GiveBack,
    Post,
    Posted,
    RegisterWorker,
    SetMode,
    SetTitle,
)
from kesoku_actors.store.kept_sessions import MOST_AT_WORK, MOST_IDLE, KeptSessions
from kesoku_actors.store.session_row import Session
from tests.store.home import ROOM, done, living, saying, take


def session(no: int, *, is_at_work: bool) -> Session:
    channel = Channel(chatbot_id="bot", channel_id=str(no))
    row = (0.0, 0, 0, None, None, None, int(is_at_work), None, 0, 0, 0.0)
    return Session(no, f"s{no}", channel, SessionState.OPEN, "", None, *row)


@pytest.mark.parametrize(("is_at_work", "most"), [(True, MOST_AT_WORK), (False, MOST_IDLE)])
def test_no_more_sessions_are_kept_than_the_bound_says_and_the_latest_are(is_at_work: bool, most: int) -> None:
    kept = KeptSessions()
    for no in range(most + 2):
        kept.put_back([session(no, is_at_work=is_at_work)], ())
    assert [kept.find(f"s{no}") is not None for no in (0, 1, 2, most + 1)] == [False, False, True, True]
    assert (kept.find_open("bot", "1"), kept.find_open("bot", "2")) == (None, "s2")


async def test_a_worker_of_a_session_just_spoken_to_is_registered_without_a_transaction(tmp_path: Path):
    reached: list[str] = []
    async with living(tmp_path / "k.db", probe=reached.append) as home:
        message = await home.say()
        await home.hire(message.session_id)
        reached.clear()
        key = await home.hire(message.session_id)
        assert reached == []
        await home.stand(key, claim=take(message))


async def test_a_worker_is_told_the_present_mode_and_the_session_its_present_title(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key = await home.hire((await home.say("hello")).session_id)
        for mode in (BusyMode.COLLECT, BusyMode.QUEUE):
            await home.store.set_mode(SetMode(channel=ROOM, mode=mode))
            assert (await home.store.register(RegisterWorker(key=key))).mode is mode
        assert await home.store.set_title(SetTitle(session_id=key.session_id, title="Hi", instead_of="hello"))
        assert not await home.store.set_title(SetTitle(session_id=key.session_id, title="Ho", instead_of="hello"))
        info = await home.reader.session(key.session_id)
        assert info is not None
        assert info.title == "Hi"


async def test_a_closed_session_is_not_spoken_to_any_more_though_it_is_at_work(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, _root = await home.begin()
        await home.store.close_session(CloseSession(session_id=key.session_id))
        assert (await home.say("again")).session_id != key.session_id


async def test_a_turn_that_came_back_is_handed_to_the_next_worker_though_the_session_is_kept(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin()
        await home.store.give_back(GiveBack(key=key, clean=True))
        registered = await home.store.register(RegisterWorker(key=evolve(key, worker=99)))
        assert registered.returned == (root.id,)


async def test_what_becomes_of_metadata_after_the_post_changes_no_row(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        metadata = {"place": {"topics": ["one"]}}
        inbound = Inbound(chatbot_id="bot", channel_id="room", content="hello", sender="Ada", metadata=metadata)
        reply = await home.store.post(Post(id="p", inbound=inbound))
        assert isinstance(reply, Posted)
        metadata["place"]["topics"].append("two")
        key = await home.hire(reply.message.session_id)
        await home.stand(key, claim=take(reply.message))
        await home.stand(key, reply.message, insert=(saying("hi"),), ends=(done(reply.message),))
        row = await home.now(reply.message)
        assert (row.metadata["place"], row.metadata["reason"]) == ({"topics": ["one"]}, Reason.FRESH)
