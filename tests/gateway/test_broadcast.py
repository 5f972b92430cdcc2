"""B1 and I9: nothing is missed when publications are lost, the broadcaster crashes, or the store dies unheard."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from kesoku_actors.actors import ActorStopped, ChildSpec, Mailbox, SupervisorSpec, run_system
from kesoku_actors.gateway import Broadcaster, BroadcastMessage, Latches, Publisher, Subscriptions
from kesoku_actors.protocol import BusyMode, Changed, Stop, Waiting
from kesoku_actors.store import Durability, Publication, StoreOptions
from tests.paths.house import at_home


@define(eq=False)
class Heard:
    """A latch that keeps what it was told."""

    messages: list[str] = field(factory=list)
    withdrawn: list[str] = field(factory=list)
    stops: list[int] = field(factory=list)
    modes: list[BusyMode] = field(factory=list)

    def message_waits(self, message: Waiting) -> None:
        self.messages.append(message.id)

    def message_withdrawn(self, message_id: str) -> None:
        self.withdrawn.append(message_id)

    def attachments_changed(self, message_id: str) -> None:
        raise AssertionError("nothing is attached here")

    def stop_stored(self, stop: Stop) -> None:
        self.stops.append(stop.seq)

    def mode_set(self, mode: BusyMode) -> None:
        self.modes.append(mode)

    def approval_answered(self, call_id: str, approved: bool) -> None:
        raise AssertionError("nothing waits for approval here")


async def test_publications_that_did_not_fit_are_read_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, channels=()) as home:
        reader, session_id = home.gateway.reader, (await home.say("before")).session_id
        box: Mailbox[BroadcastMessage] = Mailbox("narrow", capacity=1)
        publisher, latches, latch = Publisher(ref=box.ref), Latches(), Heard()
        narrow = Broadcaster(subscriptions=Subscriptions(), latches=latches, publisher=publisher, reader=reader)
        latches.attach(session_id, latch)

        async def changes(after: int) -> Publication:
            return await reader.changes(after, 10)

        child = ChildSpec(id="narrow", start=narrow.run, mailbox=box)
        async with run_system(SupervisorSpec(id="test", children=(child,))):
            base = await reader.head()
            first = await home.say("heard")
            heard = await changes(base)
            second = await home.say("lost")
            lost = await changes(heard.rev)
            publisher(heard)  # handed over
            publisher(heard)  # fills the mailbox, and changes nothing
            publisher(lost)
            assert publisher.lost == 1
            await trio.testing.wait_all_tasks_blocked()
            assert latch.messages == [first.id]
            stop = await home.gateway.stop(session_id, second.id)
            await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
            base = await reader.head()
            third = await home.say("shows the gap")
            publisher(await changes(base))
            await trio.testing.wait_all_tasks_blocked()
            assert latch.messages == [first.id, second.id, third.id]
            assert isinstance(stop, Stop)
            assert (latch.stops, latch.modes) == ([stop.seq], [BusyMode.QUEUE])


async def test_a_store_that_died_unheard_shows_the_gap_when_it_starts_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def die(point: str) -> None:
        if armed and point == "store.after_commit":
            armed.clear()
            raise RuntimeError("the store dies between a commit and its publication")

    armed: list[bool] = []
    store = StoreOptions(path=tmp_path / "kesoku.db", durability=Durability.NORMAL, probe=die)
    async with at_home(tmp_path, channels=(), store=store) as home, trio.open_nursery() as nursery:
        await home.say("before")
        heard: list[str] = []

        async def listen(task_status: trio.TaskStatus[None]) -> None:
            async with aclosing(home.gateway.listen(after=await home.gateway.reader.head(), hints=False)) as events:
                task_status.started()
                async for event in events:
                    assert isinstance(event, Changed)
                    heard.append(event.message.content)

        await nursery.start(listen)
        armed.append(True)
        with pytest.raises(ActorStopped):
            await home.say("committed, and nobody heard")
        await trio.testing.wait_all_tasks_blocked()
        assert heard == ["committed, and nobody heard"]
        nursery.cancel_scope.cancel()
