"""One life of the program in a soak: the tree of `app` over the seams of the world, as in `lives`, for days.

What differs is what a long life needs: it ends at a time of the soak and not of a script, its listener goes on where
the one before it was, clients come and go, and what the harness notes of it can be dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import Any, Final

import trio
from attrs import define, evolve, field

from kesoku_actors.actors import ActorStopped, ChildSpec, run_system
from kesoku_actors.actors.leaves import leaves
from kesoku_actors.app.house import EdgesFor, House, Plan, build_house
from kesoku_actors.app.plan import plan_run
from kesoku_actors.gateway import Gateway
from kesoku_actors.harness import EVERYTHING, SUBSET
from kesoku_actors.log import Logger
from kesoku_actors.protocol import Changed, Removed
from kesoku_actors.session import Recorded, TurnLimits, first_difference
from kesoku_actors.store import StoreBusy
from tests.properties.daemon.commands import SCENARIO
from tests.properties.daemon.computer import SimulatedKernel
from tests.properties.daemon.lives import QUIET, Injected
from tests.properties.daemon.model import Tools
from tests.properties.daemon.observers import Observers
from tests.properties.daemon.platform import Adapter, Platform
from tests.properties.daemon.script import End, How
from tests.properties.daemon.seams import DaemonWorld, SteppedAccess, access_to, outside_of, settings_for
from tests.properties.daemon.soak_weather import HOUR_S, SoakModel, is_day

WORKER_CRASHES: Final = 0.002
STORE_CRASHES: Final = 0.0005
CRASHES_AN_HOUR: Final = 2
"""At most: supervisors give up at some time."""
VISIT_S: Final = 600.0


@define(eq=False, kw_only=True)
class Town:
    """What outlives a life: the platform, how far a listener has heard, what people say of calls."""

    world: DaemonWorld
    platform: Platform
    cursor: int = 0
    """The listener of `rows` has heard everything up to this `rev`."""
    surprises: list[tuple[str, BaseException]] = field(factory=list)
    answers: int = 0

    def answer_to(self, _call_id: str) -> bool | None:
        """Return what is said of a call: yes, mostly; no, and nothing for the first minute, now and then."""
        self.answers += 1
        return (True, True, False, None)[self.answers % 4]


@define(eq=False, kw_only=True)
class SoakLife:
    """One life of the program."""

    town: Town
    number: int
    end: End | None
    """When and how it is ended; none: when the soak is over."""
    over: trio.Event
    crashes: int = field(init=False)
    access: SteppedAccess = field(init=False)
    model: SoakModel = field(init=False)
    house: House = field(init=False)
    limits: TurnLimits = field(init=False)
    record: list[Recorded] = field(factory=list)
    injected: int = 0

    def __attrs_post_init__(self) -> None:
        world = self.town.world
        self.crashes, self.access = world.crashes, access_to(world)
        self.model = SoakModel(SCENARIO, world=world, is_alive=self.is_alive)

    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self.town.world.crashes == self.crashes

    def is_quiet(self) -> bool:
        """Whether nobody waits for anything."""
        connection = self.access.connection
        if connection is None or not all(room.is_taken for room in self.town.platform.rooms):
            return False
        [(is_quiet,)] = connection.execute(QUIET).fetchall()
        return bool(is_quiet) and self.house.gateway.statistics().workers == 0

    def forget(self) -> None:
        """Check and drop what was noted. Raises `AssertionError` where a worker did what the machine does not."""
        difference = first_difference(self.record, self.limits)
        assert difference is None, f"a worker did what the machine does not: {difference}"
        self.record.clear()
        self.model.forget()
        self.model.asked = self.model.failed = 0

    async def run(self) -> None:
        """Live until the end; crashes come from outside."""
        async with trio.open_nursery() as nursery:
            await self._run(nursery)
            nursery.cancel_scope.cancel()

    async def _run(self, later: trio.Nursery) -> None:
        town, world = self.town, self.town.world
        log = Logger(sink=_nowhere, wall=world.clock.time)

        def edges(gateway: Gateway) -> Sequence[ChildSpec]:
            jitter = world.stream(f"jitter {self.number}").random
            return Adapter(
                platform=town.platform, gateway=gateway, log=log, jitter=jitter, nursery=later, is_alive=self.is_alive
            ).children()

        plan = self._composed(edges, log)
        self.house, self.limits = build_house(plan), plan.limits
        gateway = self.house.gateway
        observers = Observers(
            world=world,
            gateway=gateway,
            log=log,
            life=self.number,
            is_alive=self.is_alive,
            answer_to=town.answer_to,
        )
        system = run_system(self.house.spec, log=self._crashed)
        world.note("begins", life=self.number)
        async with system, trio.open_nursery() as nursery:
            beside: tuple[Callable[[], Awaitable[None]], ...]
            beside = (partial(self._rows, gateway), observers.buttons, partial(self._visitors, gateway), self._hours)
            for one in beside:
                nursery.start_soon(one)
            await self._until_end()
            nursery.cancel_scope.cancel()
        world.note("ends", life=self.number)

    def _composed(self, edges: EdgesFor, log: Logger) -> Plan:
        world = self.town.world
        settings = settings_for(world, whole=False, commands=True, turn_log=True)
        plan = plan_run(
            evolve(settings, tools=evolve(settings.tools, approve="risky")),
            self.model,
            world=outside_of(world, self.number),
            log=log,
            channels=None,
            edges=edges,
            probe=self._probe,
            access=self.access,
            kernel=SimulatedKernel(world.computer, self.is_alive),
        )
        tools = Tools(world, self.is_alive)
        plan.registry.add(tools.work, owner="test")
        plan.registry.add(tools.risky, owner="test", risky=True)
        plan.registry.add(tools.count, owner="test")
        plan.registry.add(tools.long, owner="test", deadline_s=2.0, becomes_job=True)
        return evolve(plan, record=self._heard)

    async def _until_end(self) -> None:
        world, end = self.town.world, self.end
        if end is None:
            await self.over.wait()
            return
        await trio.sleep_until(end.after_s)
        world.note("dies", life=self.number, how=end.how)
        if end.how is not How.TERMINATED:
            world.crash(SUBSET if end.how is How.CUT else EVERYTHING)
            await trio.sleep_forever()

    async def _rows(self, gateway: Gateway) -> None:
        """Note every row, as a client does that knows how far it has heard (B1)."""
        town = self.town
        async with aclosing(gateway.listen(after=town.cursor, hints=False, label="rows", capacity=2)) as events:
            async for event in events:
                match event:
                    case Changed(message=row):
                        self._row(row.rev, id=row.id, status=row.status.value, root=row.root_id)
                    case Removed(message_id=message_id, rev=rev):
                        self._row(rev, id=message_id, status="removed", root=None)
                    case _:
                        raise AssertionError(f"nobody asked for {event}")

    def _row(self, rev: int, **fields: Any) -> None:
        if self.is_alive():
            self.town.world.note("row", life=self.number, rev=rev, **fields)
            self.town.cursor = max(self.town.cursor, rev)

    async def _visitors(self, gateway: Gateway) -> None:
        """Be a client that comes for ten minutes each hour, listens to one room or to all, and leaves."""
        rooms = self.town.platform.rooms
        for visit in count():
            with trio.move_on_after(VISIT_S):
                channel = rooms[visit % len(rooms)].channel if visit % 2 else None
                async with aclosing(gateway.listen(channel=channel, label="visitor", capacity=16)) as events:
                    async for _event in events:
                        pass
            await trio.sleep(HOUR_S - VISIT_S)

    async def _hours(self) -> None:
        """Let something crash again each hour."""
        while True:
            self.injected = 0
            await trio.sleep(HOUR_S)

    def _heard(self, recorded: Recorded) -> None:
        if not self.is_alive():
            return
        self.record.append(recorded)
        key = recorded.key
        self.town.world.note(
            "event", session=key.session_id, worker=(key.epoch, key.worker), what=type(recorded.event).__name__
        )
        self._may_crash("worker crash", WORKER_CRASHES)

    def _probe(self, point: str) -> None:
        if point.startswith("store."):
            self._may_crash("store crash", STORE_CRASHES)

    def _may_crash(self, name: str, rate: float) -> None:
        world = self.town.world
        if self.is_alive() and is_day(world) and self.injected < CRASHES_AN_HOUR and world.fault(name, rate):
            self.injected += 1
            raise Injected(name)

    def _crashed(self, event: str, /, **fields: object) -> None:
        """Nothing of ours may crash that was not made to, or asked a store that was."""
        error = fields.get("error")
        if event == "child_crashed" and isinstance(error, BaseException) and self.is_alive():
            meant = (Injected, ActorStopped, StoreBusy)
            found = [each for each in leaves(error) if not isinstance(each, meant)]
            self.town.surprises += [(str(fields.get("path")), each) for each in found]


def _nowhere(_entry: object) -> None:
    """Write nothing down."""
