"""Summaries are stored whole or not at all, stand for ended turns only, and form a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kesoku_actors.protocol import InvalidMessage, Message
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.store import CloseSession, ResultMode, StoreSummaries, WipeSession, WorkerKey
from tests.store.home import Home, done, living, made_by_an_earlier_program, step, take


def summary(id: str, first: int, last: int | None = None, **more: Any) -> Summary:
    """Return a summary of the turns whose roots have these numbers."""
    fields: dict[str, Any] = {"level": 0, "content": f"what {id} says", "provider": "p", "model": "m", "created": 5.0}
    fields |= {"tokens_before": 90, "tokens_after": 9, **more}
    return Summary(id=id, first=(first, first), last=(last or first, 10_000), **fields)


async def talk(home: Home, *contents: str) -> tuple[WorkerKey, list[Message]]:
    """Have turns that end with an answer."""
    key, root = await home.begin(contents[0])
    roots = [root]
    await home.answer(key, root)
    for content in contents[1:]:
        root = await home.say(content)
        await home.stand(key, claim=take(root))
        await home.answer(key, root)
        roots.append(root)
    return key, roots


async def keep(home: Home, session_id: str, *summaries: Summary) -> bool:
    return await home.store.store_summaries(StoreSummaries(session_id=session_id, summaries=summaries))


async def read(home: Home, session_id: str) -> list[str]:
    """What the model reads, in order."""
    return [each.id for each in await home.reader.summaries(session_id) if each.parent_id is None]


async def test_a_tree_grows_and_its_rows_stay(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a, b, c) = await talk(home, "a", "b", "c")
        before = await home.contents(key.session_id)
        assert await keep(home, key.session_id, summary("s1", a.seq))
        assert await keep(home, key.session_id, summary("s2", b.seq))
        top = summary("top", a.seq, c.seq, level=1, children=("s1", "s2", "s3"))
        assert await keep(home, key.session_id, summary("s3", c.seq), top)
        tree = await home.reader.summaries(key.session_id)
        assert [(each.id, each.parent_id, each.children) for each in tree] == [
            ("top", None, ("s1", "s2", "s3")),
            ("s1", "top", ()),
            ("s2", "top", ()),
            ("s3", "top", ()),
        ]
        assert tree[0] == top
        assert await home.contents(key.session_id) == before


async def test_sent_again_it_stands_and_changes_nothing(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a, b) = await talk(home, "a", "b")
        for _ in range(2):
            assert await keep(home, key.session_id, summary("s1", a.seq))
        top = summary("top", a.seq, b.seq, level=1, children=("s1", "s2"))
        for _ in range(2):
            assert await keep(home, key.session_id, summary("s2", b.seq), top)
        assert await read(home, key.session_id) == ["top"]


async def test_two_that_overlap_are_never_read_side_by_side(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a, b) = await talk(home, "a", "b")
        assert await keep(home, key.session_id, summary("s1", a.seq))
        assert not await keep(home, key.session_id, summary("s2", a.seq, b.seq))
        assert not await keep(home, key.session_id, evolve(summary("s2", b.seq), first=(a.seq, 10_000)))
        assert not await keep(home, key.session_id, summary("s2", b.seq, children=("nobody",), level=1))
        twice = (summary("t1", a.seq, level=1, children=("s1",)), summary("t2", b.seq, level=1, children=("s1",)))
        assert not await keep(home, key.session_id, *twice)
        top = summary("top", a.seq, level=1, children=("s1",))
        assert await keep(home, key.session_id, top)
        assert not await keep(home, key.session_id, evolve(top, id="other"))
        assert await read(home, key.session_id) == ["top"]


async def test_an_open_call_pins_its_turn(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a,) = await talk(home, "a")
        root = await home.say("b")
        await home.stand(key, claim=take(root))
        (call,) = await home.call(key, root, "look")
        assert not await keep(home, key.session_id, summary("s", a.seq, root.seq))
        await home.run(call)
        assert not await keep(home, key.session_id, summary("s", a.seq, root.seq))
        await home.stand(key, root, results=ResultMode.PUBLISH)
        assert not await keep(home, key.session_id, summary("s", a.seq, root.seq))
        await home.stand(key, root, step=step(), ends=(done(root),))
        assert await keep(home, key.session_id, summary("s", a.seq, root.seq))


async def test_a_clear_takes_summaries_along_and_lets_none_come_after(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a, b) = await talk(home, "a", "b")
        assert await keep(home, key.session_id, summary("s1", a.seq))
        await home.store.close_session(CloseSession(session_id=key.session_id))
        assert not await keep(home, key.session_id, summary("s2", b.seq))
        await home.store.wipe(WipeSession(session_id=key.session_id))
        assert await home.reader.summaries(key.session_id) == ()
        assert not await keep(home, key.session_id, summary("s2", b.seq))
        assert not await keep(home, "nowhere", summary("s2", b.seq))


def test_a_summary_says_something_and_ends_after_it_begins():
    with pytest.raises(InvalidMessage):
        summary("s", 2, content=" \n")
    with pytest.raises(InvalidMessage):
        summary("s", 2, 1)


async def test_a_store_from_before_there_were_summaries_takes_them(tmp_path: Path):
    async with living(tmp_path / "k.db") as home:
        key, (a,) = await talk(home, "a")
    made_by_an_earlier_program(tmp_path / "k.db")
    async with living(tmp_path / "k.db") as home:
        assert await keep(home, key.session_id, summary("s", a.seq))
        assert await home.contents(key.session_id) == ["a", "hi"]
