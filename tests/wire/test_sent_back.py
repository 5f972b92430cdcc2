"""What a model said comes back to it as it said it, to it alone, and with what became of its calls (M4, P1).

The strict servers sign what they think and say, and refuse what was changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import frozen

from kesoku_actors.llm.port import Reply, Request, StepContent
from kesoku_actors.protocol import Outcome

from ..llm.examples import DATE_TOOL, answered, asking, called, result, said
from . import claude_server as claude
from . import gemini_server as gemini
from . import test_claude, test_gemini


@frozen(kw_only=True)
class Wire:
    """A provider, an answer of its with everything in it, and how a request of its is read."""

    name: str
    test: Any
    answer: tuple[Mapping[str, Any], ...]
    model: str
    other: str
    """Another model of the same provider's."""
    talk: str
    parts: str

    def said(self, body: Mapping[str, Any]) -> list[Any]:
        """What a body says that the model said."""
        return [part for one in body[self.talk] if one["role"] != "user" for part in one[self.parts]]

    def asked(self, body: Mapping[str, Any]) -> list[Any]:
        """What a body says to the model."""
        return [part for one in body[self.talk] if one["role"] == "user" for part in one[self.parts]]


CLAUDE = Wire(
    name="claude",
    test=test_claude,
    answer=(
        claude.thinking("Look."),
        claude.redacted("Nobody sees this."),
        claude.text("I look."),
        claude.use("date", "toolu_1", zone="UTC"),
    ),
    model=claude.MODEL,
    other="claude-opus-4-7",
    talk="messages",
    parts="content",
)
GEMINI = Wire(
    name="gemini",
    test=test_gemini,
    answer=(
        gemini.thinking("Look."),
        gemini.text("I "),
        gemini.signed(gemini.text("look.")),
        gemini.signed(gemini.use("date", None, "toolu_1", zone="UTC")),
    ),
    model=gemini.MODEL,
    other="gemini-2.5-flash",
    talk="contents",
    parts="parts",
)
WIRES = pytest.mark.parametrize("wire", [CLAUDE, GEMINI], ids=lambda wire: wire.name)


def going_on(wire: Wire, first: Reply, outcome: Outcome = Outcome.OK) -> Request:
    """The request behind an answer that called a tool."""
    call = called(3, call_id="toolu_1", zone="UTC")
    rows = (said(1, "Which day?"), answered(2, "I look."), call, result(4, call, "No clock here.", outcome))
    step = StepContent(provider=wire.name, model=wire.model, native=first.native, message_ids=("m2", "m3"))
    return asking(*rows, steps=(step,), tools=(DATE_TOOL,))


@WIRES
async def test_all_that_a_model_said_comes_back_to_it_unchanged(wire: Wire) -> None:
    answers = wire.test.answering(*wire.answer), wire.test.answering(wire.test.text("Monday."))
    async with wire.test.talking_to(*answers) as (_server, judge, model):
        first = await wire.test.infer(model, asking(said(1, "Which day?"), tools=(DATE_TOOL,)))
        assert (await wire.test.infer(model, going_on(wire, first))).text == "Monday."
    assert wire.said(judge.bodies[1]) == list(wire.answer)


@WIRES
async def test_another_model_of_the_same_provider_gets_no_thought_and_no_signature_of_it(wire: Wire) -> None:
    answers = wire.test.answering(*wire.answer), wire.test.answering(wire.test.text("Monday."))
    async with wire.test.talking_to(*answers) as (_server, judge, model):
        first = await wire.test.infer(model, asking(said(1, "Which day?"), tools=(DATE_TOOL,)))
        model.model = wire.other
        assert (await wire.test.infer(model, going_on(wire, first))).text == "Monday."
    words, call = wire.said(judge.bodies[1])
    assert words == wire.test.text("I look.")
    assert not {"thinking", "redacted_thinking"} & {words.get("type"), call.get("type")}
    assert "thoughtSignature" not in call


@WIRES
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.ERROR])
async def test_a_model_learns_whether_its_tool_failed(wire: Wire, outcome: Outcome) -> None:
    answers = wire.test.answering(*wire.answer), wire.test.answering(wire.test.text("Monday."))
    async with wire.test.talking_to(*answers) as (_server, judge, model):
        first = await wire.test.infer(model, asking(said(1, "Which day?"), tools=(DATE_TOOL,)))
        await wire.test.infer(model, going_on(wire, first, outcome))
    told = wire.asked(judge.bodies[1])[-1]
    failed = outcome is Outcome.ERROR
    if wire is CLAUDE:
        assert told.get("is_error", False) is failed
    else:
        assert list(told["functionResponse"]["response"]) == ["error" if failed else "result"]
