"""The indexer in a whole daemon: behind everything else, in nobody's way, and clean at the end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from kesoku_actors.llm.scripted import Call, Say
from kesoku_actors.log import Entry, Logger
from kesoku_actors.protocol import Role, Type
from kesoku_actors.search import Search, search_tool
from kesoku_actors.store import Durability, StoreOptions, open_reader
from kesoku_actors.tools import ToolContext
from tests.paths.house import Home, at_home


@asynccontextmanager
async def indexed(folder: Path, told: list[Entry], quiet_s: float = 0.0) -> AsyncIterator[tuple[Home, Search]]:
    """Run a daemon that indexes."""
    store = StoreOptions(path=folder / "kesoku.db", durability=Durability.NORMAL)
    log = Logger(sink=told.append, wall=lambda: 0.0)
    search = Search(path=folder / "kesoku-search.db", reader=open_reader(store), log=log, quiet_s=quiet_s, pause_s=0.0)
    async with at_home(folder, [(Say(text="the answer is kestrel"),)] * 50, store=store, search=search) as home:
        yield home, search


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(60):
        while not await condition():  # noqa: ASYNC110  a file has no event
            await trio.sleep(0.01)


async def until_held(folder: Path, *words: bytes) -> None:
    async def are_held() -> bool:
        return all(holds(folder, word) for word in words)

    await until(are_held)


def holds(folder: Path, word: bytes) -> bool:
    return any(word in file.read_bytes() for file in folder.glob("kesoku-search.db*"))


async def test_what_is_said_is_indexed_by_and_by(tmp_path: Path) -> None:
    async with indexed(tmp_path, []) as (home, search):
        await home.ended(await home.say("where is the heron"))
        await until_held(tmp_path, b"heron", b"kestrel")
        assert [hit.message.content for hit in await search.find("kestrel")] == ["the answer is kestrel"]


async def test_a_cleared_session_leaves_the_index_before_the_daemon_ends(tmp_path: Path) -> None:
    async with indexed(tmp_path, []) as (home, search):
        message = await home.say("where is the heron")
        await home.ended(message)
        await until_held(tmp_path, b"kestrel")
        search.quiet_s = 1_000.0  # nothing more is indexed in time
        await home.ended(await home.say("and the osprey"))
        await home.gateway.clear(message.session_id)

        async def is_wiped() -> bool:
            return await home.gateway.reader.message(message.id) is None

        await until(is_wiped)
    assert not holds(tmp_path, b"heron")
    assert not holds(tmp_path, b"kestrel")


async def test_a_short_life_never_touches_the_index(tmp_path: Path) -> None:
    async with indexed(tmp_path, [], quiet_s=1_000.0) as (home, _search):
        await home.ended(await home.say("where is the heron"))
    assert not (tmp_path / "kesoku-search.db").exists()


@pytest.mark.parametrize("damage", ["overwritten", "cut", "deleted", "a folder"])
async def test_whatever_happens_to_the_file_turns_go_on(tmp_path: Path, damage: str) -> None:
    told: list[Entry] = []
    path = tmp_path / "kesoku-search.db"
    async with indexed(tmp_path, told) as (home, search):
        for number in range(5):
            await home.ended(await home.say(f"heron {number}"))
        await until_held(tmp_path, b"heron")
        match damage:
            case "overwritten":
                path.write_bytes(os.urandom(path.stat().st_size))
            case "cut":
                os.truncate(path, 5_000)
            case "deleted":
                path.unlink()
            case _:
                path.unlink()
                path.mkdir()
        for number in range(5):
            await home.ended(await home.say(f"osprey {number}"))
        if damage == "a folder":

            async def are_told() -> bool:
                return bool(told)

            await until(are_told)
            assert [entry.event for entry in told] == ["search does not find the newest messages"]
            return
        await until_held(tmp_path, b"osprey")

        async def are_found() -> bool:
            return len(await search.find("osprey")) == 5

        await until(are_found)
        assert len(await search.find("heron")) == 5
        assert len(told) <= 1


async def test_the_model_searches_where_it_talks(tmp_path: Path) -> None:
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL)
    log = Logger(sink=lambda _entry: None, wall=lambda: 0.0)
    search = Search(path=tmp_path / "search.db", reader=open_reader(store), log=log)
    tool = search_tool(search, personal=frozenset())
    played = [(Say(text="noted"),), (Call(name="search_history", arguments={"query": "heron"}),), (Say(text="found"),)]
    async with at_home(tmp_path, played, store=store, tools=[tool]) as home:
        await home.ended(await home.say("the heron nests in May"))
        asked = await home.say("when?")
        await home.ended(asked)
        rows = await home.rows(asked.session_id)
        (result,) = [row for row in rows if row.type is Type.TOOL_RESULT]
        assert result.role is Role.TOOL
        assert "Ada" in result.content
        assert "the heron nests in May" in result.content
        context = ToolContext(session_id="01UNKNOWN", call_id="c", workspace=tmp_path)
        assert (await tool(context, "heron")).content == "[this session is gone]"
        await search.close()
