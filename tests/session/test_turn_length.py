"""A prompt that was too long, a compaction that a stop ends, and a turn that goes in circles."""

from __future__ import annotations

import pytest

from kesoku_actors.llm.port import Remedy
from kesoku_actors.protocol import (
    AGENT,
    Activity,
    BusyMode,
    CallState,
    Message,
    Outcome,
    Reason,
    Role,
    Status,
    StepState,
    Type,
)
from kesoku_actors.session import vocabulary as v
from kesoku_actors.session.turn import TurnLimits, activity
from kesoku_actors.session.turn_state import Done
from kesoku_actors.store.port import Committed, OpenCall
from tests.session.turns import Session, call, ends, person, reply, thinking, working


def test_a_prompt_that_was_too_long_is_compacted_and_tried_again_in_the_same_turn() -> None:
    session = thinking().fail(Remedy.COMPACT)
    commit = session.commit
    assert (commit.ends, commit.step and commit.step.state) == ((), StepState.FAILED)
    assert not session.has(v.SetTimer)
    session.stand()
    assert session.the(v.BuildPrompt).compact
    assert session.think().say(reply("Hi")).commit.insert[-1].content == "Hi"


def test_it_is_compacted_once_in_a_turn_and_after_that_only_cut_shorter() -> None:
    session = thinking()
    compacted = []
    for _ in range(TurnLimits().max_tries - 1):
        session.fail(Remedy.COMPACT).stand()
        compacted.append(session.the(v.BuildPrompt).compact)
        session.think()
    assert compacted == [True, False, False, False, False]
    assert ends(session.fail(Remedy.COMPACT).commit) == {"m1": (Status.ERROR, Reason.PROVIDER)}
    session.stand()
    assert isinstance(session.state.phase, Done)
    assert activity(session.state) == (Activity.IDLE, None)


def test_a_prompt_built_again_for_another_reason_asks_for_no_compaction() -> None:
    session = thinking().fail(Remedy.COMPACT).stand()
    session.hear(v.PromptBuilt(session.the(v.BuildPrompt).ticket, ("m1",))).stand()
    assert not session.the(v.BuildPrompt).compact


@pytest.mark.parametrize("calls", [(), ("c1",)])
def test_a_stop_ends_the_compaction_at_once_also_while_tools_run(calls: tuple[str, ...]) -> None:
    session = (working(*calls) if calls else thinking()).stop("m1")
    assert session.has(v.EndCompaction)


def test_a_stop_of_what_waits_leaves_the_compaction_alone() -> None:
    session = thinking(mode=BusyMode.QUEUE).hear(v.PersonSpoke(person(2))).stop("m2")
    assert not session.has(v.EndCompaction)


def test_a_person_ends_the_turn_and_not_the_compaction() -> None:
    session = Session(person(1)).stand()
    session.hear(v.PersonSpoke(person(2)))
    assert session.commit.claim is not None
    assert not session.has(v.EndCompaction)


def row(id: str, role: Role, type: Type, content: str, parent: str = "m1", **metadata: object) -> Message:
    return Message(
        id=id,
        seq=9,
        rev=9,
        session_id="s",
        chatbot_id="bot",
        channel_id="room",
        sender=AGENT if role is Role.ASSISTANT else "look",
        role=role,
        type=type,
        status=Status.RESPONDED,
        content=content,
        parent_id=parent,
        root_id="m1",
        place=9,
        timestamp=1.0,
        metadata={"tool_name": "look", "tool_call_id": "", **metadata},
    )


def look(session: Session, number: int, at: object, result: str, outcome: Outcome = Outcome.OK) -> Session:
    """The model looks, and the result is published."""
    name = f"c{number}"
    session.say(reply("", call(id=name, at=at)))
    _stand(session, row(name, Role.ASSISTANT, Type.TOOL_CALL, "look()", tool_arguments={"at": at}), open_call=name)
    session.hear(v.ToolStarted(name), v.ToolSettled(name, outcome))
    return _stand(session, row(f"r{number}", Role.TOOL, Type.TOOL_RESULT, result, name, outcome=outcome))


def _stand(session: Session, *rows: Message, open_call: str = "") -> Session:
    sent = session.asked(v.SendCommit)
    session.steps += sent.commit.step is not None
    committed = Committed(
        rows=rows,
        open_calls=(OpenCall(call_id=open_call, state=CallState.COMMITTED),) if open_call else (),
        steps=session.steps,
        spent_s=0.0,
        mode=session.mode,
        stops=session.stops,
    )
    return session.hear(v.CommitStands(sent.ticket, committed))


LIMITS = TurnLimits(max_same_batches=3)
OK = Outcome.OK


def test_the_same_call_with_the_same_result_again_and_again_ends_the_turn_and_says_why() -> None:
    session = thinking(limits=LIMITS)
    for number in range(2):
        look(session, number, "sky", "blue").think()
    commit = look(session, 2, "sky", "blue").commit
    assert ends(commit) == {"m1": (Status.ERROR, Reason.BUDGET)}
    assert "the same call gave the same result 3 times in a row" in commit.insert[-1].content


def test_a_circle_is_told_as_one_also_when_the_steps_are_used_up_with_it() -> None:
    session = thinking(limits=TurnLimits(max_same_batches=2, max_steps=2))
    look(session, 0, "sky", "blue").think()
    assert "2 times in a row" in look(session, 1, "sky", "blue").commit.insert[-1].content


def test_equal_arguments_in_another_order_are_the_same_call() -> None:
    session = thinking(limits=LIMITS)
    for number, at in enumerate(({"x": 1, "y": 2}, {"y": 2, "x": 1})):
        look(session, number, at, "blue").think()
    assert ends(look(session, 2, {"x": 1, "y": 2}, "blue").commit) == {"m1": (Status.ERROR, Reason.BUDGET)}


def test_results_of_calls_that_an_earlier_worker_committed_count_for_nothing() -> None:
    session = Session(returned=("m1",), limits=LIMITS).stand("c0")
    session.hear(v.ToolStarted("c0"), v.ToolSettled("c0", OK))
    _stand(session, row("r0", Role.TOOL, Type.TOOL_RESULT, "blue", "c0", outcome=OK))
    assert session.has(v.BuildPrompt)


@pytest.mark.parametrize(
    "other", [("sea", "blue", OK), ("sky", "grey", OK), ("sky", "blue", Outcome.ERROR)], ids=["asked", "got", "ended"]
)
def test_anything_else_in_between_begins_the_count_anew(other: tuple[str, str, Outcome]) -> None:
    session = thinking(limits=LIMITS)
    looks = [("sky", "blue", OK), ("sky", "blue", OK), other, ("sky", "blue", OK), ("sky", "blue", OK)]
    for number, (at, result, outcome) in enumerate(looks):
        look(session, number, at, result, outcome)
        assert session.has(v.BuildPrompt)
        session.think()


def test_a_person_who_waits_is_heard_before_a_circle_is_ended() -> None:
    session = thinking(limits=LIMITS)
    for number in range(2):
        look(session, number, "sky", "blue").think()
    session.say(reply("", call(id="c2", at="sky")))
    _stand(session, row("c2", Role.ASSISTANT, Type.TOOL_CALL, "look()", tool_arguments={"at": "sky"}), open_call="c2")
    session.hear(v.ToolStarted("c2"), v.PersonSpoke(person(2)), v.ToolSettled("c2", Outcome.OK))
    _stand(session, row("r2", Role.TOOL, Type.TOOL_RESULT, "blue", "c2", outcome="ok"))
    assert ends(session.commit) == {"m1": (Status.INTERRUPTED, Reason.INTERRUPTED)}
