"""Histories kept between the turns of a session: the next turn reads what the store has, without reading it."""

from __future__ import annotations

import gc
from contextlib import aclosing
from pathlib import Path

from trio.testing import MockClock, wait_all_tasks_blocked

from kesoku_actors.gateway import Gateway, Latches
from kesoku_actors.llm.kept_talk import KeptTalks
from kesoku_actors.llm.scripted import Say
from kesoku_actors.protocol import Message, Removed, Role, Status
from kesoku_actors.session import Histories, History

from ..llm.changing_sessions import long_talk, rows_made
from .house import Home, at_home, texts


async def test_what_others_change_between_two_turns_is_in_the_next_prompt(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, [(Say(text="One."),), (Say(text="Two."),)]) as home:
        first = await home.ended(await home.say("Count."))
        (answer,) = [row for row in await home.rows(first.session_id) if row.role is Role.ASSISTANT]
        assert await home.gateway.delivered(answer.id)
        await home.ended(await home.say("Go on."))
        history = home.model.requests[-1].history
        assert texts(history) == ["Count.", "One.", "Go on."]
        assert history[1].status is Status.DELIVERED


async def test_the_session_used_longest_ago_is_forgotten_first(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path) as home:
        await _leaves_only_the_last(home.gateway, Histories(Latches(), max_sessions=1))
        await _leaves_only_the_last(home.gateway, Histories(Latches(), max_sessions=0), left=0)


async def _leaves_only_the_last(gateway: Gateway, histories: Histories, left: int = 1) -> None:
    taken: dict[str, History] = {}
    for session_id in ("a", "b"):
        taken[session_id] = await histories.take(gateway, session_id)
    for session_id, history in taken.items():
        histories.leave(session_id, history)
    assert list(histories.latches.keepers) == ["b"][:left]
    assert (await histories.take(gateway, "a")) is not taken["a"]
    assert ((await histories.take(gateway, "b")) is taken["b"]) is bool(left)


async def test_nothing_is_kept_of_a_session_that_was_cleared(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, [(Say(text="One."),), (Say(text="Two."),)]) as home:
        session_id = (await home.ended(await home.say("Count."))).session_id
        await wait_all_tasks_blocked()
        home.model.requests.clear()
        home.record.clear()
        assert _held(session_id) != []
        await _cleared(home, session_id)
        await home.ended(await home.say("Hello.", channel_id="another"))  # who listens holds what it heard last
        await wait_all_tasks_blocked()
        assert _held(session_id) == []


async def test_a_history_whose_session_was_cleared_meanwhile_is_not_kept(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path) as home:
        histories = Histories(home.gateway.latches)
        session_id = (await home.ended(await home.say("Count."))).session_id
        history = await histories.take(home.gateway, session_id)
        await _cleared(home, session_id)
        histories.leave(session_id, history)
        assert await histories.take(home.gateway, session_id) is not history


async def _cleared(home: Home, session_id: str) -> None:
    """Clear a session, and wait until its rows are gone and everybody knows."""
    async with aclosing(home.gateway.listen(hints=False)) as events:
        await home.gateway.clear(session_id)
        async for event in events:
            if isinstance(event, Removed) and event.session_id == session_id:
                break
    await wait_all_tasks_blocked()


def _held(session_id: str) -> list[Message]:
    """Return the rows of a session that are in memory."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, Message) and each.session_id == session_id]


async def test_talks_as_models_were_sent_them_are_kept_within_a_bound_the_latest_longest(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    measured = KeptTalks()
    rows_made("openai", long_talk("openai", measured))
    async with at_home(tmp_path) as home:
        histories = Histories(Latches(), max_talks=2 * measured.size)
        taken = {session_id: await histories.take(home.gateway, session_id) for session_id in ("a", "b", "c")}
        for session_id, history in taken.items():
            rows_made("openai", long_talk("openai", history.talks))
            histories.leave(session_id, history)
        assert [history.talks.rows for history in taken.values()] == [0, measured.rows, measured.rows]
        assert await histories.take(home.gateway, "a") is taken["a"], "the history itself is still kept"
