"""A chat from its posted message to its end, against a gateway in memory."""

from __future__ import annotations

import json

import pytest
import trio
import trio.testing

from kesoku_actors.adapters.terminal import ChatState, run_terminal
from kesoku_actors.adapters.terminal.json_view import JsonView
from kesoku_actors.adapters.terminal.plain import PlainView
from kesoku_actors.adapters.terminal.rich_view import RichView
from kesoku_actors.clock import Clock, seeded_world
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    BusyMode,
    Delta,
    DeltaKind,
    ModeChanged,
    Outcome,
    Removed,
    Status,
    Step,
    StepState,
    StopEnded,
    StoredStep,
    ToolEnded,
    ToolProgress,
    Type,
    Usage,
)
from tests.adapters.screen import MemoryOutput
from tests.adapters.world import CHANNEL, SESSION, Crash, MemoryGateway, answer, call, notice, person, result, said

WORLD = seeded_world(1)
RECEIPT = StopEnded(session_id=SESSION, stop_seq=7, ended=("m2",), answered=(), survivors=("thread 3",))


async def chat(gateway, view, *happenings, receipt=None):
    """Run the terminal for message m2 while each happening is done in turn, the terminal at rest between them."""
    outcome = []

    async def run():
        outcome.append(
            await run_terminal(
                gateway=gateway,
                channel=CHANNEL,
                session_id=SESSION,
                message_id="m2",
                after=0,
                view=view,
                world=WORLD,
                receipt=receipt,
            )
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        for happen in happenings:
            await trio.testing.wait_all_tasks_blocked(0.01)
            happen()
    return outcome[0]


def plain_view(room=None):
    return PlainView(out=MemoryOutput(room), err=MemoryOutput())


def posted(*earlier):
    gateway = MemoryGateway()
    gateway.put(*earlier, person(2))
    return gateway


def claimed(gateway):
    return lambda: gateway.put(gateway.rows["m2"].moved(Status.PROCESSING, root_id="m2"))


def ended(gateway, *rows, status=Status.PROCESSED):
    return lambda: gateway.put(*rows, gateway.rows["m2"].moved(status))


def delta(text, inference="i1", attempt=1):
    return Delta(
        session_id=SESSION,
        root_id="m2",
        inference_id=inference,
        attempt=attempt,
        offset=0,
        kind=DeltaKind.TEXT,
        text=text,
    )


async def test_a_pipe_gets_the_answer_and_nothing_else():
    gateway, view = posted(), plain_view()
    gateway.steps = (
        StoredStep(
            root_id="m2",
            index=1,
            step=Step(
                inference_id="i1", provider="p", model="m", state=StepState.FINISHED, usage=Usage(input=1200, output=30)
            ),
        ),
    )
    outcome = await chat(
        gateway,
        view,
        claimed(gateway),
        lambda: gateway.tell(delta("A broken")),
        lambda: gateway.tell(delta("It is", "i2", 2)),
        ended(gateway, said(8, "m2", "Hm.", Type.THOUGHT), answer(9, "m2", "It is 42.")),
    )
    assert view.out.written == ["It is 42.\n"]
    assert outcome.state is ChatState.ANSWERED
    assert (outcome.summary.turns, outcome.summary.tokens) == (1, 1230)
    assert view.err.text.startswith("1 turn · context 1.2K · 0 tools · tokens 1.2K · ")
    assert gateway.statuses() == {"m9": Status.DELIVERED}


async def test_texts_beside_calls_are_printed_once_and_kept_parts_are_not():
    gateway, view = posted(), plain_view()
    made = call(4, "m2", "f", {})
    await chat(
        gateway,
        view,
        claimed(gateway),
        lambda: gateway.put(said(3, "m2", "Let me look."), made),
        lambda: gateway.put(said(3, "m2", "Let me look."), result(5, "m2", made, "secret result")),
        lambda: gateway.put(said(6, "m2", "I was about", metadata={"partial": True}), said(7, "m9", "another turn's")),
        ended(gateway, answer(9, "m2", "Done.\n")),
    )
    assert view.out.text == "Let me look.\nDone.\n"


async def test_what_was_kept_of_an_answer_is_printed_when_a_stop_ended_it_there():
    gateway, view = posted(), plain_view()
    await chat(
        gateway,
        view,
        claimed(gateway),
        lambda: gateway.put(said(6, "m2", "I was about", metadata={"partial": True})),
        ended(gateway, status=Status.INTERRUPTED),
    )
    assert view.out.text == "I was about\n"


@pytest.mark.parametrize("is_cut", [True, False])
async def test_an_answer_cut_at_the_output_limit_says_so(is_cut):
    made = answer(9, "m2", "It all began", metadata={"truncated": True} if is_cut else {})
    plain, out = plain_view(), MemoryOutput()
    drawn = RichView(out=out, clock=Clock(monotonic=lambda: 0.0), size=lambda: (80, 24), no_color=True)
    for view, shown in ((plain, plain.err), (drawn, out)):
        gateway = posted()
        await chat(gateway, view, claimed(gateway), ended(gateway, made))
        assert ("cut off: the model reached its output limit" in shown.text) is is_cut
    assert plain.out.text == "It all began\n"


async def test_an_answer_already_there_when_listening_begins_is_delivered():
    gateway, view = posted(), plain_view()
    claimed(gateway)()
    ended(gateway, answer(9, "m2", "Quick."))()
    outcome = await chat(gateway, view)
    assert (outcome.state, view.out.text) == (ChatState.ANSWERED, "Quick.\n")


async def test_an_answer_told_after_the_end_of_its_turn_is_still_delivered():
    gateway, view = posted(), plain_view()
    claimed(gateway)()

    def backwards():
        gateway.rows["m9"] = answer(9, "m2", "In any order.")
        gateway.put(gateway.rows["m2"].moved(Status.PROCESSED))

    outcome = await chat(gateway, view, backwards)
    assert (outcome.state, view.out.text) == (ChatState.ANSWERED, "In any order.\n")
    assert gateway.statuses() == {"m9": Status.DELIVERED}


async def test_an_error_is_told_and_is_the_state():
    gateway, view = posted(), plain_view()
    outcome = await chat(
        gateway, view, claimed(gateway), ended(gateway, notice(9, "m2", "The model is away."), status=Status.ERROR)
    )
    assert outcome.state is ChatState.ERROR
    assert view.out.text == ""
    assert view.err.written[0] == "The model is away.\n"
    assert gateway.statuses() == {"m9": Status.DELIVERED}


@pytest.mark.parametrize("is_heard_first", [True, False])
async def test_a_stop_ends_with_its_receipt_shown_once(is_heard_first):
    gateway, view = posted(), plain_view()

    async def receipt():
        return RECEIPT

    heard = (lambda: gateway.tell(RECEIPT),) if is_heard_first else ()
    outcome = await chat(
        gateway, view, claimed(gateway), *heard, ended(gateway, status=Status.INTERRUPTED), receipt=receipt
    )
    assert outcome.state is ChatState.STOPPED
    assert view.err.text.count("lives on: thread 3") == 1


async def test_a_message_that_was_withdrawn_ends_the_chat():
    gateway, view = posted(), plain_view()
    outcome = await chat(gateway, view, lambda: gateway.tell(Removed(message_id="m2", session_id=SESSION, rev=9)))
    assert outcome.state is ChatState.STOPPED


async def test_an_unconfirmed_answer_is_shown_again_labelled_and_never_taken_for_the_new_one():
    """Case row 10: the acknowledgement of the first answer was lost; the second question follows."""
    gateway = posted(answer(1, "m0", "The first answer."))

    def crash_before_record(place):
        if place == "before sent":
            raise Crash

    gateway.probe = crash_before_record
    with pytest.RaisesGroup(Crash, flatten_subgroups=True):
        await chat(gateway, plain_view())
    gateway.probe = lambda _place: None
    view = plain_view()
    await chat(gateway, view, claimed(gateway), ended(gateway, answer(9, "m2", "The second answer.")))
    assert view.out.text == "The second answer.\n"
    assert view.err.written[0] == (
        "(answer to an earlier message; shown again, as the last time was not confirmed)\nThe first answer.\n"
    )
    assert view.err.text.count("The first answer.") == 1
    assert set(gateway.statuses().values()) == {Status.DELIVERED}


async def test_a_closed_pipe_ends_the_chat_and_keeps_the_answer_for_the_next():
    gateway = posted()
    outcome = await chat(gateway, plain_view(room=0), claimed(gateway), ended(gateway, answer(9, "m2", "42")))
    assert (outcome.state, outcome.gone) == (ChatState.UNFINISHED, "nobody reads")
    assert gateway.statuses() == {"m9": Status.PENDING}
    view = plain_view()
    outcome = await chat(gateway, view)
    assert (outcome.state, view.out.text) == (ChatState.ANSWERED, "42\n")


async def test_a_chat_begun_again_delivers_nothing_twice_that_was_recorded():
    gateway = posted()
    claimed(gateway)()
    ended(gateway, answer(8, "m2", "One."))()
    first, second = plain_view(), plain_view()
    await chat(gateway, first)
    await chat(gateway, second)
    assert (first.out.text, second.out.text) == ("One.\n", "")


async def test_an_answer_of_the_turn_that_adopted_the_message_is_ours():
    gateway, view = posted(), plain_view()
    await chat(
        gateway,
        view,
        lambda: gateway.put(gateway.rows["m2"].moved(Status.PROCESSING, root_id="m1")),
        ended(gateway, answer(9, "m1", "For both.")),
    )
    assert view.out.text == "For both.\n"


async def test_programs_get_one_object_a_line_and_the_summary_last():
    gateway = posted(answer(1, "m0", "Old."))
    view = JsonView(out=MemoryOutput())
    await chat(
        gateway,
        view,
        claimed(gateway),
        lambda: gateway.tell(delta("4\x1b[2J")),
        lambda: gateway.tell(ActivityChanged(session_id=SESSION, activity=Activity.TOOLS)),
        lambda: gateway.tell(ToolProgress(session_id=SESSION, call_id="m4")),
        lambda: gateway.tell(ToolEnded(session_id=SESSION, call_id="m4", outcome=Outcome.OK)),
        lambda: gateway.tell(RECEIPT),
        lambda: gateway.tell(ModeChanged(chatbot_id="terminal", channel_id="here", mode=BusyMode.QUEUE)),
        lambda: gateway.put(call(5, "m2", "f", {"a": [1, {"b": "é\u2028"}]})),
        ended(gateway, notice(8, "m2", "Mind this."), answer(9, "m2", "42\ud83d")),
    )
    assert all(line.isascii() and line.endswith("\n") and line[:-1].isprintable() for line in view.out.written)
    objects = [json.loads(line) for line in view.out.written]
    assert [(found["event"], found.get("id") or found.get("text") or found.get("state")) for found in objects] == [
        ("answer", "Old."),
        ("message", "m2"),
        ("message", "m2"),
        ("delta", "4\x1b[2J"),
        ("activity", None),
        ("tool_started", None),
        ("tool_ended", None),
        ("stop_ended", None),
        ("mode", None),
        ("message", "m5"),
        ("notice", "Mind this."),
        ("answer", "42\ud83d"),
        ("message", "m2"),
        ("summary", "answered"),
    ]
    assert (objects[0]["is_ours"], objects[11]["is_ours"]) == (False, True)
    assert objects[9]["metadata"]["tool_arguments"] == {"a": [1, {"b": "é\u2028"}]}
    counts = {"turns", "context_tokens", "tools", "tokens", "cached", "thinking", "cost"}
    assert set(objects[-1]) == {"event", *counts, "seconds", "state"}


async def test_a_terminal_is_drawn_while_nothing_happens(autojump_clock):
    gateway, out = posted(), MemoryOutput()
    view = RichView(out=out, clock=Clock(monotonic=trio.current_time), size=lambda: (80, 24), no_color=True)

    async def later():
        await trio.sleep(0.5)
        gateway.tell(ActivityChanged(session_id=SESSION, activity=Activity.THINKING))
        await trio.sleep(3)
        claimed(gateway)()
        ended(gateway, answer(9, "m2", "At last."))()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        outcome = await run_terminal(
            gateway=gateway, channel=CHANNEL, session_id=SESSION, message_id="m2", after=0, view=view, world=WORLD
        )
    assert outcome.state is ChatState.ANSWERED
    assert "thinking 2 s" in out.text
    assert "At last." in out.text


async def test_a_terminal_that_closes_while_nothing_happens_ends_the_chat(autojump_clock):
    gateway = posted()
    view = RichView(out=MemoryOutput(0), clock=Clock(monotonic=trio.current_time), size=lambda: (80, 24), no_color=True)

    async def later():
        await trio.sleep(0.5)
        gateway.tell(ActivityChanged(session_id=SESSION, activity=Activity.THINKING))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        outcome = await run_terminal(
            gateway=gateway, channel=CHANNEL, session_id=SESSION, message_id="m2", after=0, view=view, world=WORLD
        )
    assert (outcome.state, outcome.gone) == (ChatState.UNFINISHED, "nobody reads")


async def test_a_last_line_that_cannot_be_written_changes_nothing():
    gateway = posted()
    view = PlainView(out=MemoryOutput(), err=MemoryOutput(room=0))
    outcome = await chat(gateway, view, claimed(gateway), ended(gateway, answer(9, "m2", "42")))
    assert (outcome.state, view.out.text) == (ChatState.ANSWERED, "42\n")


async def test_a_pipe_is_told_on_standard_error_of_a_wait_for_the_model():
    gateway = posted()
    view = PlainView(out=MemoryOutput(), err=MemoryOutput())
    why = "openai: the server cannot be\nreached"
    wait = ActivityChanged(session_id=SESSION, activity=Activity.RETRYING, detail=why, for_s=3.2)
    outcome = await chat(
        gateway, view, claimed(gateway), lambda: gateway.tell(wait), ended(gateway, answer(9, "m2", "42"))
    )
    assert (outcome.state, view.out.text) == (ChatState.ANSWERED, "42\n")
    assert "(openai: the server cannot be reached; asks again in 4 s)\n" in view.err.text
