"""The whole path of a message: posted, stored, claimed, answered, in one commit."""

from __future__ import annotations

from pathlib import Path

import trio

from kesoku_actors.llm.scripted import Call, Fail, Say
from kesoku_actors.protocol import Reason, Role, Status, Type
from tests.paths.house import at_home, statuses, texts


async def test_a_question_is_answered(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Hello Ada."),)]) as home:
        asked = await home.say("Say hello.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        rows = await home.rows(asked.session_id)
        assert texts(rows) == ["Say hello.", "Hello Ada."]
        assert statuses(rows) == [("user", "processed"), ("assistant", "pending")]
