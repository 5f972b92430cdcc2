"""The scripted model plays what it is given, and its files are read strictly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from kesoku_actors.errors import ConfigError
from kesoku_actors.llm.port import Finish, Piece, ProviderError, Purpose, Remedy
from kesoku_actors.llm.scenario_file import DEMO, LARGEST_FILE, load_scenario
from kesoku_actors.llm.scripted import (
    AT_THE_END,
    Call,
    Cut,
    End,
    Fail,
    Rule,
    Say,
    Scenario,
    ScriptedModel,
    Spend,
    Stall,
    Think,
    Wait,
)
from kesoku_actors.protocol import DeltaKind, Usage

from .examples import DATE_TOOL, asking, called, ignore, result, said


async def test_what_is_asked_beside_the_turns_uses_no_inference_up() -> None:
    asides = {Purpose.SUMMARY: ((Say(text="first"),), (Say(text="then"),))}
    model = ScriptedModel(Scenario(inferences=((Say(text="answer"),),), asides=asides))
    for purpose, text in (
        ("summary", "first"),
        ("summary", "then"),
        ("summary", "then"),
        ("title", "A scripted title."),
    ):
        request = evolve(asking(said(1, "Hi")), purpose=Purpose(purpose))
        assert (await model.infer(request, ignore)).text == text
    assert (await model.infer(asking(said(1, "Hi")), ignore)).text == "answer"


def test_a_file_says_what_is_played_beside_the_turns_and_how_much_the_model_reads(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text('context_tokens = 900\n[asides]\nsummary = [[{ say = "Short." }]]\n')
    scenario = load_scenario(path)
    assert scenario == Scenario(context_tokens=900, asides={Purpose.SUMMARY: ((Say(text="Short."),),)})
    assert ScriptedModel(scenario).context_tokens == 900
    path.write_text('[asides]\nsumary = [[{ say = "Short." }]]\n')
    with pytest.raises(ConfigError, match="sumary"):
        load_scenario(path)


async def test_it_streams_thoughts_and_words_and_returns_them_whole(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(
        Scenario(
            inferences=(
                (
                    Think(thought="Hm, well."),
                    Say(text="Good morning ", word_delay_s=1.0),
                    Say(text="to you."),
                    Spend(input=3, output=4),
                ),
            )
        )
    )
    pieces: list[tuple[float, Piece]] = []
    began = trio.current_time()
    reply = await model.infer(asking(said(1, "Hi")), lambda piece: pieces.append((trio.current_time() - began, piece)))
    assert reply.text == "Good morning to you."
    assert reply.thought == "Hm, well."
    assert (reply.finish, reply.usage) == (Finish.STOP, Usage(input=3, output=4))
    assert [piece.text for _, piece in pieces] == ["Hm, ", "well.", "Good ", "morning ", "to ", "you."]
    assert [at for at, _ in pieces] == pytest.approx([0, 0, 1, 2, 2, 2])
    assert [piece.kind for _, piece in pieces][:3] == [DeltaKind.THOUGHT, DeltaKind.THOUGHT, DeltaKind.TEXT]


async def test_parallel_calls_keep_their_order_and_their_odd_ids() -> None:
    model = ScriptedModel(
        Scenario(inferences=((Call(name="a", id="x", arguments={"n": 1}), Call(name="b", id="x"), Call(name="c")),))
    )
    reply = await model.infer(asking(said(1, "Go")), ignore)
    assert [(call.name, call.id, dict(call.arguments)) for call in reply.calls] == [
        ("a", "x", {"n": 1}),
        ("b", "x", {}),
        ("c", "", {}),
    ]
    assert reply.finish is Finish.CALLS


async def test_each_request_plays_the_next_inference_and_the_end_is_told() -> None:
    model = ScriptedModel(Scenario(inferences=((Say(text="one"),), (Say(text="two"), End(finish=Finish.LENGTH)))))
    replies = [await model.infer(asking(said(1, "Hi")), ignore) for _ in range(3)]
    assert [reply.text for reply in replies] == ["one", "two", AT_THE_END]
    assert [reply.finish for reply in replies] == [Finish.STOP, Finish.LENGTH, Finish.STOP]


async def test_a_repeating_scenario_begins_again() -> None:
    model = ScriptedModel(Scenario(inferences=((Say(text="one"),), (Say(text="two"),)), repeat=True))
    texts = [(await model.infer(asking(said(1, "Hi")), ignore)).text for _ in range(5)]
    assert texts == ["one", "two", "one", "two", "one"]


async def test_an_empty_repeating_scenario_says_that_it_has_nothing() -> None:
    model = ScriptedModel(Scenario(repeat=True))
    assert (await model.infer(asking(said(1, "Hi")), ignore)).text == AT_THE_END


async def test_rules_answer_by_what_must_be_answered_and_use_no_inference_up() -> None:
    call = called(2)
    model = ScriptedModel(
        Scenario(
            inferences=((Say(text="scenario"),),),
            rules=(
                Rule(when_said="weather", moves=(Call(name="date"),)),
                Rule(when_result="Monday", moves=(Say(text="It rains."),)),
            ),
        )
    )
    asked = said(1, "How is the weather?")
    assert (await model.infer(asking(asked), ignore)).calls[0].name == "date"
    assert (await model.infer(asking(asked, call, result(3, call, "Monday")), ignore)).text == "It rains."
    assert (await model.infer(asking(asked, call, result(3, call, "Friday")), ignore)).text == "scenario"


@pytest.mark.parametrize(
    ("move", "kind", "remedy"),
    [
        (Fail(kind="rate_limit", retry_after_s=7.0), "rate_limit", Remedy.RETRY),
        (Fail(kind="auth"), "auth", Remedy.TELL),
        (Fail(kind="auth", remedy=Remedy.FAIL_OVER), "auth", Remedy.FAIL_OVER),
        (Cut(), "cut", Remedy.RETRY),
    ],
)
async def test_errors_carry_what_table_p2_says(move: Fail | Cut, kind: str, remedy: Remedy) -> None:
    model = ScriptedModel(Scenario(inferences=((Say(text="half"), move),)))
    with pytest.raises(ProviderError) as caught:
        await model.infer(asking(said(1, "Hi")), ignore)
    assert (caught.value.kind, caught.value.remedy) == (kind, remedy)
    assert caught.value.retry_after_s == (7.0 if kind == "rate_limit" else None)


async def test_a_stall_lasts_until_it_is_cancelled_and_is_recorded(autojump_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(Scenario(inferences=((Wait(seconds=5), Stall()),)))
    with trio.move_on_after(3600):
        await model.infer(asking(said(1, "Hi"), inference_id="stalled"), ignore)
    assert model.cancelled == ["stalled"]
    assert [request.inference_id for request in model.requests] == ["stalled"]


def test_a_file_gives_the_same_scenario_as_values(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(
        """
        repeat = true
        inferences = [
            [{ think = "Hm" }, { call = "date", id = "a", arguments = { zone = "UTC", deep = [1, { b = 2 }] } }],
            [{ say = "Hello", word_delay_s = 1 }, { wait_s = 2 }, { spend = { input = 3 } }, { end = "length" }],
            [{ fail = "rate_limit", retry_after_s = 3 }], [{ stall = true }], [{ cut = true }],
        ]
        [[rules]]
        when_result = "Monday"
        moves = [{ say = "It rains." }]
        """,
        encoding="utf-8",
    )
    assert load_scenario(path) == Scenario(
        repeat=True,
        inferences=(
            (Think(thought="Hm"), Call(name="date", id="a", arguments={"zone": "UTC", "deep": [1, {"b": 2}]})),
            (Say(text="Hello", word_delay_s=1.0), Wait(seconds=2.0), Spend(input=3), End(finish=Finish.LENGTH)),
            (Fail(kind="rate_limit", retry_after_s=3.0),),
            (Stall(),),
            (Cut(),),
        ),
        rules=(Rule(when_result="Monday", moves=(Say(text="It rains."),)),),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("repeet = true", "no key 'repeet' here; the keys are inferences, rules, repeat, asides, context_tokens @"),
        (
            'inferences = [[{ say = "a", cal = "b" }]]',
            "no key 'cal' here; the keys are say, word_delay_s @ scenario.inferences[0][0]",
        ),
        ("inferences = [[{ say = 3 }]]", "expected str, got int @ scenario.inferences[0][0].text"),
        ("inferences = [[{ }]]", "exactly one of the keys"),
        ('inferences = [[{ say = "a", think = "b" }]]', "exactly one of the keys"),
        ("inferences = [[4]]", "a move is a table"),
        ("inferences = [[{ stall = 3 }]]", "stall is true or absent"),
        ('inferences = [[{ end = "later" }]]', "expected one of stop, calls"),
        ("inferences = [[{ spend = { inputs = 3 } }]]", "'inputs' here; the keys are input, cached, output, thinking"),
        ('inferences = [[{ call = "a", arguments = { day = 1979-05-27 } }]]', "the argument day cannot be sent"),
        ('inferences = [[{ call = "a", arguments = { b = [nan] } }]]', "the argument b cannot be sent: nan is no JSON"),
        ("inferences = [[{ wait_s = -1 }]]", "wait_s must be from 0 to 86400 seconds, not -1"),
        ('inferences = [[{ say = "a", word_delay_s = -0.5 }]]', "word_delay_s must be"),
        ('inferences = [[{ fail = "auth", retry_after_s = -1 }]]', "retry_after_s must be"),
        ("inferences = [[{ spend = { output = -3 } }]]", "output must be from 0 to 1000000000 tokens, not -3"),
        (f"inferences = {'[' * 500}{']' * 500}", "scenario"),
        (f"inferences = {'[' * 50_000}{']' * 50_000}", "nested too deeply"),
        (f"inferences = [[{{ call = 'a', arguments = {{ b = {'[' * 300}{']' * 300} }} }}]]", "nested deeper"),
        (f"repeat = {'9' * 5000}", "not TOML"),
        ("inferences = [", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_key(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    assert told in str(caught.value)
    assert str(path) in str(caught.value)


async def test_the_demo_runs_two_commands_at_once_and_then_answers_whoever_asks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    model = ScriptedModel(load_scenario(DEMO))
    for _ in range(2):
        asked = said(1, "Anything")
        reply = await model.infer(asking(asked), ignore)
        assert [call.arguments["command"] for call in reply.calls] == ["pwd", "echo hello"]
        calls = [called(2 + at, call.name, call.id, **call.arguments) for at, call in enumerate(reply.calls)]
        results = [result(4 + at, call, "done") for at, call in enumerate(calls)]
        final = await model.infer(asking(asked, *calls, *results), ignore)
        assert (final.finish, "Both commands have run" in final.text) == (Finish.STOP, True)


async def test_what_it_is_asked_is_told_as_json_data_before_it_plays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    told: list[Any] = []
    call = called(2, "date", "x", zone="UTC")
    request = asking(
        said(1, "Hi"),
        call,
        result(3, call, "Monday"),
        tools=(DATE_TOOL,),
        nudge="Go on",
        sent=lambda body: told.append(body()),
    )
    with pytest.raises(ProviderError):
        await ScriptedModel(Scenario(inferences=((Fail(kind="busy"),),))).infer(request, ignore)
    (asked,) = told
    assert json.loads(json.dumps(asked)) == asked
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "tool"]
    assert asked["messages"][1]["arguments"] == {"zone": "UTC"}
    assert (asked["system"], asked["nudge"], asked["tools"][0]["name"]) == ("Be brief.", "Go on", "date")


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_scenario(tmp_path / "none.toml")


def test_what_is_no_file_of_a_sane_size_is_refused_and_not_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (huge := tmp_path / "huge").write_bytes(b"#" * (LARGEST_FILE + 1))
    for path, told in ((pipe, "not a regular file"), (Path("/dev/zero"), "not a regular file"), (huge, "larger than")):
        with pytest.raises(ConfigError, match=told):
            load_scenario(path)
