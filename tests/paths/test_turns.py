"""The whole path of a message: posted, stored, claimed, worked on, answered, in the order the contract says."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Call, Fail, Say, Think
from kesoku_actors.protocol import CallState, Delta, DeltaKind, Outcome, Reason, Role, Status, StepState, Type
from tests.paths.house import at_home, statuses, texts


def echo(text: str) -> str:
    """Return the text."""
    return text


async def slow(seconds: float) -> str:
    """Wait, then say so."""
    await trio.sleep(seconds)
    return f"waited {seconds:g} s"


async def test_a_question_is_answered(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Hello Ada."),)]) as home:
        asked = await home.say("Say hello.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        rows = await home.rows(asked.session_id)
        assert texts(rows) == ["Say hello.", "Hello Ada."]
        assert statuses(rows) == [("user", "processed"), ("assistant", "pending")]
        assert [row.root_id for row in rows] == [asked.id, asked.id]


async def test_a_thought_is_kept_and_the_step_with_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Think(thought="Hm."), Say(text="Yes."))]) as home:
        asked = await home.say("Is it?")
        await home.ended(asked)
        history = await home.gateway.history(asked.session_id)
        assert [(row.type, row.content) for row in history.messages[1:]] == [
            (Type.THOUGHT, "Hm."),
            (Type.TEXT, "Yes."),
        ]
        [stored] = history.steps
        assert (stored.root_id, stored.step.state, stored.step.provider) == (asked.id, StepState.FINISHED, "scripted")
        assert stored.message_ids == tuple(row.id for row in history.messages[1:])


async def test_two_parallel_calls_are_published_in_call_order(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [
        (Call(name="slow", arguments={"seconds": 5.0}), Call(name="slow", arguments={"seconds": 1.0})),
        (Say(text="Done."),),
    ]
    async with at_home(tmp_path, script, tools=[slow]) as home:
        begun = trio.current_time()
        asked = await home.say("Wait twice.")
        await home.ended(asked)
        assert trio.current_time() - begun < 6, "parallel"
        rows = await home.rows(asked.session_id)
        assert [row.type for row in rows] == [
            *(Type.TEXT, Type.TOOL_CALL, Type.TOOL_CALL),
            *(Type.TOOL_RESULT, Type.TOOL_RESULT, Type.TEXT),
        ]
        assert [row.parent_id for row in rows[3:5]] == [rows[1].id, rows[2].id]
        assert rows[4].seq == rows[3].seq + 1
        assert texts(rows)[3:] == ["waited 5 s", "waited 1 s", "Done."]
        assert len(home.model.requests[1].history) == 5


async def test_one_slot_runs_a_batch_one_after_the_other(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [
        (Call(name="slow", arguments={"seconds": 5.0}), Call(name="slow", arguments={"seconds": 1.0})),
        (Say(text="Done."),),
    ]
    async with at_home(tmp_path, script, tools=[slow], parallel_tools=1) as home:
        begun = trio.current_time()
        await home.ended(await home.say("Wait twice."))
        assert trio.current_time() - begun >= 6


async def test_an_unknown_tool_is_an_error_result_and_the_turn_goes_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [(Call(name="nonsense"), Call(name="echo", arguments={"text": ["a"]})), (Say(text="Sorry."),)]
    async with at_home(tmp_path, script, tools=[echo]) as home:
        asked = await home.say("Do it.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        results = [row for row in await home.rows(asked.session_id) if row.type is Type.TOOL_RESULT]
        assert [row.metadata["outcome"] for row in results] == [Outcome.ERROR, Outcome.ERROR]
        assert "echo" in results[0].content


async def test_a_failing_provider_is_asked_again_after_a_pause(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [(Fail(kind="rate_limit", retry_after_s=7.0),), (Say(text="Now."),)]
    async with at_home(tmp_path, script) as home:
        begun = trio.current_time()
        asked = await home.say("Hi.")
        assert (await home.ended(asked)).status is Status.PROCESSED
        assert trio.current_time() - begun >= 7
        steps = (await home.gateway.history(asked.session_id)).steps
        assert [stored.step.state for stored in steps] == [StepState.FAILED, StepState.FINISHED]


async def test_a_refused_key_is_told_once_and_never_retried(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Fail(kind="auth", message="the key is refused"),)]) as home:
        asked = await home.say("Hi.")
        ended = await home.ended(asked)
        assert (ended.status, ended.metadata["reason"]) == (Status.ERROR, Reason.PROVIDER)
        [notice] = await home.gateway.leaving(home.channel)
        assert notice.role is Role.SYSTEM
        assert "the key is refused" in notice.content
        assert len(home.model.requests) == 1


async def test_an_empty_answer_is_asked_for_once_more_and_then_told(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text=" "),), (Think(thought="Hm."),)]) as home:
        asked = await home.say("Hi.")
        assert (await home.ended(asked)).status is Status.ERROR
        assert [request.nudge is not None for request in home.model.requests] == [False, True]
        rows = await home.rows(asked.session_id)
        assert [row.role for row in rows] == [Role.USER, Role.SYSTEM], "the nudge is stored nowhere"
        assert rows[1].status is Status.PENDING


async def test_deltas_come_in_order_with_their_offsets(tmp_path: Path, autojump_clock: MockClock) -> None:
    heard: list[Delta] = []
    async with at_home(tmp_path, [(Say(text="one two three", word_delay_s=0.5),)]) as home:

        async def listen(task_status: trio.TaskStatus[None]) -> None:
            events = home.gateway.listen()
            task_status.started()
            async for event in events:
                if isinstance(event, Delta):
                    heard.append(event)

        async with trio.open_nursery() as nursery:
            await nursery.start(listen)
            await home.ended(await home.say("Count."))
            nursery.cancel_scope.cancel()
    assert "".join(delta.text for delta in heard) == "one two three"
    assert {delta.kind for delta in heard} == {DeltaKind.TEXT}
    offsets = [0]
    for delta in heard:
        assert delta.offset == offsets[-1]
        offsets.append(delta.offset + len(delta.text))


async def test_an_idle_session_holds_no_task(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Hello."),)]) as home:
        await home.ended(await home.say("Hi."))
        await trio.testing.wait_all_tasks_blocked()
        assert home.gateway.statistics().workers == 0
        assert home.house.tools.statistics().running == ()


async def test_every_turn_reads_the_whole_talk_and_its_prefix_never_changes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text=f"Answer {n}."),) for n in range(3)]) as home:
        for n in range(3):
            await home.ended(await home.say(f"Question {n}."))
        longest = home.prompts()[-1]
        assert all(longest[: len(prompt)] == prompt for prompt in home.prompts())
        assert len(longest) == 5
        assert len({request.system for request in home.model.requests}) == 1


async def test_open_calls_are_read_back_as_they_stand(tmp_path: Path, autojump_clock: MockClock) -> None:
    script = [(Call(name="slow", arguments={"seconds": 50.0}),), (Say(text="Done."),)]
    async with at_home(tmp_path, script, tools=[slow]) as home:
        asked = await home.say("Wait.")
        await home.until(lambda row: row.type is Type.TOOL_CALL)
        await trio.sleep(10)
        [call] = await home.gateway.reader.calls(asked.id)
        assert call.state is CallState.STARTED


async def test_broken_text_of_any_provider_ends_in_a_turn_and_not_in_a_crash(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    script = [(Fail(kind="auth", message="half \ud800"),), (Say(text="half \ud800 too"),)]
    async with at_home(tmp_path, script) as home:
        failed = await home.ended(await home.say("Hi."))
        answered = await home.ended(await home.say("Hi again."))
        assert (failed.status, answered.status) == (Status.ERROR, Status.PROCESSED)
        assert {"scripted: half \ufffd", "half \ufffd too"} <= set(texts(await home.rows(failed.session_id)))
