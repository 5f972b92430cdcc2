"""M8 on the whole path: a turn waits for the files of its prompt, a minute at most, and what comes late is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Inference, Say
from kesoku_actors.protocol import BusyMode, Message, Reason, Status, Stop, expected
from kesoku_actors.session.arrivals import LONGEST_WAIT_S
from tests.paths.house import Home, at_home, texts

FINE: Inference = (Say(text="Fine."),)
SAVED = "[attachment a.png (image/png): attachments/a.png]"
MISSING = "[attachment a.png: did not arrive in time]"


async def send(home: Home, content: str = "Look.", names: Sequence[str] = ("a.png",)) -> Message:
    return await home.say(content, metadata={"attachments": [expected(name, "image/png").as_data() for name in names]})


async def settle(home: Home, message: Message, index: int = 0, name: str = "a.png") -> Message:
    now = await home.gateway.settle_attachment(message.id, index, path=f"attachments/{name}")
    assert now is not None
    return now


@pytest.mark.parametrize("seconds", [0.0, 1.0, 20.0, 59.0])
async def test_a_turn_waits_for_a_file_and_goes_on_as_soon_as_it_is_saved(
    tmp_path: Path, autojump_clock: MockClock, seconds: float
) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        begun = trio.current_time()
        message = await send(home)
        if seconds:
            await trio.sleep(seconds)
        assert home.model.requests == []
        await settle(home, message)
        assert (await home.ended(message)).status is Status.PROCESSED
        assert trio.current_time() - begun == pytest.approx(seconds, abs=0.5)
        assert home.prompts() == [[f"Look.\n{SAVED}"]]


async def test_a_turn_waits_for_every_file_of_its_prompt(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        message = await send(home, names=("a.png", "b.png"))
        await trio.sleep(5)
        await settle(home, message, 1, "b.png")
        await trio.sleep(5)
        assert home.model.requests == []
        assert await home.gateway.settle_attachment(message.id, 0, reason="the link is dead") is not None
        await home.ended(message)
        [[read]] = home.prompts()
        assert read.splitlines()[1:] == [
            "[attachment b.png (image/png): attachments/b.png]",
            "[attachment a.png: not saved, the link is dead]",
        ]


async def test_after_a_minute_the_turn_goes_on_and_says_what_is_missing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        begun = trio.current_time()
        message = await send(home, names=("a.png", "b.png"))
        await settle(home, message, 1, "b.png")
        assert (await home.ended(message)).status is Status.PROCESSED
        assert trio.current_time() - begun == pytest.approx(LONGEST_WAIT_S, abs=0.5)
        assert home.prompts() == [[f"Look.\n[attachment b.png (image/png): attachments/b.png]\n{MISSING}"]]


async def test_a_file_that_comes_late_starts_nothing_and_is_read_with_the_next_message(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [FINE, FINE]) as home:
        first = await send(home)
        await home.ended(first)
        await settle(home, first)
        await trio.sleep(3600)
        assert len(home.model.requests) == 1
        second = await home.say("And now?")
        await home.ended(second)
        before, after = home.prompts()
        assert before == [f"Look.\n{MISSING}"]
        assert after[:2] == [*before, "Fine."], "what was read is not changed"
        assert len(after) == 4
        assert "And now?" in after
        [notice] = [text for text in after if SAVED in text]
        rows = await home.rows(first.session_id)
        [told] = [row for row in rows if row.content == notice]
        assert (told.root_id, told.status) == (second.id, Status.PROCESSED)


async def test_a_file_that_comes_while_the_model_answers_does_not_disturb_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="I wait no more.", word_delay_s=5.0),)]) as home:
        message = await send(home)
        await trio.sleep(LONGEST_WAIT_S + 8)
        assert len(home.model.requests) == 1
        await settle(home, message)
        ended = await home.ended(message)
        assert (ended.status, ended.content) == (Status.PROCESSED, f"Look.\n{MISSING}")
        assert (len(home.model.requests), home.model.cancelled) == (1, [])


async def test_a_message_ends_the_wait_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        first = await send(home)
        await trio.sleep(5)
        begun = trio.current_time()
        second = await home.say("Never mind the picture.")
        old = await home.ended(first)
        assert trio.current_time() - begun < 1
        assert (old.status, old.metadata["reason"]) == (Status.INTERRUPTED, Reason.INTERRUPTED)
        await trio.sleep(5)
        await settle(home, first)
        assert (await home.ended(second)).status is Status.PROCESSED
        assert trio.current_time() - begun < 6
        assert home.prompts() == [[f"Look.\n{SAVED}", "Never mind the picture."]]


async def test_each_turn_waits_a_minute_at_most_however_often_it_is_interrupted(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        await send(home)
        for word in ("One.", "Two.", "Three."):
            await trio.sleep(40)
            last = await home.say(word)
        begun = trio.current_time()
        assert (await home.ended(last)).status is Status.PROCESSED
        assert trio.current_time() - begun == pytest.approx(LONGEST_WAIT_S, abs=0.5)
        assert home.prompts() == [[f"Look.\n{MISSING}", "One.", "Two.", "Three."]]


async def test_a_stop_ends_the_wait_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        message = await send(home)
        await trio.sleep(5)
        begun = trio.current_time()
        stop = await home.gateway.stop(message.session_id)
        assert isinstance(stop, Stop)
        assert (await home.gateway.stop_receipt(stop)).ended == (message.id,)
        assert trio.current_time() - begun < 1
        await settle(home, message)
        await home.ended(await home.say("And now?"))
        assert home.prompts() == [[f"Look.\n{SAVED}", "And now?"]], "kept, and read by the next turn"


async def test_the_files_of_a_message_that_waits_are_awaited_by_its_own_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="One moment please.", word_delay_s=5.0),), FINE]) as home:
        await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
        await home.say("Hello.")
        await trio.sleep(2)
        second = await send(home)
        third = await send(home, "And this.", names=("a.png",))
        await trio.sleep(3)
        await settle(home, second)
        await home.ended(second)
        assert texts(home.model.requests[1].history)[-1] == f"Look.\n{SAVED}"
        await settle(home, third)
        await home.ended(third)
        assert texts(home.model.requests[2].history)[-1] == f"And this.\n{SAVED}"


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_restart_waits_again_for_what_is_still_expected(
    tmp_path: Path, autojump_clock: MockClock, arrives: bool
) -> None:
    async with at_home(tmp_path, [FINE]) as home:
        message = await send(home)
        await trio.sleep(30)
    assert home.model.requests == []
    async with at_home(tmp_path, [FINE], seed=2) as home:
        begun = trio.current_time()
        await trio.sleep(10)
        if arrives:
            await settle(home, message)
        assert (await home.ended(message)).status is Status.PROCESSED
        assert trio.current_time() - begun == pytest.approx(10 if arrives else LONGEST_WAIT_S, abs=0.5)
        assert home.prompts() == [[f"Look.\n{SAVED if arrives else MISSING}"]]


async def test_a_worker_that_crashes_while_it_waits_is_followed_by_one_that_waits(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def crash(event: object) -> None:
        if armed:
            armed.clear()
            raise RuntimeError("the worker dies")

    armed: list[bool] = []
    async with at_home(tmp_path, [FINE], at_event=crash) as home:
        message = await send(home)
        await trio.sleep(10)
        armed.append(True)
        await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
        await trio.sleep(10)
        assert not armed
        await settle(home, message)
        assert (await home.ended(message)).status is Status.PROCESSED
        assert home.prompts() == [[f"Look.\n{SAVED}"]]
