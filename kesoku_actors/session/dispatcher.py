"""The dispatcher: one worker for each session that has something to do, never two (I1).

Each start of it is a new epoch (C2): rows of workers that are gone go back first, calls whose run is gone are
settled as unknown (C3), then every session with work gets a worker. After that it listens for messages that wait.
A message for a session whose worker lives is that worker's business (its latch); one that came while the worker
was ending is looked at again when the store has taken the worker's rows back. A mailbox is a hint, the store is
the truth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

import trio
from attrs import field

from kesoku_actors.actors import Cell, ChildExit, ChildSpec, Dynamic, Restart
from kesoku_actors.gateway import Summons
from kesoku_actors.protocol import Changed, Channel, Event, JobEnding, Outcome, Reason, Removed, Status
from kesoku_actors.session.hands import WorkerParts
from kesoku_actors.session.remit import Remit
from kesoku_actors.session.worker import WorkerEnd, worker
from kesoku_actors.store import BeginEpoch, DeadCall, EndJob, EpochBegun, GiveBack, PostNotice, StageOutcome, WorkerKey
from kesoku_actors.store.again import until_answered
from kesoku_actors.tools import lost_job
from kesoku_actors.values import define, frozen

WAITS = frozenset({Status.PENDING_AGENT})
MAX_CRASHES = 3
BEGIN_S = 30.0
"""Less than the supervisor lets a child take for its start, so that the end of a start says what was wrong."""
FIRST_PAUSE_S = 0.1
"""Before a worker that crashed is started again; doubled with each crash in a row."""
GIVEN_UP = "I failed several times while taking this up, through a fault of mine; it waits until something new comes."
UNKNOWN_TEXT = (
    "The program ended while this call ran; whether it took effect, wholly or partly, is unknown. "
    "Check before repeating it."
)


@frozen(kw_only=True)
class DispatcherParts:
    """What the dispatcher works with."""

    workers: Dynamic
    exits: Exits
    worker_parts: WorkerParts
    remit: Remit
    """The channels this process works for (C2)."""
    end_survivors: Callable[[Sequence[DeadCall]], Awaitable[None]]
    """Ends processes that an earlier life left behind, or names them (C3)."""
    grace_s: float
    """How long a worker may take to end in order (C7)."""


@define(eq=False)
class Exits:
    """Ends of workers on their way to the dispatcher; as many as there are workers. Outlives the tasks."""

    over: list[str] = field(factory=list)
    wake: trio.Event = field(factory=trio.Event)

    def put(self, exit: ChildExit) -> None:
        """Take note that a worker's task is over."""
        self.over.append(exit.id)
        self.wake.set()

    async def next(self) -> str:
        """Wait for the child id of the next worker that is over."""
        while not self.over:
            self.wake = trio.Event()
            await self.wake.wait()
        return self.over.pop(0)


@define(eq=False)
class Crew:
    """The workers of one life of the dispatcher, by session."""

    parts: DispatcherParts
    epoch: int
    """Of the workers that start next."""
    channels: tuple[Channel, ...] | None
    """Whose sessions are worked on; none: all."""
    nursery: trio.Nursery
    started: int = 0
    live: dict[str, WorkerKey] = field(factory=dict)
    ends: dict[str, WorkerEnd] = field(factory=dict)
    again: set[str] = field(factory=set)
    """Sessions that may have work again, heard of while their worker lived."""
    spoken: set[str] = field(factory=set)
    """Sessions that a person spoke to when their worker had detached its latch already."""
    crashes: Counter[str] = field(factory=Counter)
    """Crashes in a row, by session."""

    def look(self, session_id: str) -> None:
        """Start a worker for a session with a message of a person, unless one lives.

        What was broadcast while its latch was attached is the worker's business. But what we read of the store when we
        began to listen may not have been broadcast yet: a worker that ends first never hears of it, so its end looks.
        """
        if session_id in self.live:
            (self.spoken if session_id in self.ends else self.again).add(session_id)
            return
        self.started += 1
        key = WorkerKey(session_id=session_id, epoch=self.epoch, worker=self.started)
        self.live[session_id] = key
        ended = partial(self.ends.__setitem__, session_id)
        self.parts.workers.start_nowait(
            ChildSpec(
                id=_child_id(key),
                start=partial(worker, key=key, parts=self.parts.worker_parts, ended=ended),
                restart=Restart.TEMPORARY,
                shutdown_s=self.parts.grace_s,
            )
        )

    def works_for(self, chatbot_id: str, channel_id: str) -> bool:
        """Tell whether the channel's sessions are worked on."""
        return self.channels is None or Channel(chatbot_id=chatbot_id, channel_id=channel_id) in self.channels

    async def over(self, child_id: str) -> None:
        """A worker's task is over: give its rows back, and look again if something is left to do."""
        session_id = child_id.rpartition(".")[0]
        key = self.live.get(session_id)
        if key is None or child_id != _child_id(key):
            return
        end = self.ends.get(session_id)
        parts, store = self.parts.worker_parts, self.parts.worker_parts.gateway.store
        parts.tools.drop(session_id)
        if end is None or not end.clean:  # one that ended in order holds no row any more, and the next replaces it
            give_back = GiveBack(key=key, clean=False)
            await until_answered(partial(store.give_back, give_back), parts.log, "give back")
            await self._end_calls_of_ended_turns(session_id)
        del self.live[session_id]
        self.ends.pop(session_id, None)
        if end is None:
            self.crashes[session_id] += 1
        else:
            self.crashes.pop(session_id, None)
        look_again = end is None or end.again or not end.clean or session_id in self.again
        self.again.discard(session_id)
        spoken = session_id in self.spoken
        self.spoken.discard(session_id)
        if self.crashes[session_id] > MAX_CRASHES:
            await self._give_up(session_id)
        elif end is None:
            self.nursery.start_soon(self._look_later, session_id, FIRST_PAUSE_S * 2 ** self.crashes[session_id])
        elif spoken:
            self.look(session_id)
        elif look_again:
            await self.look_if_runnable(session_id)

    async def look_if_runnable(self, session_id: str) -> None:
        """Start a worker if the store holds what can become a turn (I6), and the session is ours."""
        if session_id in self.live:
            self.again.add(session_id)
            return
        reader, log = self.parts.worker_parts.gateway.reader, self.parts.worker_parts.log
        session = await until_answered(partial(reader.session, session_id), log, "read a session")
        if session is None or not self.works_for(session.chatbot_id, session.channel_id):
            return
        if await until_answered(partial(reader.is_runnable, session_id), log, "look for work"):
            self.look(session_id)

    async def _look_later(self, session_id: str, pause_s: float) -> None:
        """A worker that crashed may crash again at once."""
        await trio.sleep(pause_s)
        await self.look_if_runnable(session_id)

    async def _end_calls_of_ended_turns(self, session_id: str) -> None:
        """End what still runs of a turn that was given up (C2); asked of the store, as a reply may have been lost."""
        parts = self.parts.worker_parts
        for call in parts.tools.running(session_id):
            read = partial(parts.gateway.reader.message, call.root_id)
            root = await until_answered(read, parts.log, "read a turn's root")
            if root is None or root.has_ended:
                parts.tools.end((call.call_id,))

    async def _give_up(self, session_id: str) -> None:
        """A worker that crashes before it has claimed anything costs no attempts: people are told, once (C2)."""
        parts = self.parts.worker_parts
        parts.log.error("the worker crashes again and again; left until something new comes", session=session_id)
        self.crashes.pop(session_id, None)
        notice = PostNotice(session_id=session_id, content=GIVEN_UP, metadata={"notice": Reason.ATTEMPTS.value})
        await until_answered(partial(parts.gateway.store.notice, notice), parts.log, "tell of crashes")


def _child_id(key: WorkerKey) -> str:
    """Return the worker's name in the supervision tree: an epoch's ids never meet another's."""
    return f"{key.session_id}.{key.epoch}"


async def dispatcher(cell: Cell[None], *, parts: DispatcherParts) -> None:
    """Start workers until stopped."""
    worker_parts = parts.worker_parts
    gateway = worker_parts.gateway
    head = await until_answered(gateway.reader.head, worker_parts.log, "read the last change")
    async with aclosing(gateway.listen(statuses=WAITS, hints=False, label="dispatcher", after=head)) as waiting:
        # A row that is still claimed was not given back, so its worker did not end in order.
        channels = parts.remit.channels
        begun = await _begin_epoch(parts, channels, most_s=BEGIN_S)
        await _settle_dead(parts, begun)
        async with trio.open_nursery() as nursery:
            crew = Crew(parts=parts, epoch=begun.epoch, channels=channels, nursery=nursery)
            for session_id in begun.runnable:
                crew.look(session_id)
            nursery.start_soon(_watch, waiting, crew)
            nursery.start_soon(_answer, gateway.unattended, crew)
            nursery.start_soon(_reap, parts.exits, crew)
            if channels is not None:
                nursery.start_soon(_grow, parts, crew, channels)
            cell.started()
            await cell.stopping.wait()
            nursery.cancel_scope.cancel()


async def _begin_epoch(
    parts: DispatcherParts, channels: tuple[Channel, ...] | None, *, most_s: float = math.inf
) -> EpochBegun:
    """Begin an epoch; one that was begun unheard by a store that crashed is over with the next.

    Raises what the store says of a disk that takes nothing for `most_s` seconds.
    """
    store, log = parts.worker_parts.gateway.store, parts.worker_parts.log
    begin = partial(store.begin_epoch, BeginEpoch(clean=False, channels=channels))
    return await until_answered(begin, log, "begin an epoch", most_s=most_s)


async def _settle_dead(parts: DispatcherParts, begun: EpochBegun) -> None:
    """A started call whose run is gone never runs again: unknown, once (C3). So is a job: lost, once (I8)."""
    tools, store = parts.worker_parts.tools, parts.worker_parts.gateway.store
    running = tools.statistics()
    alive = {run.call_id for run in (*running.running, *running.jobs)}
    dead = [call for call in begun.dead_calls if call.call_id not in alive]
    lost = [job for job in begun.dead_jobs if job.call_id not in alive]
    await parts.end_survivors([*dead, *lost])
    for job in lost:
        end = EndJob(call_id=job.call_id, ending=JobEnding.LOST, detail="", notice=lost_job(job.job, job.title))
        await until_answered(partial(store.end_job, end), parts.worker_parts.log, "tell of a lost job")
    for call in dead:
        outcome = StageOutcome(
            call_id=call.call_id,
            outcome=Outcome.UNKNOWN,
            content=UNKNOWN_TEXT,
            duration_s=0.0,
            metadata={"reason": "process ended"},
        )
        await until_answered(partial(store.stage, outcome), parts.worker_parts.log, "settle a dead call")


async def _grow(parts: DispatcherParts, crew: Crew, known: tuple[Channel, ...]) -> None:
    """Begin with each channel that comes into the remit as with all at the start: a new epoch, for that channel alone.

    Workers of other channels live on: a worker is known by the epoch it was registered in.
    """
    gateway = parts.worker_parts.gateway
    while True:
        fresh = await parts.remit.added(known)
        begun = await _begin_epoch(parts, fresh)
        crew.epoch = begun.epoch  # at once: the store takes no worker of the epoch before any more
        await _settle_dead(parts, begun)
        known = (*known, *fresh)
        crew.channels = known
        # Read again: what was posted there meanwhile was not ours to hear.
        for session_id in await gateway.reader.runnable(fresh):
            crew.look(session_id)


async def _watch(waiting: AsyncIterable[Event], crew: Crew) -> None:
    async for event in waiting:
        match event:
            case Changed(message=row) if not crew.works_for(row.chatbot_id, row.channel_id):
                continue
            case Changed(message=row) if row.is_person:
                crew.look(row.session_id)
            case Changed(message=row) if row.wakes or row.root_id is not None:
                await crew.look_if_runnable(row.session_id)
            case Changed() | Removed():
                continue
            case _:
                raise AssertionError(f"not asked for: {event}")


async def _answer(summons: Summons, crew: Crew) -> None:
    """Look at sessions that no row shows: a stop of what waits without a worker has to be obeyed too (I7)."""
    while True:
        await crew.look_if_runnable(await summons.next())


async def _reap(exits: Exits, crew: Crew) -> None:
    while True:
        await crew.over(await exits.next())
