"""A file that a model cannot be shown: the model gets a note, people are told once, and the turn goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kesoku_actors.protocol import Inbound, Role, Status, expected
from kesoku_actors.store import Posted
from tests.llm.pictures import claims, picture
from tests.paths.test_switching import (
    CLAUDE_CALLS,
    CLAUDE_SAYS,
    GEMINI_CALLS,
    GEMINI_SAYS,
    OPENAI_SAYS,
    ROOM,
    Talk,
    talking,
)
from tests.wire import claude_server as claude
from tests.wire import gemini_server as gemini
from tests.wire.loopback import Answer

FILES = {
    "huge.png": claims(50_000, 50_000),
    "cat.png": picture(9, 9),
    "empty.pdf": b"",
    "noise.png": picture(300, 300, noisy=True),
}


async def ask_about(talk: Talk, folder: Path, names: list[str]) -> Any:
    """Post a message with these files and return it when its turn has ended."""
    gateway = talk.house.gateway
    metadata = {"attachments": [expected(name, "image/png").as_data() for name in names]}
    inbound = Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content="Look.", metadata=metadata)
    posted = await gateway.post(inbound)
    assert isinstance(posted, Posted)
    place = folder / "sessions" / posted.message.session_id / "attachments"
    place.mkdir(parents=True, exist_ok=True)
    for index, name in enumerate(names):
        (place / name).write_bytes(FILES[name])
        await gateway.settle_attachment(posted.message.id, index, path=f"attachments/{name}")
    async for event in gateway.listen(after=0, hints=False):
        row = getattr(event, "message", None)
        if row is not None and row.id == posted.message.id and row.has_ended:
            return row
    raise AssertionError("listening does not end")


@pytest.mark.parametrize("name", ["claude", "gemini"])
async def test_a_file_that_the_service_refuses_is_left_out_and_people_are_told(tmp_path: Path, name: str) -> None:
    async with talking(tmp_path, to_claude=(CLAUDE_SAYS,), to_gemini=(GEMINI_SAYS,), to_openai=(OPENAI_SAYS,)) as talk:
        await talk.brains.choose(ROOM, name)
        judge = talk.claude if name == "claude" else talk.gemini
        judge.more_rules = lambda body: ["Could not process image"] if "'image/png'" in str(body) else []
        asked = await ask_about(talk, tmp_path, ["cat.png"])
        assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        [told] = await talk.said(asked.session_id, Role.SYSTEM)
        assert "attachments/cat.png: the model's service refused" in told
        assert "attachments/cat.png is not shown to you here" in str(judge.bodies[-1])


@pytest.mark.parametrize("name", ["claude", "gemini"])
async def test_people_are_told_once_of_what_the_model_was_not_shown(tmp_path: Path, name: str) -> None:
    async with talking(
        tmp_path,
        to_claude=(CLAUDE_CALLS, CLAUDE_SAYS, CLAUDE_SAYS),
        to_gemini=(GEMINI_CALLS, GEMINI_SAYS, GEMINI_SAYS),
        to_openai=(OPENAI_SAYS,),
    ) as talk:
        await talk.brains.choose(ROOM, name)
        asked = await ask_about(talk, tmp_path, list(FILES))
        assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        [told] = await talk.said(asked.session_id, Role.SYSTEM)
        assert "attachments/huge.png: it has 50,000 x 50,000 pixels" in told
        assert "attachments/empty.pdf: " in told
        assert "cat.png" not in told
        assert (await talk.ask("And now?")).status is Status.PROCESSED
        assert await talk.said(asked.session_id, Role.SYSTEM) == [told], "nobody is told again"
        bodies = talk.claude.bodies if name == "claude" else talk.gemini.bodies
        assert "50,000 x 50,000 pixels" in str(bodies[0]), "the model is, too"


@pytest.mark.parametrize("name", ["claude", "gemini"])
async def test_files_too_large_for_what_stands_between_are_left_out_and_the_talk_stays_as_long_as_it_was(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Answer(status=413, headers=(("content-type", "text/html"),), parts=(b"<h1>Request Entity Too Large</h1>",))
    sizes: list[int] = []
    judging = claude.ClaudeJudge if name == "claude" else gemini.GeminiJudge
    judge = judging.__call__

    def bounded(self: Any, target: str, headers: dict[str, str], body: bytes) -> Answer | None:
        sizes.append(len(body))
        return page if len(body) > 200_000 else judge(self, target, headers, body)

    monkeypatch.setattr(judging, "__call__", bounded)
    async with talking(tmp_path, to_claude=(CLAUDE_SAYS,), to_gemini=(GEMINI_SAYS,), to_openai=(OPENAI_SAYS,)) as talk:
        await talk.brains.choose(ROOM, name)
        await talk.ask("Remember the heron.")
        asked = await ask_about(talk, tmp_path, ["noise.png"])
        assert asked.status is Status.PROCESSED, await talk.said(asked.session_id, Role.SYSTEM)
        [told] = await talk.said(asked.session_id, Role.SYSTEM)
        assert "attachments/noise.png: the model's service refused" in told
        assert (await talk.ask("And what was it?")).status is Status.PROCESSED
        bodies = talk.claude.bodies if name == "claude" else talk.gemini.bodies
    assert [size > 200_000 for size in sizes] == [False, True, False, False], "it is sent so once"
    assert "the heron" in str(bodies[-1]), "nothing was learnt from it about how much text is read"
