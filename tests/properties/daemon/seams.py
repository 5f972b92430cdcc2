"""What stands in for the outside of the program while the tree that `app` declares runs in a simulated world.

Replaced are the seams and nothing else: the clock, ids and randomness; the store's executor and connections; what the
model is; the transport of an adapter; the kernel under commands (`computer`); threads, which the harness simulates.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import trio
from attrs import define, evolve, field

from kesoku_actors.app.settings import Settings, load_settings
from kesoku_actors.clock import Clock, IdSource
from kesoku_actors.clock import World as Outside
from kesoku_actors.harness import EVERYTHING, SUBSET, Fault, Survival
from kesoku_actors.harness.world import World
from kesoku_actors.store import Durability, StoreBusy
from kesoku_actors.store.opening import open_store
from kesoku_actors.store.reading import reading
from tests.properties.daemon.commands import script_of
from tests.properties.daemon.computer import Computer

T = TypeVar("T")

DATABASE: Final = "kesoku.db"


class DaemonWorld(World):
    """A world with a computer, on which commands run.

    Those of a program that was killed live on; when the power goes they do not.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.procs["sh"] = script_of
        self.computer = Computer(world=self)

    def crash(self, survival: Survival = SUBSET, *, orphans: bool = False) -> None:
        """End everything that lives, here and now."""
        is_killed = orphans or survival is EVERYTHING
        super().crash(survival, orphans=is_killed)
        self.computer.crash(is_cut=not is_killed)

    @contextmanager
    def failing_disk(self, *faults: Fault) -> Iterator[None]:
        """Let the disk fail in these ways while the block runs."""
        self.disk.fails(*faults, rate=0.03)
        try:
            yield
        finally:
            self.disk.rates.clear()


@define(eq=False, kw_only=True)
class SteppedAccess:
    """The store's executor without threads: before each call, and before its answer arrives, others may run.

    So a commit takes its time, as it does in the thread of a daemon. There is one connection, as the simulated disk has
    no shared memory; a reading is one step, and sees one snapshot. What a daemon's readers do between BEGIN and COMMIT
    is not explored: here they wait until the writer is in no transaction, and see no snapshot from before it.
    """

    connect: Callable[[Path, int], apsw.Connection]
    is_dead: Callable[[], bool] = lambda: False
    """Whether the life of the program is over by a crash. Then nobody is waited for: what a dead process held, as the
    lock of the store, is let go at once."""
    life: str = ""
    connection: apsw.Connection | None = field(default=None, init=False)
    is_writing: bool = field(default=False, init=False)
    """Whether the connection is in a transaction, which readers must not see."""
    written: trio.Event = field(factory=trio.Event, init=False)
    """Set, and replaced, when it no longer is."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call of the writer. Once it has begun it is waited for."""
        if self.is_dead():
            return call()
        await trio.lowlevel.checkpoint_if_cancelled()
        await trio.lowlevel.cancel_shielded_checkpoint()
        result = call()
        await trio.lowlevel.cancel_shielded_checkpoint()
        return result

    async def write(self, begin: Callable[[], Callable[[], T] | None], run: Callable[[], T]) -> T:
        """Begin a transaction here; another step, between which all but readers may run, waits for the disk."""
        await trio.lowlevel.checkpoint_if_cancelled()
        await trio.lowlevel.cancel_shielded_checkpoint()
        self.is_writing = True
        try:
            rest = begin() or run
            await trio.lowlevel.cancel_shielded_checkpoint()
            result = rest()
        finally:
            self.is_writing = False
            self.written.set()
            self.written = trio.Event()
        await trio.lowlevel.cancel_shielded_checkpoint()
        return result

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query behind the transaction that is open, never within it; that a daemon reads there is not explored.

        Raises `StoreBusy` while the store is not open.
        """
        await trio.lowlevel.checkpoint()
        while self.is_writing:
            await self.written.wait()
        if self.connection is None:
            raise StoreBusy("the store is not open at the moment; try again")
        with reading():
            result = query(self.connection)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return result

    @contextmanager
    def lend(self, writer: apsw.Connection) -> Iterator[None]:
        """Read from the writer's connection: between two calls it is in no transaction."""
        self.connection = writer
        try:
            yield
        finally:
            self.connection = None

    async def close(self) -> None:
        """Nothing is its own."""


def outside_of(world: World, life: int) -> Outside:
    """Return clock, ids and randomness of one life of the program."""
    clock = Clock(wall=world.clock.time, monotonic=world.clock.now)
    rng = world.stream(f"life {life}")
    return Outside(clock=clock, ids=IdSource(clock=clock, rng=rng), rng=rng)


def access_to(world: World) -> SteppedAccess:
    """Return the way to the database on the world's disk, for a life that begins.

    What a life before had open is closed first, as the kernel does for a process that was killed.
    """
    if world.crashes:
        _close_what_is_open_in(world.disk.folder)
    crashes = world.crashes
    return SteppedAccess(
        connect=lambda path, _flags: world.disk.connect(path.name), is_dead=lambda: world.crashes != crashes
    )


def _close_what_is_open_in(folder: Path) -> None:
    for connection in apsw.connections():  # of the search's index, which is on no disk of the world
        if connection.filename and Path(connection.filename).is_relative_to(folder):
            connection.close(force=True)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the listing is gone
            if Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(folder / "sessions"):
                os.close(descriptor)


def settings_for(world: World, *, whole: bool, commands: bool = False, **agent: Any) -> Settings:
    """Return the defaults, with everything on the world's disk, and asking people about what is risky.

    `agent` are changes of that section. Unless the `whole` program is to run, what takes long and decides nothing is
    left out: logs of turns, skills, the shell and tools for files. With `commands` there is the shell, and nobody is
    asked about anything.
    """
    settings = _defaults()
    settings = evolve(settings, tools=evolve(settings.tools, approve="never" if commands else "risky"))
    if not whole:
        settings = evolve(
            settings,
            agent=evolve(settings.agent, turn_log=False),
            skills=evolve(settings.skills, shipped=False),
            shell=evolve(settings.shell, enabled=commands),
            tools=evolve(settings.tools, files=False),
        )
    folder = world.disk.folder
    workspace = evolve(settings.workspace, db_path=folder / DATABASE, sessions_dir=folder / "sessions")
    return evolve(settings, workspace=workspace, agent=evolve(settings.agent, **agent))


def put_database(world: World) -> None:
    """Put an empty database on the disk, closed in order: to make its tables anew in each run takes half the time."""
    world.disk.path(DATABASE).write_bytes(_empty_database())


@cache
def _defaults() -> Settings:
    return load_settings(None, environ={}, home=Path("/nowhere"))


@cache
def _empty_database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE
        store = open_store(
            path,
            durability=Durability.FULL,
            connect=lambda path, flags: apsw.Connection(str(path), flags=flags),
            now=random.Random(0).random(),
            warn=lambda _line: None,
        )
        with store as opened:
            opened.end_in_order()
        return path.read_bytes()
