"""A soak: days of a busy daemon, one after the other, each checked and measured at its end.

People speak between morning and evening; things fail as the weather has it (`soak_weather`); the program is killed,
loses power or is asked to end, and begins anew on what the disk kept. At night the soak waits until nobody waits for
anything, holds the day against the promises, drops what was noted of it, and measures what is left. One world and one
process from the first day to the last; only people's rows of sessions not yet cleared are there at the end of a day, so
that the load is steady.
"""

from __future__ import annotations

import pickle
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Final

import trio
from attrs import define, field

from kesoku_actors.harness.notes import Note
from tests.properties.daemon.platform import Platform, Room
from tests.properties.daemon.script import Action, Skew
from tests.properties.daemon.seams import DATABASE, DaemonWorld, put_database
from tests.properties.daemon.soak_gauge import MIB, Gauge, count_descriptors, count_rows, read_memory
from tests.properties.daemon.soak_life import SoakLife, Town
from tests.properties.daemon.soak_loop import Loop, run_soak
from tests.properties.daemon.soak_people import day_of
from tests.properties.daemon.soak_truth import carried_over, check_day, truth_of_day
from tests.properties.daemon.soak_weather import DAY_S, EVENING_H, HOUR_S, ends_of, weather_of

NIGHT_S: Final = 3 * HOUR_S
"""How long it may take until nobody waits for anything: an hour of refusals, a platform that is away, deadlines."""
LOOK_S: Final = 60.0


@define(eq=False, kw_only=True)
class Soak:
    """One soak, on its way."""

    loop: Loop
    days: int
    rooms: int
    seed: int
    tell: Callable[[Gauge], None]
    """Told at the end of each day."""
    now: Callable[[], float]
    """Seconds of the real clock."""
    town: Town = field(init=False)
    life: SoakLife = field(init=False)
    lives: int = 0
    over: trio.Event = field(factory=trio.Event)
    carried: IO[bytes] = field(factory=tempfile.TemporaryFile)
    """Notes of the days before that the next day needs; in a file, as they are not the program's."""
    _rev: int = 0
    _steps: int = 0
    _began: float = 0.0
    _asked: int = 0
    _failed: int = 0

    async def go(self) -> None:
        """Live through all days. Raises `AssertionError` for a broken promise."""
        world = DaemonWorld(self.seed)
        rooms = [Room(f"room{number}") for number in range(self.rooms)]
        self.town = Town(world=world, platform=Platform(world=world, rooms=rooms))
        self._began = self.now()
        put_database(world)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._live)
            nursery.start_soon(self._weather)
            for day in range(self.days):
                await self._people(day)
                await self._quiet(day)
                self._check()
                self.tell(self._gauge(day))
            self.over.set()
        self.carried.close()

    async def _live(self) -> None:
        """Let life follow life."""
        ends = ends_of(self.days, random.Random(f"{self.seed}/ends"))
        while not self.over.is_set():
            end = ends[self.lives] if self.lives < len(ends) else None
            self.life = SoakLife(town=self.town, number=self.lives, end=end, over=self.over)
            self.lives += 1
            await self.town.world.life(self.life.run)
            self._asked += self.life.model.asked
            self._failed += self.life.model.failed
            self.life.forget()

    async def _weather(self) -> None:
        while not self.over.is_set():
            weather_of(self.town.platform)
            await trio.sleep(LOOK_S)

    async def _people(self, day: int) -> None:
        """Let people do what they do until the evening."""
        await trio.sleep_until(day * DAY_S)
        async with trio.open_nursery() as nursery:
            for room in self.town.platform.rooms:
                rng = random.Random(f"{self.seed}/{room.name}/{day}")
                nursery.start_soon(partial(self._person, room, day * DAY_S, rng), name=f"people {room.name}")
        await trio.sleep_until(day * DAY_S + EVENING_H * HOUR_S)

    async def _person(self, room: Room, midnight: float, rng: random.Random) -> None:
        for at, action in day_of(rng):
            await trio.sleep_until(midnight + at)
            self._do(room, action)

    def _do(self, room: Room, action: Action) -> None:
        if isinstance(action, Skew):
            self.town.world.clock.skew_s = action.ahead_s
        else:
            room.add(action)

    async def _quiet(self, day: int) -> None:
        """Wait until nobody waits for anything. Raises `AssertionError` when that does not come."""
        latest = trio.current_time() + NIGHT_S
        while not self.life.is_quiet():
            assert trio.current_time() < latest, f"day {day + 1} does not come to rest"
            await trio.sleep(LOOK_S)

    def _check(self) -> None:
        """Hold the day against the promises, and drop what was noted of it."""
        for path, error in self.town.surprises:
            raise AssertionError(f"{path} crashed: {type(error).__name__}: {error}") from error
        connection = self.life.access.connection
        assert connection is not None
        truth, today = truth_of_day(connection, since_rev=self._rev), self.town.world.notes
        carried = self._read() if self._rev else ()
        world = self.town.world
        check_day(carried, today, truth, world.computer, world.disk.folder / "sessions")
        world.computer.forget()
        self._write(carried_over((*carried, *today), truth))
        self._rev = self.town.cursor

    def _read(self) -> Sequence[Note]:
        self.carried.seek(0)
        notes: Sequence[Note] = pickle.load(self.carried)
        return notes

    def _write(self, notes: Sequence[Note]) -> None:
        self.carried.seek(0)
        pickle.dump(notes, self.carried)

    def _gauge(self, day: int) -> Gauge:
        said = sum(note.kind == "accepted" and note["is_person"] and note["is_new"] for note in self.town.world.notes)
        model, access = self.life.model, self.life.access
        assert access.connection is not None
        asked, failed = self._asked + model.asked, self._failed + model.failed
        self._asked = self._failed = 0
        self.life.forget()
        self.loop.forget()
        rows = count_rows(access.connection)
        resident, traced = read_memory()
        steps, self._steps = self.loop.steps - self._steps, self.loop.steps
        began, self._began = self._began, self.now()
        return Gauge(
            day=day + 1,
            resident_mib=resident,
            traced_mib=traced,
            tasks=self.loop.tasks - len(self.town.world.children.started),
            descriptors=count_descriptors(),
            workers=self.life.house.gateway.statistics().workers,
            rows=rows,
            store_mib=self.town.world.disk.path(DATABASE).stat().st_size / MIB,
            lives=self.lives,
            said=said,
            asked=asked,
            failed=failed,
            steps=steps,
            seconds=self._began - began,
        )


def soak(*, days: int, sessions: int, seed: int, tell: Callable[[Gauge], None]) -> list[Gauge]:
    """Run a soak and return what was measured. Raises `AssertionError` for a broken promise."""
    gauges: list[Gauge] = []

    def told(gauge: Gauge) -> None:
        gauges.append(gauge)
        tell(gauge)

    async def program(loop: Loop) -> None:
        await Soak(loop=loop, days=days, rooms=sessions, seed=seed, tell=told, now=time.perf_counter).go()

    run_soak(program, seed=seed)
    return gauges
