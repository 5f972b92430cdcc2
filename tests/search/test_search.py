"""Search over a real store and a real file: what is found, what is not any more, and what no damage can hurt."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import Channel
from kesoku_actors.search import IndexUnusable, Scope, Search, search_tool
from kesoku_actors.store import CloseSession, EditMessage, Rules, WipeSession, WithdrawMessage
from kesoku_actors.tools import ToolContext
from tests.store.home import ROOM, HandClock, Home, living

ELSEWHERE = Channel(chatbot_id="bot", channel_id="elsewhere")


@define
class Place:
    """A store, a search over it, and what people were told."""

    home: Home
    search: Search
    told: list[Entry] = field(factory=list)

    async def found(self, text: str, scope: Scope = Scope(), limit: int = 10) -> list[str]:  # noqa: B008  a value
        await self.search.catch_up()
        return [hit.message.content for hit in await self.search.find(text, scope, limit)]

    @property
    def path(self) -> Path:
        assert self.search.path is not None
        return self.search.path


@asynccontextmanager
async def searching(folder: Path, life: int = 0) -> AsyncIterator[Place]:
    told: list[Entry] = []
    log = Logger(sink=told.append, wall=lambda: 0.0)
    async with living(folder / "kesoku.db", seed=life, rules=Rules(max_waiting=10_000)) as home:
        search = Search(path=folder / "kesoku-search.db", reader=home.reader, log=log, pause_s=0)
        yield Place(home, search, told)
        await search.close()


async def test_words_are_found_without_case_and_accents_in_any_script(tmp_path):
    async with searching(tmp_path) as place:
        for text in ("Un café noir", "東京都に行く", "der Fuchs 🦊 läuft", "don't panic", "Ⅲ. Kapitel"):
            await place.home.say(text)
        assert await place.found("CAFE") == ["Un café noir"]
        assert await place.found("京都") == ["東京都に行く"]
        assert await place.found("都京") == []
        assert await place.found("🦊") == ["der Fuchs 🦊 läuft"]
        assert await place.found("lauf*") == ["der Fuchs 🦊 läuft"]
        assert await place.found("don't") == ["don't panic"]
        assert await place.found("III") == ["Ⅲ. Kapitel"]


async def test_an_answer_a_call_and_its_result_are_found_and_a_thought_is_not(tmp_path):
    from tests.store.home import saying, step

    async with searching(tmp_path) as place:
        key, root = await place.home.begin("question")
        (call,) = await place.home.call(key, root, "heron")
        await place.home.run(call, content="output of the osprey")
        await place.home.stand(key, root, results="publish")
        await place.home.stand(key, root, step=step(), insert=(saying("the answer is kestrel"),))
        assert len(await place.found("heron")) == 1
        assert await place.found("osprey") == ["output of the osprey"]
        assert await place.found("kestrel") == ["the answer is kestrel"]


async def test_the_index_is_for_its_owner_alone(tmp_path):
    async with searching(tmp_path) as place:
        await place.search.catch_up()
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


async def test_an_edited_message_is_found_by_its_new_words_only(tmp_path):
    async with searching(tmp_path) as place:
        message = await place.home.say("heron")
        assert await place.found("heron") == ["heron"]
        await place.home.store.edit(EditMessage(message_id=message.id, content="osprey"))
        assert await place.found("heron") == []
        assert await place.found("osprey") == ["osprey"]
        assert b"heron" not in place.path.read_bytes()


@pytest.mark.parametrize("rows", [1, 400])
async def test_what_was_withdrawn_leaves_no_trace_in_the_file(tmp_path, rows):
    async with searching(tmp_path) as place:
        for number in range(rows):
            await place.home.say(f"some other talk number {number}", channel=ELSEWHERE)
        message = await place.home.say("quetzalcoatlus " * 50)
        for number in range(rows):
            await place.home.say(f"later talk number {number}", channel=ELSEWHERE)
        assert len(await place.found("quetzalcoatlus")) == 1
        assert b"quetzalcoatl" in place.path.read_bytes()
        await place.home.store.withdraw(WithdrawMessage(message_id=message.id))
        assert await place.found("quetzalcoatlus") == []
        left = b"".join(file.read_bytes() for file in tmp_path.glob("kesoku-search.db*"))
        assert b"quetzal" not in left


async def test_what_was_cleared_leaves_no_trace_in_the_file(tmp_path):
    async with searching(tmp_path) as place:
        said = [await place.home.say(f"pterodactyl{number} secret{number} word") for number in range(60)]
        for number in range(200):
            await place.home.say(f"other words {number}", channel=ELSEWHERE)
        await place.search.catch_up()
        session_id = said[0].session_id
        await place.home.store.close_session(CloseSession(session_id=session_id))
        assert await place.found("word") == [], "of a session that is being cleared nothing is shown"
        await place.home.store.wipe(WipeSession(session_id=session_id))
        await place.search.catch_up()
        left = place.path.read_bytes()
        assert b"pterodactyl" not in left
        assert b"secret" not in left
        assert b"other" in left


async def test_what_left_the_store_is_not_shown_wherever_the_index_stands(tmp_path):
    async with searching(tmp_path) as place:
        message = await place.home.say("heron")
        await place.search.catch_up()
        await place.home.store.withdraw(WithdrawMessage(message_id=message.id))
        assert await place.search.find("heron") == ()


async def test_a_message_of_another_channel_is_out_of_scope(tmp_path):
    async with searching(tmp_path) as place:
        await place.home.say("heron here")
        await place.home.say("heron there", channel=ELSEWHERE)
        scope = Scope(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id)
        assert await place.found("heron", scope) == ["heron here"]
        assert sorted(await place.found("heron", Scope(chatbot_id="bot"))) == ["heron here", "heron there"]
        assert await place.found("heron", Scope(chatbot_id="other")) == []


async def test_the_tool_never_reaches_another_channel_whatever_it_is_asked(tmp_path):
    async with searching(tmp_path) as place:
        mine = await place.home.say("my heron")
        theirs = await place.home.say("their heron", channel=ELSEWHERE)
        tool = search_tool(place.search, personal=frozenset())
        context = ToolContext(session_id=mine.session_id, call_id="c", workspace=tmp_path)
        for query in ("heron", f"heron {theirs.session_id}", "heron OR channel_id:elsewhere", "heron*", '"heron"'):
            outcome = await tool(context, query)
            assert "their" not in outcome.content
        assert "my heron" in (await tool(context, "heron")).content
        assert mine.id in (await tool(context, "heron", limit=10_000)).content
        assert (await tool(context, "nothing of the kind")).content == "[nothing was found]"


async def test_the_tool_sees_all_channels_of_a_chatbot_that_is_one_persons(tmp_path):
    async with searching(tmp_path) as place:
        mine = await place.home.say("heron one")
        await place.home.say("heron two", channel=ELSEWHERE)
        await place.home.say("heron three", channel=Channel(chatbot_id="other", channel_id="room"))
        tool = search_tool(place.search, personal=frozenset({"bot"}))
        context = ToolContext(session_id=mine.session_id, call_id="c", workspace=tmp_path)
        content = (await tool(context, "heron")).content
        assert ("one" in content, "two" in content, "three" in content) == (True, True, False)


def overwrite(path: Path) -> None:
    with open(path, "r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(4096))


def overwrite_the_header(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write(b"no database at all" * 8)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def drop_the_words(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE entries")
    connection.close()


def lose_the_cursor(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM state")
    connection.close()


def another_unicode(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE state SET value = '3.0' WHERE name = 'unicode'")
    connection.close()


def another_format(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()


DAMAGE = [
    overwrite,
    overwrite_the_header,
    halve,
    lambda path: os.truncate(path, 0),
    drop_the_words,
    lose_the_cursor,
    another_format,
    another_unicode,
    os.unlink,
]


@pytest.mark.parametrize("while_open", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
async def test_a_damaged_index_is_made_anew_and_messages_never_notice(tmp_path, damage, while_open):
    async with searching(tmp_path) as place:
        for number in range(300):
            await place.home.say(f"heron {number}", channel=ELSEWHERE if number >= 100 else ROOM)
        assert len(await place.found("heron", limit=100)) == 100
        if not while_open:
            await place.search.close()
        damage(place.path)
        await place.home.say("osprey", channel=Channel(chatbot_id="bot", channel_id="third"))
        await place.search.check()
        assert await place.found("osprey") == ["osprey"]
        assert len(await place.found("heron", limit=100)) == 100
        assert len([entry for entry in place.told if "made anew" in entry.event]) <= 1


async def test_an_index_of_another_store_is_made_anew(tmp_path):
    async with searching(tmp_path) as place:
        for number in range(20):
            await place.home.say(f"heron {number}")
        await place.search.catch_up()
    (tmp_path / "kesoku.db").unlink()
    async with living(tmp_path / "kesoku.db", time=HandClock(5_000.0)):
        pass
    async with searching(tmp_path) as place:
        await place.home.say("osprey")
        assert await place.found("heron") == []
        assert await place.found("osprey") == ["osprey"]


async def test_an_index_newer_than_a_store_that_was_put_back_is_made_anew(tmp_path):
    async with searching(tmp_path) as place:
        await place.home.say("first")
    backup = (tmp_path / "kesoku.db").read_bytes()
    async with searching(tmp_path, life=1) as place:
        for number in range(10):
            await place.home.say(f"heron {number}")
        await place.search.catch_up()
    (tmp_path / "kesoku.db").write_bytes(backup)
    async with searching(tmp_path, life=2) as place:
        for number in range(30):
            await place.home.say(f"osprey {number}")
        assert await place.found("heron") == []
        assert len(await place.found("osprey", limit=100)) == 30
        assert await place.found("first") == ["first"]


async def test_two_that_keep_one_index_agree(tmp_path):
    async with searching(tmp_path) as place:
        other = Search(path=place.path, reader=place.home.reader, log=place.search.log, pause_s=0)
        messages = [await place.home.say(f"heron {number}", channel=ELSEWHERE) for number in range(50)]
        async with trio.open_nursery() as nursery:
            for search in (place.search, other):
                nursery.start_soon(search.catch_up)
            for message in messages[:25]:
                await place.home.store.withdraw(WithdrawMessage(message_id=message.id))
        assert len(await place.found("heron", limit=100)) == 25
        assert len(await other.find("heron", limit=100)) == 25
        await other.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
async def test_a_folder_that_takes_no_index_is_told_of(tmp_path):
    async with searching(tmp_path) as place:
        await place.home.say("heron")
        place.search.path = tmp_path / "closed" / "search.db"
        place.search.path.parent.mkdir(mode=0o500)
        with pytest.raises(IndexUnusable, match="search index"):
            await place.search.catch_up()


async def test_a_full_disk_is_told_of_and_the_rest_goes_on(tmp_path):
    async with searching(tmp_path) as place:
        await place.home.say("heron")
        place.search.path = Path("/dev/full")
        with pytest.raises(IndexUnusable):
            await place.search.catch_up()
        await place.home.say("osprey")


async def test_without_a_path_the_index_lives_in_memory(tmp_path):
    async with searching(tmp_path) as place:
        await place.home.say("heron")
        place.search.path = None
        assert await place.found("heron") == ["heron"]
        assert not (tmp_path / "kesoku-search.db").exists()


def put(path: Path, holes: list[tuple[float, bytes]]) -> None:
    with open(path, "r+b") as file:
        for where, data in holes:
            file.seek(int(where * (path.stat().st_size - 1)))
            file.write(data)


@settings(max_examples=40, deadline=None)
@given(
    holes=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=600)), min_size=1, max_size=6),
    is_open=st.booleans(),
)
def test_no_damage_is_a_surprise(holes: list[tuple[float, bytes]], is_open: bool) -> None:
    async def happen(folder: Path) -> None:
        async with searching(folder) as place:
            messages = [await place.home.say(f"heron {number} " + "café 東京 " * 40) for number in range(60)]
            await place.search.catch_up()
            if not is_open:
                await place.search.close()
            put(place.path, holes)
            await place.home.store.withdraw(WithdrawMessage(message_id=messages[7].id))
            await place.home.say("osprey")
            await place.search.check()
            await place.search.catch_up()
            contents = {hit.message.content for hit in await place.search.find("osprey")}
            assert contents <= {"osprey"}
            await place.search.find("heron café")

    with tempfile.TemporaryDirectory() as folder:
        trio.run(happen, Path(folder))
