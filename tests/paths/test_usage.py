"""What an inference used is stored however it ends: by its provider's count as far as that came, else by ours (M4, B4).

The servers are strict ones of the real wires; their answers break off.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kesoku_actors.protocol import Inbound, Reason, Role, Status, StepState
from kesoku_actors.store import Posted
from tests.paths.test_switching import CLAUDE_SAYS, GEMINI_SAYS, OPENAI_SAYS, ROOM, talking
from tests.wire import claude_server as claude
from tests.wire import gemini_server as gemini
from tests.wire.loopback import Answer, Cut, Stall

PRICES = f"""
[prices."{claude.MODEL}"]
input = 10.0
output = 100.0
cached = 1.0
[prices."{gemini.MODEL}"]
input = 10.0
output = 100.0
"""
CLAUDE_BEGINS = claude.sse(
    *claude.message_events(
        claude.text("Sixteen letters."),
        usage={"input_tokens": 100, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 400},
    )[:-3]
)
CLAUDE_USED, CLAUDE_COST = (2500, 2000, 400, 4), (100 * 10 + 2000 * 1 + 400 * 12.5 + 4 * 100) / 1e6
GEMINI_BEGINS = gemini.sse(gemini.content(gemini.text("Sixteen letters."), **gemini.usage(2500, 0)))
GEMINI_USED, GEMINI_COST = (2500, None, None, 4), (2500 * 10 + 4 * 100) / 1e6
BOTH = pytest.mark.parametrize(
    ("name", "begins", "used", "cost"),
    [("claude", CLAUDE_BEGINS, CLAUDE_USED, CLAUDE_COST), ("gemini", GEMINI_BEGINS, GEMINI_USED, GEMINI_COST)],
)


def serving(first: Answer) -> dict[str, Any]:
    """What all three serve: this, and then an answer."""
    return {"to_claude": (first, CLAUDE_SAYS), "to_gemini": (first, GEMINI_SAYS), "to_openai": (OPENAI_SAYS,)}


@BOTH
async def test_a_stream_that_was_cut_has_used_what_its_provider_had_counted(
    tmp_path: Path, name: str, begins: bytes, used: Any, cost: float
) -> None:
    async with talking(tmp_path, more=PRICES, **serving(Answer(parts=(begins, Cut())))) as talk:
        await talk.brains.choose(ROOM, name)
        asked = await talk.ask("Hi")
        steps = [each.step for each in (await talk.house.gateway.history(asked.session_id)).steps]
        assert [step.state for step in steps] == [StepState.FAILED, StepState.FINISHED]
        lost = steps[0].usage
        assert (lost.input, lost.cached, lost.written, lost.output) == used
        assert lost.cost == pytest.approx(cost)
        whole = (await talk.house.gateway.reader.usage((asked.session_id,)))[asked.session_id]
        assert whole.cost == pytest.approx(sum(step.usage.cost or 0.0 for step in steps))


@BOTH
async def test_a_stream_that_was_stopped_has_used_what_its_provider_had_counted(
    tmp_path: Path, name: str, begins: bytes, used: Any, cost: float
) -> None:
    async with talking(tmp_path, more=PRICES, **serving(Answer(parts=(begins, Stall())))) as talk:
        await talk.brains.choose(ROOM, name)
        gateway = talk.house.gateway
        posted = await gateway.post(Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content="Hi"))
        assert isinstance(posted, Posted)
        async for event in gateway.listen(after=0):
            if getattr(event, "text", "").endswith("s."):
                break
        await talk.ask("No, wait.")
        steps = [each.step for each in (await gateway.history(posted.message.session_id)).steps]
        assert [step.state for step in steps] == [StepState.CANCELLED, StepState.FINISHED]
        assert (steps[0].usage.input, steps[0].usage.output) == (used[0], used[3])
        assert steps[0].usage.cost == pytest.approx(cost)


async def test_a_request_that_was_stopped_before_a_word_came_has_used_itself_by_our_count(tmp_path: Path) -> None:
    came = trio.Event()

    def note(_body: Any) -> tuple[str, ...]:
        came.set()
        return ()

    async with talking(tmp_path, more=PRICES, **serving(Answer(parts=(Stall(),)))) as talk:
        talk.gemini.more_rules = note
        gateway = talk.house.gateway
        posted = await gateway.post(Inbound(chatbot_id=ROOM.chatbot_id, channel_id=ROOM.channel_id, content="Hi"))
        assert isinstance(posted, Posted)
        await came.wait()
        await talk.ask("No, wait.")
        cancelled, answered = [each.step for each in (await gateway.history(posted.message.session_id)).steps]
        assert cancelled.state is StepState.CANCELLED
        assert cancelled.usage.input
        assert (cancelled.usage.output, answered.state) == (0, StepState.FINISHED)


async def test_broken_inferences_count_in_the_budget_of_their_turn(tmp_path: Path) -> None:
    cut = Answer(parts=(CLAUDE_BEGINS, Cut()))
    served = serving(cut) | {"to_claude": (cut,)}
    async with talking(tmp_path, agent="max_turn_tokens = 4000", **served) as talk:
        await talk.brains.choose(ROOM, "claude")
        asked = await talk.ask("Hi")
        assert (asked.status, asked.metadata["reason"]) == (Status.ERROR, Reason.BUDGET)
        (told,) = await talk.said(asked.session_id, Role.SYSTEM)
        assert "used 2,504 of its 4,000 tokens" in told
