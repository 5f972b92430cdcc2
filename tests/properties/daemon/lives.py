"""The lives of the simulated daemon: `play` runs a script to its end and returns what is true then.

Each life is the tree of `app`, from `plan_run` and `build_house`; it ends as the script says or as the schedule has it,
and the next one begins on what the disk kept. The last one lives until everything is done, without faults and under a
fair order; if that never comes, the run fails (`NeverAtRest`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

import trio
from attrs import define, evolve, field, frozen

from kesoku_actors.actors import ActorStopped, ChildSpec, DynamicSpec, SupervisorSpec, run_system
from kesoku_actors.actors.leaves import leaves
from kesoku_actors.app.house import EdgesFor, House, Plan, build_house
from kesoku_actors.app.plan import plan_run
from kesoku_actors.gateway import Gateway
from kesoku_actors.harness import EVERYTHING, SUBSET, Fault
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Channel
from kesoku_actors.session import Recorded, TurnLimits, first_difference
from kesoku_actors.session.vocabulary import CommitRefused
from kesoku_actors.store import StoreBusy, StoreFault
from tests.properties.daemon.commands import SCENARIO
from tests.properties.daemon.computer import SimulatedKernel
from tests.properties.daemon.model import NotedModel, Tools
from tests.properties.daemon.observers import Observers
from tests.properties.daemon.platform import Adapter, Platform, Room
from tests.properties.daemon.script import How, Script
from tests.properties.daemon.seams import (
    DATABASE,
    DaemonWorld,
    SteppedAccess,
    access_to,
    outside_of,
    put_database,
    settings_for,
)
from tests.properties.daemon.truth import Truth, read_truth

QUIET: Final = (
    "SELECT NOT EXISTS (SELECT 1 FROM messages WHERE status IN ('processing', 'pending')"
    " OR (status = 'pending_agent' AND role = 'user'))"
    " AND NOT EXISTS (SELECT 1 FROM stops WHERE done = 0)"
    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE state = 'closed')"
    " AND NOT EXISTS (SELECT 1 FROM jobs WHERE state = 'running')"
)
"""Whether nobody waits for anything any more."""
HUSH_S: Final = 5.0
"""How long nobody has to want anything until everything is done: who asked a store that was away asks again after a
pause, 2 s at the most, and what is stored says nothing of that."""
REST_S: Final = 5_000.0
REST_STEPS: Final = 30_000


def children_of(spec: SupervisorSpec) -> Iterator[str]:
    """Yield the ids of the children that come and go, below a supervisor."""
    for child in spec.children:
        match child:
            case SupervisorSpec():
                yield from children_of(child)
            case DynamicSpec(dynamic=dynamic):
                yield from (one.id for one in dynamic.children())
            case _:
                continue


class Injected(Exception):
    """A crash that the schedule asked for."""


@frozen(kw_only=True)
class Faults:
    """How often things go wrong besides; each happens twice in a life at most, as supervisors give up at some time."""

    worker: float = 0.0
    """A worker crashes at an event."""
    worker_at: str = ""
    """A worker crashes at every event of this name, for as long as the program runs."""
    store: float = 0.0
    """The store crashes at one of its points."""
    store_at: str = "store."
    """How the names of these points begin."""
    crowded: bool = False
    """The broadcaster's queue has room for one."""
    power: bool = False
    """The power may go at any step, once in a run."""
    model: float = 0.0
    """An inference fails."""
    send: float = 0.0
    """A send fails."""
    disk: tuple[Fault, ...] = ()
    """What the disk does wrong while the program runs, one time in thirty."""
    impatient: bool = False
    """The store tries nothing twice: whoever asks is told at once that it is busy."""


@define(eq=False, kw_only=True)
class Life:
    """One life of the program."""

    play: Play
    number: int
    crashes: int
    """How often the world had crashed before."""
    access: SteppedAccess
    house: House = field(init=False)
    limits: TurnLimits = field(init=False)
    record: list[Recorded] = field(factory=list)
    injected: int = 0

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self.play.world.crashes == self.crashes

    async def run(self) -> None:
        """Live until it ends in order; crashes come from outside."""
        async with trio.open_nursery() as nursery:
            await self._run(nursery)
            nursery.cancel_scope.cancel()

    def composed(self, access: SteppedAccess, edges: EdgesFor) -> Plan:
        """Return the program as `app` composes it, over the seams of this world."""
        play, world = self.play, self.play.world
        outside = outside_of(world, self.number)
        model = NotedModel(SCENARIO, world=world, is_alive=self.is_alive, fails=play.faults.model)
        plan = plan_run(
            settings_for(world, whole=play.whole, commands=play.commands, **play.script.settings),
            model,
            world=outside,
            log=Logger(sink=lambda _entry: None, wall=outside.clock.wall),
            channels=play.channels_of(self.number),
            edges=edges,
            probe=self._probe,
            access=access,
            kernel=SimulatedKernel(world.computer, self.is_alive),
        )
        tools = Tools(world, self.is_alive)
        plan.registry.add(tools.work, owner="test")
        plan.registry.add(tools.risky, owner="test", risky=True)
        plan.registry.add(tools.count, owner="test")
        plan.registry.add(tools.long, owner="test", deadline_s=2.0, becomes_job=True)
        store = evolve(plan.store, retry_s=()) if play.faults.impatient else plan.store
        return evolve(plan, record=self._heard, store=store, search=plan.search if play.whole else None)

    async def _run(self, later: trio.Nursery) -> None:
        play, world = self.play, self.play.world

        def edges(gateway: Gateway) -> Sequence[ChildSpec]:
            jitter = world.stream(f"jitter {self.number}").random
            adapter = Adapter(
                platform=play.platform, gateway=gateway, log=log, jitter=jitter, nursery=later, is_alive=self.is_alive
            )
            return adapter.children()

        log = Logger(sink=lambda _entry: None, wall=world.clock.time)
        plan = self.composed(self.access, edges)
        self.house, self.limits = build_house(plan), plan.limits
        if play.faults.crowded:
            self.house.gateway.announcements.most = 1
        observers = Observers(
            world=world,
            gateway=self.house.gateway,
            log=log,
            life=self.number,
            is_alive=self.is_alive,
            answer_to=play.answer_to,
        )
        system = run_system(self.house.spec, log=self._crashed)
        world.note("begins", life=self.number)
        async with system, trio.open_nursery() as nursery:
            for observe in (observers.rows, observers.deltas, observers.surface):
                nursery.start_soon(observe)
            if play.beside is not None:
                nursery.start_soon(play.beside, self)
            with world.failing_disk(*play.faults.disk):
                await self._until_end()
            nursery.cancel_scope.cancel()
        world.note("ends", life=self.number)

    async def _until_end(self) -> None:
        play, world = self.play, self.play.world
        end = play.script.ends[self.number] if self.number < len(play.script.ends) else None
        if end is None:
            await play.people_done.wait()
            while not play.is_over:
                await world.rest(self._is_quiet, within_s=REST_S, within_steps=REST_STEPS)
                workers, children = self.house.gateway.statistics().workers, tuple(children_of(self.house.spec))
                world.note("rests", workers=workers, children=children)
                await trio.sleep(HUSH_S)
                play.is_over = self._is_quiet()
            return
        await trio.sleep(end.after_s)
        world.note("dies", life=self.number, how=end.how)
        if end.how is not How.TERMINATED:
            world.crash(SUBSET if end.how is How.CUT else EVERYTHING)
            await trio.sleep_forever()

    def _is_quiet(self) -> bool:
        connection = self.access.connection
        if connection is None or not all(room.is_taken for room in self.play.platform.rooms):
            return False
        return bool(connection.execute(QUIET).fetchall()[0][0])

    def _heard(self, recorded: Recorded) -> None:
        """Take note of what a worker does, which may crash it."""
        if not self.is_alive():
            return
        self.record.append(recorded)
        key, event = recorded.key, recorded.event
        self.play.world.note(
            "event",
            session=key.session_id,
            worker=(key.epoch, key.worker),
            what=type(event).__name__,
            why=event.refused.reason if isinstance(event, CommitRefused) else None,
        )
        if type(event).__name__ == self.play.faults.worker_at:
            raise Injected(self.play.faults.worker_at)
        self._may_crash("worker crash", self.play.faults.worker)

    def _probe(self, point: str) -> None:
        if point.startswith(self.play.faults.store_at):
            self._may_crash("store crash", self.play.faults.store, point)

    def _may_crash(self, name: str, rate: float, point: str = "") -> None:
        if rate and self.injected < 2 and self.play.world.fault(name, rate):
            self.injected += 1
            self.play.world.note("injected", what=name, point=point)
            raise Injected(name)

    def _crashed(self, event: str, /, **fields: object) -> None:
        """Nothing of ours may crash that was not made to."""
        error = fields.get("error")
        if event == "child_crashed" and self.is_alive():
            self.play.world.note("crashed", path=str(fields.get("path")))
        if event == "child_crashed" and isinstance(error, BaseException) and self.is_alive():
            meant: tuple[type[Exception], ...] = (Injected,)
            if self.injected:
                meant = (*meant, ActorStopped, StoreBusy)  # who asks a store that was made to crash may crash with it
            if self.play.faults.disk:
                meant = (*meant, ActorStopped, StoreFault)  # whether these may is for the property to say
            found = [each for each in leaves(error) if not isinstance(each, meant)]
            self.play.surprises += [(str(fields.get("path")), each) for each in found]


@define(eq=False, kw_only=True)
class Play:
    """A script, on its way."""

    world: DaemonWorld
    script: Script
    faults: Faults = field(factory=Faults)
    whole: bool = False
    commands: bool = False
    serves: Callable[[int], frozenset[str] | None] = lambda _life: None
    """The rooms that a life works for, by its number; none: all (C2)."""
    beside: Callable[[Life], Awaitable[object]] | None = None
    """Runs beside each life, until its end."""
    past: bytes = b""
    """The database that the first life begins on; an empty one, unless given."""
    platform: Platform = field(init=False)
    people_done: trio.Event = field(factory=trio.Event)
    is_over: bool = False
    lives: list[Life] = field(factory=list)
    surprises: list[tuple[str, BaseException]] = field(factory=list)
    _answers: dict[str, bool | None] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        rooms = [Room(f"room{number}") for number in range(len(self.script.rooms))]
        self.platform = Platform(world=self.world, rooms=rooms, fails=self.faults.send)

    def channels_of(self, life: int) -> tuple[Channel, ...] | None:
        """Return the channels a life works for."""
        names = self.serves(life)
        return None if names is None else tuple(room.channel for room in self.platform.rooms if room.name in names)

    def answer_to(self, call_id: str) -> bool | None:
        """Return what is said of a call."""
        answers = self.script.answers
        return self._answers.setdefault(call_id, answers[len(self._answers) % len(answers)])

    async def go(self) -> None:
        """Let people do what they do, and life follow life until everything is done."""
        put_database(self.world)
        if self.past:
            self.world.disk.path(DATABASE).write_bytes(self.past)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._people)
            while not self.is_over:
                may_crash = self.faults.power and self.world.crashes == 0
                life = Life(play=self, number=len(self.lives), crashes=self.world.crashes, access=access_to(self.world))
                self.lives.append(life)
                await self.world.life(life.run, may_crash=may_crash)
        for path, error in self.surprises:
            raise AssertionError(f"{path} crashed: {type(error).__name__}: {error}") from error

    async def _people(self) -> None:
        async with trio.open_nursery() as nursery:
            for room, actions in zip(self.platform.rooms, self.script.rooms, strict=True):
                nursery.start_soon(partial(self.platform.people, room, actions), name=f"people {room.name}")
        self.people_done.set()

    def truth(self) -> Truth:
        """Read what is stored in the end."""
        connection = self.world.disk.connect(DATABASE)
        truth = read_truth(connection, trees=tuple(life.house.spec for life in self.lives))
        connection.close()
        for life in self.lives:
            difference = first_difference(life.record, life.limits)
            assert difference is None, f"a worker did what the machine does not: {difference}"
        return truth


async def play(
    world: DaemonWorld,
    script: Script,
    faults: Faults | None = None,
    *,
    whole: bool = False,
    commands: bool = False,
    beside: Callable[[Life], Awaitable[object]] | None = None,
) -> Truth:
    """Play a script and return what is true in the end.

    `whole` is with what takes long and decides nothing; `commands` is with the shell; `beside` runs beside each life.
    """
    one = Play(world=world, script=script, faults=faults or Faults(), whole=whole, commands=commands, beside=beside)
    await one.go()
    return one.truth()
