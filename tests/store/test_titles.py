"""Titles: the first words at once, and a better title only in the place of those it was made for."""

from __future__ import annotations

from pathlib import Path

from kesoku_actors.store import CloseSession, SetTitle
from tests.store.home import Home, living


async def title_of(home: Home, session_id: str) -> str:
    session = await home.reader.session(session_id)
    assert session is not None
    return session.title


async def test_a_title_takes_the_place_of_the_one_it_was_made_for_and_of_no_other(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        message = await home.say("# When do the **herons** nest?")
        session_id = message.session_id
        assert await title_of(home, session_id) == "When do the herons nest?"
        for title, instead_of, took in (
            ("Wrong", "", False),
            ("Herons", "When do the herons nest?", True),
            ("Ospreys", "When do the herons nest?", False),
        ):
            command = SetTitle(session_id=session_id, title=title, instead_of=instead_of)
            assert await home.store.set_title(command) is took
        assert await title_of(home, session_id) == "Herons"
        assert await home.say("more") is not None
        assert await title_of(home, session_id) == "Herons"


async def test_a_session_that_is_being_cleared_gets_no_title(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        message = await home.say("hello")
        await home.store.close_session(CloseSession(session_id=message.session_id))
        command = SetTitle(session_id=message.session_id, title="Greeting", instead_of="hello")
        assert await home.store.set_title(command) is False


async def test_what_has_no_words_leaves_the_title_to_the_next_message(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        message = await home.say("```\n```")
        assert await title_of(home, message.session_id) == ""
        await home.say("hello")
        assert await title_of(home, message.session_id) == "hello"
