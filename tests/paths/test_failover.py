"""When the model is down another one answers: the whole path, with scripted models and a clock that jumps (P2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio
import trio.testing
from trio.testing import MockClock

from kesoku_actors.llm.breaker import Policy
from kesoku_actors.llm.gate import ProviderGate
from kesoku_actors.llm.scripted import Call, Fail, Inference, Rule, Say, Scenario, ScriptedModel
from kesoku_actors.protocol import Activity, ActivityChanged, Event, Message, Reason, Role, Status
from kesoku_actors.session import Brain
from tests.paths.house import Home, at_home, texts


def brain(name: str, *inferences: Inference) -> Brain:
    model = ScriptedModel(Scenario(inferences=inferences, repeat=True), name=name)
    return Brain(provider=model, gate=ProviderGate.of(model))


def line(*brains: Brain) -> dict[str, Any]:
    """What a plan needs to know of these models, in the order they are asked."""
    return {"brains": brains, "brain_for": lambda _channel: brains[0], "failover": brains}


def asked(*brains: Brain) -> list[int]:
    """How often each was asked."""
    models = [each.provider for each in brains]
    return [len(model.requests) for model in models if isinstance(model, ScriptedModel)]


async def notices(home: Home, asked: Message) -> list[str]:
    rows = await home.rows(asked.session_id)
    return [row.content for row in rows if row.role is Role.SYSTEM and row.root_id == asked.id]


async def test_the_next_model_answers_and_people_are_told_why(tmp_path: Path, autojump_clock: MockClock) -> None:
    one, two = brain("one", (Fail(kind="auth", message="invalid x-api-key"),)), brain("two", (Say(text="Six."),))
    async with at_home(tmp_path, **line(one, two)) as home:
        message = await home.say("two times three?")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert texts(await home.rows(message.session_id))[-1] == "Six."
        (told,) = await notices(home, message)
        assert "invalid x-api-key" in told
        assert told.endswith("scenario (two) goes on instead.")
        steps = (await home.gateway.history(message.session_id)).steps
        assert [(step.step.provider, step.step.error is None) for step in steps] == [("one", False), ("two", True)]
        assert asked(one, two) == [1, 1], "a refused key is tried once"


async def test_a_call_of_the_first_model_is_answered_to_the_second(tmp_path: Path, autojump_clock: MockClock) -> None:
    async def look() -> str:
        """Look."""
        await trio.lowlevel.checkpoint()
        return "a cat"

    one = brain("one", (Say(text="I look."), Call(name="look")), (Fail(kind="quota"),))
    two = brain("two", (Say(text="It is a cat."),))
    async with at_home(tmp_path, tools=[look], **line(one, two)) as home:
        message = await home.say("what is there?")
        assert (await home.ended(message)).status is Status.PROCESSED
        model = two.provider
        assert isinstance(model, ScriptedModel)
        read = [row.content for row in model.requests[0].history]
        assert read == ["what is there?", "I look.", "look()", "a cat"], "people's notices are not for the model"


async def test_a_passing_failure_is_waited_for_first_and_the_wait_is_shown(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    one, two = brain("one", (Fail(kind="connect", message="no route to the server"),)), brain("two", (Say(text="Hi."),))
    async with at_home(tmp_path, **line(one, two)) as home:
        message = await home.say("hello?")
        shown = await home.hint(lambda event: isinstance(event, ActivityChanged) and bool(event.detail))
        assert isinstance(shown, ActivityChanged)
        assert (shown.activity, shown.root_id) == (Activity.RETRYING, message.id)
        assert "no route" in shown.detail
        assert shown.for_s == home.timers()[0]
        await home.ended(message)
        assert asked(one, two) == [6, 1]
        assert "(tried 6 times)" in (await notices(home, message))[0]


async def test_a_model_that_is_down_is_left_alone_until_its_probe_is_due(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    one, two = brain("one", (Fail(kind="overloaded"),)), brain("two", (Say(text="Hi."),))
    one = Brain(provider=one.provider, gate=ProviderGate("one", Policy(failures=6, probe_every_s=1e6)))
    async with at_home(tmp_path, **line(one, two)) as home:
        await home.ended(await home.say("hello?"))
        assert asked(one, two) == [6, 1]
        again = await home.say("and now?")
        assert (await home.ended(again)).status is Status.PROCESSED
        assert asked(one, two) == [6, 2], "its breaker is open"
        assert "failed 6 times in a row" in (await notices(home, again))[0]


async def test_a_wait_for_the_only_model_is_shown_until_it_is_asked_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    rules = (Rule(when_said="first", moves=(Fail(kind="overloaded"),)), Rule(when_said="", moves=(Say(text="Hi."),)))
    model = ScriptedModel(Scenario(rules=rules), name="one")
    only = Brain(provider=model, gate=ProviderGate("one", Policy(failures=6, probe_every_s=30.0)))
    async with at_home(tmp_path, **line(only)) as home:
        await home.ended(await home.say("first"))
        seen: list[ActivityChanged] = []

        def note(event: Event) -> bool:
            seen.extend([event] if isinstance(event, ActivityChanged) else [])
            return isinstance(event, ActivityChanged) and event.activity is Activity.IDLE

        async with trio.open_nursery() as nursery:
            nursery.start_soon(home.hint, note)
            await trio.testing.wait_all_tasks_blocked()
            assert (await home.ended(await home.say("second"))).status is Status.PROCESSED
        shown = [each.activity for each in seen]
        assert shown == [Activity.THINKING, Activity.RETRYING, Activity.THINKING, Activity.IDLE]
        assert "one: it failed 6 times in a row" in seen[1].detail
        assert seen[1].for_s == 30.0


async def test_when_no_model_can_answer_the_turn_ends_naming_each(tmp_path: Path, autojump_clock: MockClock) -> None:
    one, two = brain("one", (Fail(kind="auth"),)), brain("two", (Fail(kind="model"),))
    async with at_home(tmp_path, **line(one, two)) as home:
        message = await home.ended(await home.say("hello?"))
        assert (message.status, message.metadata["reason"]) == (Status.ERROR, Reason.PROVIDER)
        told = await notices(home, message)
        assert len(told) == 2
        assert told[-1].splitlines()[0] == "No model could answer."
        assert [each.split(":")[0] for each in told[-1].splitlines()[1:]] == ["one", "two"]


async def test_the_model_chosen_in_a_channel_comes_first_and_is_not_asked_twice(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    one, two = brain("one", (Say(text="I am one."),)), brain("two", (Fail(kind="auth"),))
    plan = line(one, two) | {"brain_for": lambda _channel: two}
    async with at_home(tmp_path, **plan) as home:
        message = await home.say("who?")
        await home.ended(message)
        assert texts(await home.rows(message.session_id))[-1] == "I am one."
        assert asked(one, two) == [1, 1]


async def test_a_question_is_answered_again_by_the_first_model_when_it_is_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    rules = (Rule(when_said="first", moves=(Fail(kind="auth"),)), Rule(when_said="", moves=(Say(text="I am back."),)))
    model = ScriptedModel(Scenario(rules=rules), name="one")
    one, two = Brain(provider=model, gate=ProviderGate.of(model)), brain("two", (Say(text="Two."),))
    async with at_home(tmp_path, **line(one, two)) as home:
        first = await home.say("first")
        await home.ended(first)
        await home.ended(await home.say("second"))
        said = [text for text in texts(await home.rows(first.session_id)) if "instead" not in text]
        assert said == ["first", "Two.", "second", "I am back."]
