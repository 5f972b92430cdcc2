"""The world of a run: everything a program would otherwise reach outside for, decided by the schedule and a seed.

    async def test(world: World) -> None:
        async def app() -> None:
            database = world.disk.connect("app.db")
            ...
        while not await world.life(app, may_crash=world.crashes < 2):
            pass                                    # it begins anew, on what survived
        await world.rest()                          # no faults any more, a fair order: it must come to rest

* `clock`: virtual time; its wall may be wrong. `rng`, `ids`: the same in every run of a seed
* `disk`: SQLite on a disk that tears, loses and reorders writes, lies, fills up, is busy and loses power
* `net`: hosts with a clock each, connections with delays, partitions, resets
* `procs`: scripts in place of processes. Threads of `trio.to_thread` run inline, each call in one step: atomic
* `fault(name)`: whether something goes wrong here; false in production, so that it may stand in a program for good
* `crash()`, `life()`: an end at any point, and what comes after. `rest()`: the phase without faults
* `note(kind, ...)`: an event for the checkers of `harness.checks`; free in production

A world is made in a run, and ends with it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kesoku_actors.harness.clocks import Ids, WorldClock
from kesoku_actors.harness.control.current import RATE, Controlled, current, fault_in, note_in
from kesoku_actors.harness.control.lives import Lives, Power, come_to_rest, required
from kesoku_actors.harness.control.network import Network
from kesoku_actors.harness.control.procs import Processes, Scripts, simulate_processes
from kesoku_actors.harness.control.threads import simulate_threads
from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.image import SUBSET, Survival
from kesoku_actors.harness.notes import Note

if TYPE_CHECKING:
    from kesoku_actors.harness.storage import Storage


def fault(name: str, rate: float = RATE) -> bool:
    """Tell whether the fault of this name happens now. False outside of the harness."""
    run = current()
    return run is not None and fault_in(run, name, rate)


def note(kind: str, **fields: Any) -> Note | None:
    """Note an event in the trace of the run; nothing outside of the harness."""
    run = current()
    return None if run is None else note_in(run, kind, fields, 2)


class World:
    """The world of the run that goes on. Raises `HarnessError` when none does."""

    def __init__(self, seed: int | str = 0) -> None:
        self._run: Controlled = required(current())
        self._seed = seed
        self._lives = Lives()
        self._disk: Storage | None = None
        self._survival: Survival = SUBSET
        self.procs: Scripts = {}
        """By a program's name: what its children do."""
        self.children: Processes = simulate_processes(self._run, self.procs)
        simulate_threads(self._run)
        self.rng = self.stream("program")
        self.ids = Ids(self.stream("ids"))
        self.clock = WorldClock(self._elapsed)
        self.net = Network(self.clock, self.stream("net"))

    def stream(self, name: str) -> random.Random:
        """Return a source of randomness of its own: what others draw does not change it."""
        return random.Random(f"{self._seed}/{name}")

    @property
    def disk(self) -> Storage:
        """The disk; it is mounted when it is first asked for. Raises `HarnessError` without the package apsw."""
        if self._disk is None:
            self._disk = _storage()(asks=self.fault, rng=self.stream("disk"), on_power_loss=self.crash)
            self._run.events.undo.append(self._disk.unmount)
        return self._disk

    @property
    def notes(self) -> Sequence[Note]:
        """What was noted so far."""
        return tuple(self._run.events.notes)

    @property
    def crashes(self) -> int:
        """How often it crashed."""
        return self._lives.crashes

    def note(self, kind: str, **fields: Any) -> Note:
        """Note an event."""
        return note_in(self._run, kind, fields, 2)

    def fault(self, name: str, rate: float = RATE) -> bool:
        """Tell whether the fault of this name happens now; never in the phase without faults."""
        return fault_in(self._run, name, rate)

    def crash(self, survival: Survival = SUBSET, *, orphans: bool = False) -> None:
        """End everything that lives, here and now: the disk, children and connections first, then the tasks.

        `survival` is what the disk keeps of what was not synced; `EVERYTHING`: only the process died. Then its children
        may live on, as `orphans`.
        """
        self._survival = survival
        if self._disk is not None:
            self._disk.die()
        if not orphans:
            self.children.kill_all()
        self.net.reset_all()
        self._lives.crash(self._run)

    async def life(self, program: Callable[..., Awaitable[object]], *arguments: Any, may_crash: bool = False) -> bool:
        """Run a program until it returns (true) or the world crashes (false); then the power is on again.

        With `may_crash` the power may go at any step: the fault `power cut`, of which a task `power` asks.
        """
        power = Power(self.fault, self.crash) if may_crash else None
        whole = await self._lives.live(partial(program, *arguments), power=power)
        if not whole and self._disk is not None:
            self._disk.power_on(self._survival)
        return whole

    def heal(self) -> None:
        """End the faults: partitions, what the disk does wrong, and those with a name."""
        self._run.is_fair = True
        self.net.heal()
        self.net.delay_s = (0.0, 0.0)
        if self._disk is not None:
            self._disk.heal()

    async def rest(
        self, until: Callable[[], bool] | None = None, *, within_s: float = 60.0, within_steps: int = 5_000
    ) -> None:
        """End the faults, let everybody run in turn, and wait until the program is at rest.

        At rest is when `until` holds; without it, when nothing is runnable and no deadline comes for another
        `within_s` virtual seconds. Raises `NeverAtRest`, an `AssertionError`. What comes after stays fair.
        """
        self.heal()
        await come_to_rest(self._run, until, within_s, within_steps)

    def _elapsed(self) -> float:
        if self._run.clock.diagnosis is not None:
            self._run.clock.diagnosis.asked += 1
        return self._run.clock.now


def _storage() -> type[Storage]:
    """Import the disk, which alone needs apsw. Raises `HarnessError` when that is not installed."""
    try:
        from kesoku_actors.harness.storage import Storage
    except ModuleNotFoundError as error:
        raise HarnessError(f"world.disk needs the package {error.name}, which is not installed") from error
    return Storage
