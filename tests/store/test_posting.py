"""What comes from outside (M1, M5, M6, M8, B4)."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
import trio

from kesoku_actors.errors import NotFound
from kesoku_actors.protocol import SYSTEM, Channel, Inbound, InvalidMessage, Role, Status
from kesoku_actors.store import (
    CloseSession,
    EditMessage,
    GiveBack,
    Gone,
    Post,
    Posted,
    PostNotice,
    PostRefused,
    Rules,
    WithdrawMessage,
)
from tests.store.home import ROOM, Home, living, take


def inbound(**changes: object) -> Inbound:
    return Inbound(**{"chatbot_id": "bot", "channel_id": "room", "content": "hello", **changes})


async def test_a_posted_message_is_stored_whole(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        said = inbound(sender="Ada", external_id="x1", metadata={"sent_at": 5, "tags": ["ä", None]})
        reply = await home.store.post(Post(id="p", inbound=said))
        assert isinstance(reply, Posted)
        assert reply.is_new
        assert await home.reader.message(reply.message.id) == reply.message
        assert reply.message.metadata == {"sent_at": 5, "tags": ["ä", None]}
        assert (reply.message.root_id, reply.message.place, reply.message.external_id) == (None, None, "x1")


async def test_m1_seq_and_rev_are_never_given_twice_also_after_deletion(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first = await home.say()
        assert await home.store.withdraw(WithdrawMessage(message_id=first.id))
        (removed,) = home.published().removed
    async with living(tmp_path / "k.db", seed=1) as home:
        second = await home.say()
        assert second.seq > removed[2] > first.seq


async def test_m1_a_timestamp_is_never_before_the_last_of_its_session(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first = await home.say()
        home.time.now -= 500
        assert (await home.say()).timestamp == first.timestamp
        elsewhere = await home.say(channel=Channel(chatbot_id="bot", channel_id="other"))
        assert elsewhere.timestamp == home.time.now


async def test_any_mapping_is_metadata(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        said = inbound(metadata=MappingProxyType({"sizes": (1, 2), "of": MappingProxyType({"a": 1})}))
        reply = await home.store.post(Post(id="p", inbound=said))
        assert isinstance(reply, Posted)
        assert (await home.now(reply.message)).metadata == {"sizes": [1, 2], "of": {"a": 1}}


async def test_m5_an_external_id_posted_again_starts_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        first = await home.say(external_id="x1")
        again = await home.store.post(Post(id="other", inbound=inbound(content="changed", external_id="x1")))
        assert again == Posted(message=first, is_new=False)
        assert [publication.changed for publication in home.publications if publication.changed] == [(first,)]


async def test_m5_an_id_of_another_chatbot_is_another_id(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        await home.say(external_id="x1")
        other = await home.store.post(Post(id="p", inbound=inbound(chatbot_id="bot2", external_id="x1")))
        assert isinstance(other, Posted)
        assert other.is_new


async def test_m5_a_withdrawn_message_posted_again_is_gone(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say(external_id="x1")
        await home.store.withdraw(WithdrawMessage(message_id=message.id))
        again = await home.store.post(Post(id="p", inbound=inbound(external_id="x1")))
        assert again == Gone(external_id="x1")


async def test_c10_the_same_post_sent_again_is_stored_once(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        post = Post(id="p", inbound=inbound())
        first = await home.store.post(post)
        again = await home.store.post(post)
        assert isinstance(first, Posted)
        assert again == Posted(message=first.message, is_new=False)


async def test_c10_a_post_is_known_as_long_as_its_message_is_there(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        post, known = Post(id="p", inbound=inbound()), list[bool]()
        for _ in range(3):
            reply = await home.store.post(post)
            assert isinstance(reply, Posted)
            known.append(not reply.is_new)
            await home.new_epoch()
        assert known == [False, True, True]


async def test_c10_a_post_whose_message_was_withdrawn_starts_nothing_when_sent_again(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        post = Post(id="p", inbound=inbound())
        first = await home.store.post(post)
        assert isinstance(first, Posted)
        assert await home.store.withdraw(WithdrawMessage(message_id=first.message.id))
        assert await home.store.post(post) == Gone(external_id="p")


async def test_c10_a_refused_post_is_known_for_one_more_epoch(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_waiting=1)) as home:
        waiting = await home.say()
        for _ in range(9):
            await home.new_epoch()
        post, refused = Post(id="p", inbound=inbound()), list[bool]()
        assert await home.store.post(post) == PostRefused(max_waiting=1)
        assert await home.store.withdraw(WithdrawMessage(message_id=waiting.id))
        for _ in range(2):
            await home.new_epoch()
            refused.append(isinstance(await home.store.post(post), PostRefused))
        assert refused == [True, False]


async def test_c10_a_refused_post_sent_again_is_refused_again_and_told_once(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_waiting=1)) as home:
        waiting = await home.say()
        post = Post(id="p", inbound=inbound())
        first = await home.store.post(post)
        assert await home.store.withdraw(WithdrawMessage(message_id=waiting.id))
        assert await home.store.post(post) == first == PostRefused(max_waiting=1)
        assert len(await home.reader.leaving(ROOM)) == 1


async def test_m6_racing_first_messages_make_one_session(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        sessions: set[str] = set()

        async def speak() -> None:
            sessions.add((await home.say()).session_id)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(speak)
        assert len(sessions) == 1
        assert await home.reader.open_session(ROOM) in sessions


async def test_m7_a_message_for_a_closed_session_opens_the_next(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        old = await home.say()
        await home.store.close_session(CloseSession(session_id=old.session_id))
        reply = await home.store.post(Post(id="p", inbound=inbound(session_id=old.session_id)))
        assert isinstance(reply, Posted)
        assert reply.message.session_id not in ("", old.session_id)


async def test_a_message_for_an_open_session_takes_its_channel(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        old = await home.say()
        reply = await home.store.post(Post(id="p", inbound=inbound(channel_id="tty", session_id=old.session_id)))
        assert isinstance(reply, Posted)
        assert (reply.message.session_id, reply.message.channel_id) == (old.session_id, "room")


async def test_a_message_for_an_unknown_session_is_refused_in_one_line(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        with pytest.raises(NotFound, match="no session 'nowhere'"):
            await home.store.post(Post(id="p", inbound=inbound(session_id="nowhere")))


async def test_text_that_is_not_unicode_is_refused_alone(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        with pytest.raises(InvalidMessage, match=r"M1: a value cannot be stored.*surrogates"):
            await home.say("broken \ud800")
        assert (await home.say("whole")).content == "whole"


def nested(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "metadata", [{"n": float("nan")}, {"o": object()}, {"deep": nested(100_000)}], ids=["nan", "object", "deep"]
)
async def test_metadata_that_is_not_json_is_refused(tmp_path: Path, metadata: dict[str, object]):
    async with living(tmp_path / "k.db") as home:
        with pytest.raises(InvalidMessage, match="M1"):
            await home.store.post(Post(id="p", inbound=inbound(metadata=metadata)))
        assert (await home.say("whole")).seq == 1


async def test_m8_the_last_seen_id_moves_with_the_message_stored_or_refused(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_waiting=1)) as home:
        assert await home.reader.last_seen(ROOM) is None
        await home.say(external_id="x1")
        assert await home.reader.last_seen(ROOM) == "x1"
        refused = await home.store.post(Post(id="p", inbound=inbound(external_id="x2")))
        assert refused == PostRefused(max_waiting=1)
        assert await home.reader.last_seen(ROOM) == "x2"


async def test_m8_a_waiting_message_can_be_edited_until_it_is_taken(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say("frist")
        edited = await home.store.edit(EditMessage(message_id=message.id, content="first"))
        assert edited is not None
        assert (edited.content, edited.seq, edited.rev > message.rev) == ("first", message.seq, True)
        await home.stand(await home.hire(message.session_id), claim=take(message))
        assert await home.store.edit(EditMessage(message_id=message.id, content="late")) is None
        assert await home.contents(message.session_id) == ["first"]


async def test_m8_a_waiting_message_can_be_withdrawn_until_it_is_taken(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        assert await home.store.withdraw(WithdrawMessage(message_id=message.id))
        assert await home.reader.message(message.id) is None
        _, taken = await home.begin()
        assert not await home.store.withdraw(WithdrawMessage(message_id=taken.id))


async def test_m8_what_is_given_back_or_for_people_or_gone_is_neither_edited_nor_withdrawn(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, given_back = await home.begin()
        await home.store.give_back(GiveBack(key=key, clean=True))
        for_people = await home.store.notice(PostNotice(session_id=key.session_id, content="read this"))
        for message_id in (given_back.id, for_people.id, "gone"):
            assert await home.store.edit(EditMessage(message_id=message_id, content="other")) is None
            assert not await home.store.withdraw(WithdrawMessage(message_id=message_id))
        assert (await home.now(given_back)).content == "hello"
        assert await home.now(for_people) == for_people


async def test_b4_one_message_too_many_is_refused_seen_and_told_once_a_minute(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_waiting=2)) as home:
        await home.say()
        await home.say()
        for number in range(3):
            post = Post(id=f"p{number}", inbound=inbound(external_id=f"x{number}"))
            assert await home.store.post(post) == PostRefused(max_waiting=2)
        (told,) = await home.reader.leaving(ROOM)
        assert (told.role, told.status, told.root_id) == (Role.SYSTEM, Status.PENDING, None)
        assert "2 messages wait" in told.content
        assert await home.store.post(Post(id="p0", inbound=inbound(external_id="x0"))) == Gone(external_id="x0")
        home.time.now += 60
        await home.store.post(Post(id="p9", inbound=inbound(external_id="x9")))
        assert len(await home.reader.leaving(ROOM)) == 2


async def test_b4_notices_and_a_running_turn_do_not_count_as_waiting(tmp_path: Path):
    async with living(tmp_path / "k.db", rules=Rules(max_waiting=1)) as home:
        await home.begin()
        await home.ring()
        await home.ring()
        assert (await home.say()).status is Status.PENDING_AGENT


async def test_a_notice_to_people_leaves(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        message = await home.say()
        metadata = {"content": 1, "root": None, "session": "x"}
        command = PostNotice(session_id=message.session_id, content="note", root_id=message.id, metadata=metadata)
        notice = await home.store.notice(command)
        assert (notice.sender, notice.status, notice.metadata) == (SYSTEM, Status.PENDING, metadata)
        assert (notice.root_id, notice.parent_id) == (message.id, message.id)
        assert await home.reader.leaving(ROOM) == (notice,)
        with pytest.raises(NotFound):
            await home.store.notice(PostNotice(session_id="nowhere", content="note"))
        with pytest.raises(InvalidMessage):
            await home.store.notice(
                PostNotice(session_id=message.session_id, content="note", metadata={"attachments": "x"})
            )


async def test_a_session_is_titled_by_its_first_words(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        await home.ring()
        message = await home.say("  Draw me\n a sheep  ")
        await home.say("and a box")
        session = await home.reader.session(message.session_id)
        assert session is not None
        assert session.title == "Draw me a sheep"


async def test_sessions_are_listed_the_last_active_first(tmp_path: Path):
    async def speak(home: Home, room: str) -> str:
        home.time.now += 1
        return (await home.say(channel=Channel(chatbot_id="bot", channel_id=room))).session_id

    async with living(tmp_path / "k.db") as home:
        a, b, again = await speak(home, "a"), await speak(home, "b"), await speak(home, "a")
        assert a == again
        assert [session.id for session in await home.reader.sessions(10)] == [a, b]
        assert [session.id for session in await home.reader.sessions(1, "bot")] == [a]
        assert await home.reader.sessions(10, "nobody") == ()
