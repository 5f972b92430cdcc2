"""B1 and I9: nothing is missed when publications are lost, the broadcaster crashes, or the store dies unheard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import trio
from attrs import define, evolve, field
from trio.testing import MockClock

from kesoku_actors.actors import ChildSpec, SupervisorSpec, run_system
from kesoku_actors.gateway import Announcements, Broadcaster, Hint, Latches, Subscriptions
from kesoku_actors.gateway.filters import Filter
from kesoku_actors.gateway.subscriptions import Listening
from kesoku_actors.protocol import (
    Activity,
    ActivityChanged,
    ApprovalChanged,
    BusyMode,
    CallState,
    Changed,
    Event,
    Stop,
    Waiting,
)
from kesoku_actors.session import remit_of
from kesoku_actors.store import Durability, Publication, StoreOptions
from tests.paths.house import Home, at_home


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

    looks: int = 0
    """How often it was told that a person may have answered."""

    def approvals_changed(self) -> None:
        self.looks += 1


@asynccontextmanager
async def narrow(home: Home, session_id: str, **limits: int) -> AsyncIterator[tuple[Announcements, Broadcaster, Heard]]:
    """Run a second broadcaster over the same store, with little room, and a latch of the session."""
    announcements, latch = Announcements(**limits), Heard()
    broadcaster = Broadcaster(
        announcements=announcements,
        subscriptions=Subscriptions(),
        latches=Latches(),
        reader=home.gateway.reader,
        log=home.gateway.log,
    )
    broadcaster.latches.attach(session_id, latch)
    child = ChildSpec(id="narrow", start=broadcaster.run)
    async with run_system(SupervisorSpec(id="test", children=(child,))):
        yield announcements, broadcaster, latch


async def test_publications_that_did_not_fit_are_read_back_without_waiting_for_another(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, channels=remit_of(())) as home:
        session_id = (await home.say("before")).session_id
        async with narrow(home, session_id, most=1) as (announcements, _, latch):
            base = await home.gateway.reader.head()
            first = await home.say("fits")
            heard = await home.gateway.reader.changes(base, 10)
            second = await home.say("is lost")
            lost = await home.gateway.reader.changes(heard.rev, 10)
            stop = await home.gateway.stop(session_id, second.id)
            await home.gateway.set_mode(home.channel, BusyMode.QUEUE)
            announcements.publish(heard)
            announcements.publish(lost)
            announcements.hint(Hint(event=ActivityChanged(session_id="s", activity=Activity.IDLE), channel=None))
            assert (announcements.lost, announcements.dropped) == (True, 1)
            await trio.testing.wait_all_tasks_blocked()
            assert isinstance(stop, Stop)
            assert latch.messages == [first.id, second.id]
            assert (latch.stops, latch.modes) == ([stop.seq], [BusyMode.QUEUE])
            assert not announcements.lost


async def test_a_publication_that_was_never_handed_over_shows_as_a_gap(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, channels=remit_of(())) as home:
        session_id = (await home.say("before")).session_id
        async with narrow(home, session_id) as (announcements, _, latch):
            first = await home.say("nobody publishes this")
            base = await home.gateway.reader.head()
            second = await home.say("shows the gap")
            announcements.publish(await home.gateway.reader.changes(base, 10))
            await trio.testing.wait_all_tasks_blocked()
            assert latch.messages == [first.id, second.id]


async def test_who_has_a_waiting_call_in_hand_looks_when_it_is_answered_and_after_a_loss(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with at_home(tmp_path, channels=remit_of(())) as home:
        session_id = (await home.say("before")).session_id
        async with narrow(home, session_id, most=1) as (announcements, broadcaster, latch):
            head = await home.gateway.reader.head()
            told: list[Event] = []

            async def listen(*, task_status: trio.TaskStatus[None]) -> None:
                subscription = broadcaster.subscriptions.add(
                    Filter(session_id=session_id), label="t", after=None, capacity=9
                )
                listening = Listening(broadcaster.subscriptions, subscription, home.gateway.reader, home.gateway.log)
                async with aclosing(listening) as events:
                    task_status.started()
                    async for event in events:
                        told.append(event)

            async with trio.open_nursery() as nursery:
                await nursery.start(listen)
                for state in (CallState.WAITING, CallState.COMMITTED):
                    changed = ("call", session_id, state)
                    announcements.publish(Publication(base=head, rev=head, changed=(), approvals=(changed,)))
                    await trio.testing.wait_all_tasks_blocked()
                assert [(event.call_id, event.state) for event in told if isinstance(event, ApprovalChanged)] == [
                    ("call", CallState.WAITING),
                    ("call", CallState.COMMITTED),
                ]
                assert latch.looks == 1, "that it waits is no answer"
                for _ in range(3):
                    announcements.publish(Publication(base=head, rev=head, changed=(), approvals=(changed,)))
                assert announcements.lost
                await trio.testing.wait_all_tasks_blocked()
                assert latch.looks > 1
                nursery.cancel_scope.cancel()


async def test_a_stop_without_a_worker_and_a_clear_are_called_out(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with at_home(tmp_path, channels=remit_of(())) as home:
        session_id = (await home.say("before")).session_id
        async with narrow(home, "another session") as (announcements, broadcaster, _):
            base = await home.gateway.reader.head()
            await home.gateway.clear(session_id)
            announcements.publish(evolve(await home.gateway.reader.changes(base, 10), base=base - 1, rev=base))
            announcements.lost = True
            announcements.ring()
            with trio.fail_after(5):
                assert await broadcaster.unattended.next() == session_id
                assert await broadcaster.closed.next() == session_id


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
        await home.say("committed, and nobody heard")
        await trio.testing.wait_all_tasks_blocked()
        assert heard == ["committed, and nobody heard"]
        nursery.cancel_scope.cancel()
