"""What the face promises when the store ends with a command in hand (C10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from kesoku_actors.actors import ActorStopped
from kesoku_actors.llm.scripted import Say
from kesoku_actors.store import Durability, StoreOptions
from tests.paths.house import at_home, texts


@pytest.mark.parametrize("point", ["store.before_commit/Post", "store.after_commit/Post"])
async def test_c10_a_post_whose_reply_was_lost_is_answered_and_stored_once(
    tmp_path: Path, autojump_clock: MockClock, point: str
) -> None:
    crashes = [point, point]

    def probe(here: str) -> None:
        if here in crashes:
            crashes.remove(here)
            raise RuntimeError("the store dies with a post in hand")

    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=probe)
    async with at_home(tmp_path, [(Say(text="Hello."),)], store=store) as home:
        said = await home.say("Hi.")
        assert crashes == []
        await home.ended(said)
        rows = await home.rows(said.session_id)
        assert texts(rows) == ["Hi.", "Hello."]


async def test_a_post_to_a_store_that_is_gone_for_good_is_told_so(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path) as home:
        pass
    with pytest.raises(ActorStopped, match="will not run again"):
        await home.say("anybody?")
