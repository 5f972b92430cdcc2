"""Random histories over real HTTP, through both SDKs: the strict servers take what is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from ..draws import examples
from ..llm import test_claude_repair, test_gemini_repair
from ..llm.examples import ignore
from ..llm.histories import crowd, drawn_from
from . import claude_server, gemini_server, test_claude, test_gemini


@pytest.mark.parametrize(
    ("talks", "talking_to", "answer"),
    [
        (test_claude_repair.TALKS, test_claude.talking_to, claude_server.answering(claude_server.text("Yes."))),
        (test_gemini_repair.TALKS, test_gemini.talking_to, gemini_server.answering(gemini_server.text("Yes."))),
    ],
    ids=["claude", "gemini"],
)
async def test_every_history_is_answered(talks: Any, talking_to: Any, answer: Any, tmp_path: Path) -> None:
    drawn = drawn_from(talks, examples(20, 200))
    async with talking_to(answer) as (server, judge, model):
        with trio.fail_after(5 * len(drawn)):
            for talk in drawn:
                model.model = talk.model
                assert (await model.infer(talk.request, ignore)).text == "Yes."
            assert (await model.infer(evolve(crowd(1000), workspace=tmp_path), ignore)).text == "Yes."
    assert server.requests == len(judge.bodies) == len(drawn) + 1
