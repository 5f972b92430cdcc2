"""Every inference of a turn is logged in the session's folder, and no turn cares whether that works (P4, R27)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from ruamel.yaml import YAML

from kesoku_actors.llm.scripted import Call, Cut, Inference, Say, Spend, Think
from kesoku_actors.log import Entry, Logger, mask_secrets
from kesoku_actors.protocol import Status
from kesoku_actors.turnlog import TurnLogOptions, file_name
from tests.paths.house import Home, at_home, here_and_now

OPTIONS = TurnLogOptions(mask=mask_secrets(["hunter2-hunter2"]), run=here_and_now)


async def look(place: str) -> str:
    """Look somewhere.

    Args:
        place: where to look
    """
    await trio.sleep(1)
    return f"the key of {place} is hunter2-hunter2"


@asynccontextmanager
async def logged(folder: Path, *inferences: Inference, **changes: Any) -> AsyncIterator[Home]:
    async with at_home(folder, inferences, tools=[look], turn_log=OPTIONS, **changes) as home:
        yield home


def files(folder: Path, session_id: str) -> dict[int, Any]:
    found = sorted((folder / "sessions" / session_id).glob("llm-turn-*.log.yaml"))
    documents = [YAML(typ="safe").load(path.read_bytes()) for path in found]
    return {document["metadata"]["idx"]: document for document in documents}


async def test_a_turn_with_a_tool_leaves_a_file_for_each_inference(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    first = (Think(thought="Where?"), Call(name="look", arguments={"place": "home"}), Spend(input=5, output=2))
    async with logged(tmp_path, first, (Say(text="There."),)) as home:
        asked = await home.say("Where is it?")
        await home.ended(asked)
        steps = (await home.gateway.history(asked.session_id)).steps
    one, two = files(tmp_path, asked.session_id).values()
    assert [one["metadata"]["idx"], two["metadata"]["idx"]] == [1, 2]
    assert [one["metadata"]["inference_id"], two["metadata"]["inference_id"]] == [
        stored.step.inference_id for stored in steps
    ]
    assert one["metadata"]["root_id"] == asked.id
    assert one["response"]["calls"] == [{"name": "look", "id": "", "arguments": {"place": "home"}}]
    assert (one["response"]["thoughts"], one["response"]["tokens"]["input"]) == ("Where?", 5)
    assert one["tools"][0]["parameters"][0] == {
        "name": "place",
        "type": "string",
        "required": True,
        "description": "where to look",
    }
    assert two["history"][-1]["content"].endswith("is ***")
    assert two["response"]["text"] == "There."


async def test_interrupted_and_failed_inferences_are_logged_with_what_had_come(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    slow = (Say(text="It is a very long story.", word_delay_s=1.0),)
    async with logged(tmp_path, slow, (Say(text="Well,"), Cut()), (Say(text="Short."),)) as home:
        first = await home.say("Tell me.")
        await trio.sleep(3.5)
        second = await home.say("Shorter, please.")
        await home.ended(second)
    responses = [one["response"] for one in files(tmp_path, first.session_id).values()]
    assert [one["state"] for one in responses] == ["cancelled", "failed", "finished"]
    assert responses[0]["text"].split() == ["It", "is", "a"]
    assert (responses[1]["text"], responses[1]["error"]["kind"]) == ("Well,", "cut")


async def test_the_index_goes_on_after_a_restart_also_when_the_files_are_gone(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    for life in range(3):
        async with logged(tmp_path, (Say(text="Yes."),), seed=life) as home:
            asked = await home.say(f"Question {life}")
            await home.ended(asked)
        if life == 1:
            for path in (tmp_path / "sessions" / asked.session_id).iterdir():
                path.unlink()
    assert list(files(tmp_path, asked.session_id)) == [3]


async def test_turns_complete_whatever_becomes_of_the_folder(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    told: list[Entry] = []
    log = Logger(sink=told.append, wall=trio.current_time)
    answers = [(Say(text="Yes."),) for _ in range(4)]
    async with at_home(tmp_path, answers, turn_log=OPTIONS, log=log) as home:
        session_id = (await home.ended(await home.say("First"))).session_id
        folder = tmp_path / "sessions" / session_id
        shutil.rmtree(folder)
        assert (await home.ended(await home.say("Second"))).status is Status.PROCESSED
        shutil.rmtree(folder)
        folder.write_text("in the way")
        for text in ("Third", "Fourth"):
            assert (await home.ended(await home.say(text))).status is Status.PROCESSED
        await trio.testing.wait_all_tasks_blocked()
    assert len([entry for entry in told if "turn log" in entry.event]) == 1


async def test_a_cleared_session_leaves_no_log_behind(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with logged(tmp_path, (Say(text="A long answer for you.", word_delay_s=1.0),)) as home:
        asked = await home.say("Hello")
        await trio.sleep(2.5)
        await home.gateway.clear(asked.session_id)
        await home.until(lambda row: row.id == asked.id and row.has_ended)
        await trio.testing.wait_all_tasks_blocked()
        while await home.gateway.reader.closed_sessions():
            await trio.testing.wait_all_tasks_blocked()
    assert not (tmp_path / "sessions" / asked.session_id).exists()


async def test_without_the_option_nothing_is_written(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="Yes."),)]) as home:
        asked = await home.ended(await home.say("Hello"))
    assert asked.status is Status.PROCESSED
    assert not (tmp_path / "sessions" / asked.session_id / file_name(1)).exists()
