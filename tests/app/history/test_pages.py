"""A session as lines: everything is told, in words, and nothing can move a cursor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kesoku_actors.app.history.pages import outside_lines, summary_lines, turn_lines, turns_of
from kesoku_actors.protocol import Message, Outcome, Reason, Role, Status, StepState, Type
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.store import ResultMode
from tests.store.home import cut, living, saying, step


def said(role: Role, content: str, status: Status, **more: Any) -> Message:
    sender = {Role.USER: "Ada", Role.ASSISTANT: "Kesoku", Role.SYSTEM: "System"}[role]
    place: dict[str, Any] = {"id": "m", "seq": 1, "rev": 1, "place": 1, "root_id": "m", "timestamp": 5.0}
    fields = {"session_id": "s", "chatbot_id": "b", "channel_id": "c", "type": Type.TEXT, **place, **more}
    return Message(sender=sender, role=role, content=content, status=status, **fields)


async def test_interruptions_results_and_failed_inferences_are_told_where_they_happened(tmp_path: Path) -> None:
    async with living(tmp_path / "k.db") as home:
        key, root = await home.begin("do it")
        one, _ = await home.call(key, root, "first", "second")
        await home.run(one, content="fine\n\x1b[31mred")
        await home.stand(key, root, results=ResultMode.SETTLE)
        await home.stand(key, root, step=step(StepState.CANCELLED))
        await home.stand(key, root, insert=(saying("half a", Status.RESPONDED),), ends=(cut(root),))
        again = await home.say("never mind")
        await home.stand(key, claim=None, ends=(cut(again, Reason.STOPPED),))
        await home.say("still waiting")
        record = await home.reader.record(key.session_id)
        assert record is not None
    turns = turns_of(record.messages, record.steps)
    text = [line.text for turn in turns for line in turn_lines(turn)]
    assert [turn.number for turn in turns] == [1, 2]
    order = [
        next(index for index, line in enumerate(text) if part in line)
        for part in (
            "turn 1",
            "interrupted (superseded)",
            "do it",
            "● first",
            "● second",
            "✓ 2.0 s first",
            "│ ␛[31mred",
            "⊘ interrupted",
            "(inference cancelled: p m)",
            "half a",
            "turn 2",
            "never mind",
        )
    ]
    assert order == sorted(order)
    assert "interrupted (stopped)" in "\n".join(text)
    assert [line.text for line in outside_lines(record.outside)][1:] == [
        "outside the turns",
        "Ada: (pending_agent)",
        "  still waiting",
    ]


def test_summaries_stand_as_a_tree() -> None:
    more: dict[str, Any] = {"provider": "p", "model": "m", "created": 5.0, "tokens_before": 90, "tokens_after": 9}
    top = Summary(id="t", level=1, first=(1, 1), last=(9, 9), content="all", children=("a",), **more)
    below = Summary(id="a", level=0, first=(1, 1), last=(4, 4), content="part", parent_id="t", **more)
    text = [line.text for line in summary_lines([top, below])]
    assert text[2].startswith("  level 1")
    assert text[3] == "    all"
    assert text[4].startswith("    level 0")
    assert text[5] == "      part"
    assert "none" in [line.text for line in summary_lines([])][2]


@given(st.text(), st.sampled_from([Role.USER, Role.ASSISTANT]))
def test_no_text_moves_the_cursor(content: str, role: Role) -> None:
    status = Status.PROCESSED if role is Role.USER else Status.DELIVERED
    (turn,) = turns_of([said(role, content, status)], [])
    for line in turn_lines(turn):
        assert not any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in line.text)


def test_every_outcome_is_told_in_words() -> None:
    for outcome in Outcome:
        facts = {"tool_name": "t", "tool_call_id": "c", "outcome": outcome.value}
        fields: dict[str, Any] = {
            "session_id": "s",
            "chatbot_id": "b",
            "channel_id": "c",
            "metadata": facts,
            "timestamp": 1e18,
        }
        place: dict[str, Any] = {"id": "m", "seq": 1, "rev": 1, "place": 1, "root_id": "m", "parent_id": "x"}
        kind: dict[str, Any] = {"role": Role.TOOL, "type": Type.TOOL_RESULT, "status": Status.RESPONDED}
        (turn,) = turns_of([Message(sender="t", content="out", **fields, **place, **kind)], [])
        assert len([line for line in turn_lines(turn) if line.text.strip()]) == 3
