"""The dispatcher reads the store, the broadcaster tells of it: either may be ahead, and no message is left waiting."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.llm.scripted import Say, Wait
from kesoku_actors.protocol import BusyMode, Channel, Status
from kesoku_actors.session.vocabulary import Finish
from kesoku_actors.store import Durability, StoreOptions
from kesoku_actors.store.access import Inline
from tests.paths.house import at_home

T = TypeVar("T")


@define(eq=False, kw_only=True)
class Slow(Inline):
    """A store whose reads may take long, for some readers; to those it is a busy disk."""

    held: dict[str, trio.Event] = field(factory=dict)
    """By the last part of the reading task's name; its reads begin when the event is set."""

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        reader = re.split("[./]", trio.lowlevel.current_task().name)[-1]
        if reader in self.held:
            await self.held[reader].wait()
        return await super().read(query)


async def test_a_message_that_the_dispatcher_reads_before_the_worker_is_told_is_not_left_when_that_worker_ends(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The dispatcher reads in the store what the broadcaster, held up, has not told the session's worker.

    That worker ends with its turn and never hears of it. The broadcaster tells of it when no worker is left, and to
    the dispatcher it is old news by then.
    """
    dispatcher, broadcaster = trio.Event(), trio.Event()
    access = Slow(held={"_watch": dispatcher})
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, access=access)
    script = [(Wait(seconds=60.0), Say(text="One.")), (Say(text="Two."),)]
    async with at_home(tmp_path, script, store=store) as home:
        first = await home.say("The first.", external_id="1")
        await home.until(lambda row: row.id == first.id)
        await home.say("The first.", external_id="1")  # said again: it gets its worker without the dispatcher's reading
        await home.until(lambda row: row.id == first.id and row.status is Status.PROCESSING)

        access.held["gateway"] = broadcaster
        await home.gateway.set_mode(Channel(chatbot_id="test", channel_id="elsewhere"), BusyMode.QUEUE)
        second = await home.say("The second.")
        dispatcher.set()
        await trio.sleep(1)
        seen = home.gateway.statistics()
        assert [one.cursor >= second.rev for one in seen.subscriptions if one.label == "dispatcher"] == [True]
        assert (seen.last_rev < second.rev, seen.workers) == (True, 1), "nobody told the worker, which lives"
        await home.until_recorded(lambda: bool(home.record) and Finish(clean=True) in home.record[-1].effects)

        broadcaster.set()
        with trio.fail_after(60):
            assert (await home.ended(second)).status is Status.PROCESSED
    assert home.prompts()[-1][-1] == "The second."
