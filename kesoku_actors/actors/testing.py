"""Aids for the tests of actors: an actor that does what the test says, a tree around it, a log that remembers.

They use the public face only and work under any clock, also trio's `MockClock`.
"""

from __future__ import annotations

from typing import Any, TypeAlias, assert_never, final

import trio
from attrs import evolve

from kesoku_actors.values import frozen

from .cell import Cell
from .child import Log
from .letter import Letter
from .mailbox import Mailbox
from .spec import AnySpec, ChildSpec, Strategy, SupervisorSpec
from .system import System, run_system


@frozen
class Echo:
    """Answer with this value."""

    value: Any


@frozen
class Keep:
    """Take the letter and answer later, or never: it stands in `Probe.kept`."""


@frozen
class Crash:
    """Raise this error."""

    error: BaseException


@frozen
class Finish:
    """Return."""


ProbeMessage: TypeAlias = Echo | Keep | Crash | Finish


class ProbeCrash(Exception):
    """What a probe raises when it is told to crash with nothing particular."""


@final
class Probe:
    """An actor under the direction of a test.

    `lives` counts how often it was started; `trace`, which several probes may share, gets `("up", name)` and
    `("down", name)` as lives begin and end. `fails_to_start` is raised before readiness by every life that begins while
    it is set; with `lingers` a life that was asked to stop goes on until it is cancelled.
    """

    def __init__(self, name: str, trace: list[tuple[str, str]] | None = None, capacity: int = 256) -> None:
        self.name = name
        self.mailbox = Mailbox[ProbeMessage](name, capacity)
        self.ref = self.mailbox.ref
        self.lives = 0
        self.alive = False
        self.kept: list[Letter[ProbeMessage]] = []
        self.trace = trace if trace is not None else []
        self.fails_to_start: Exception | None = None
        self.lingers = False
        self._gate = trio.Event()
        self._gate.set()
        self._changed = trio.lowlevel.ParkingLot()

    def spec(self, **changes: Any) -> ChildSpec:
        """Return its child spec: permanent, with a grace of 5 s, unless `changes` say otherwise."""
        return evolve(ChildSpec(id=self.name, start=self.run, mailbox=self.mailbox), **changes)

    async def run(self, cell: Cell[ProbeMessage]) -> None:
        """Be the actor."""
        self.lives += 1
        self.alive = True
        self.trace.append(("up", self.name))
        self._changed.unpark_all()
        try:
            if self.fails_to_start is not None:
                raise self.fails_to_start
            await self._gate.wait()
            cell.started()
            async for letter in cell.inbox:
                if not self._obey(letter):
                    return
            if self.lingers:
                await trio.sleep_forever()
        finally:
            self.alive = False
            self.trace.append(("down", self.name))
            self._changed.unpark_all()

    def hold(self) -> None:
        """Let no further life get ready until `release`."""
        self._gate = trio.Event()

    def release(self) -> None:
        """Undo `hold`."""
        self._gate.set()

    async def crash(self, error: BaseException | None = None) -> None:
        """Make the present life crash and wait until it is over."""
        await self._end(Crash(error if error is not None else ProbeCrash(self.name)))

    async def finish(self) -> None:
        """Make the present life return and wait until it is over."""
        await self._end(Finish())

    async def wait_lives(self, count: int) -> None:
        """Wait until life number `count` has begun."""
        while self.lives < count:
            await self._changed.park()

    async def wait_down(self) -> None:
        """Wait until no life goes on."""
        while self.alive:
            await self._changed.park()

    async def _end(self, message: Crash | Finish) -> None:
        life = self.lives
        self.ref.tell_nowait(message)
        while self.lives == life and self.alive:
            await self._changed.park()

    def _obey(self, letter: Letter[ProbeMessage]) -> bool:
        """Do what a letter says; False when it says to return."""
        match letter.message:
            case Echo(value):
                letter.reply(value)
            case Keep():
                self.kept.append(letter)
            case Crash(error):
                raise error
            case Finish():
                return False
            case _ as never:
                assert_never(never)
        return True


@final
class MemoryLog:
    """A `Log` that remembers: `events` are pairs of a name and its fields."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.events.append((event, fields))

    def paths(self, event: str) -> list[object]:
        """Return the paths of all events of one name, in order."""
        return [fields["path"] for name, fields in self.events if name == event]


def _unheard(_event: str, /, **_fields: object) -> None:
    return None


def running(
    *children: AnySpec,
    strategy: Strategy = Strategy.ONE_FOR_ONE,
    intensity: int = 3,
    period_s: float = 60.0,
    start_timeout_s: float = 60.0,
    log: Log = _unheard,
) -> System:
    """Run children under one supervisor named `test`: `async with running(probe.spec()) as system:`."""
    tree = SupervisorSpec(
        id="test",
        strategy=strategy,
        children=children,
        intensity=intensity,
        period_s=period_s,
        start_timeout_s=start_timeout_s,
    )
    return run_system(tree, log=log)
