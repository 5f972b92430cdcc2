"""The store actor: the one writer, group commit, the retries (C9).

Invariants: a letter is answered only after the commit that carries it, or at once where the engine remembers the answer
and nothing is to be stored; what a group changed is published before its letters are answered, in `rev` order; a group
that the database did not take is tried again as a whole, and after the last try every letter of it is refused with
`StoreBusy`. Damage refuses the letters in hand and ends the actor, so that the process ends with the exit code of
`StoreDamaged` (C8).

Cancelled, the actor still learns what became of the group it runs: the executor waits for a call that has begun.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

import apsw
import trio
from attrs import Factory, field

from kesoku_actors.actors import Cell, Letter
from kesoku_actors.clock import IdSource, World
from kesoku_actors.store import faults
from kesoku_actors.store.access import Access, Inline, Threaded, in_thread
from kesoku_actors.store.engine import Engine, Failed
from kesoku_actors.store.opening import CHECK_AT_ONCE_BYTES, Durability, OpenedStore, open_store
from kesoku_actors.store.port import Command, Publication
from kesoku_actors.store.reader import Reader
from kesoku_actors.store.soundness import check_beside
from kesoku_actors.store.transaction import Rules
from kesoku_actors.values import define, frozen

T = TypeVar("T")

GROUP: Final = 64
"""Letters of one transaction at most."""
_TOLD_FOR_S: Final = 60.0


def _quiet(_text: str) -> None:
    return None


def _nothing() -> None:
    return None


def _access(options: StoreOptions) -> Access:
    """A commit that waits for the disk must not hold the loop."""
    return Threaded(path=options.path) if options.durability is Durability.FULL else Inline()


@frozen(kw_only=True)
class StoreOptions:
    """Where the store is and how it works. Made once per process: `access` outlives restarts of the actor."""

    path: Path
    durability: Durability = Durability.FULL
    rules: Rules = field(factory=Rules)
    access: Access = field(default=Factory(_access, takes_self=True))
    retry_s: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.4, 0.8)
    """Pauses between the tries of a group, and of a query, seconds."""
    check_at_once_bytes: int = CHECK_AT_ONCE_BYTES
    """A larger database is checked beside its work after an unclean end (C8)."""
    sleep: Callable[[float], Awaitable[None]] = trio.sleep
    warn: Callable[[str], None] = _quiet
    """Told what people should know, one line each: of a start, and once of a disk that takes nothing."""
    refused: Callable[[], None] = _nothing
    """Told each time a group was given up, after all its tries; called on the trio thread."""
    probe: Callable[[str], None] = _quiet
    """Told the names of the points where a crash matters; on the thread that runs the transaction."""


def open_reader(options: StoreOptions) -> Reader:
    """Return the reader of a store. With `Durability.FULL` it needs no actor: it opens the file by itself (C6)."""
    return Reader(access=options.access, rules=options.rules, retry_s=options.retry_s, sleep=options.sleep)


async def store_actor(
    cell: Cell[Command], *, options: StoreOptions, world: World, publish: Callable[[Publication], None]
) -> None:
    """Own the store and commit what comes, until stopped.

    `publish` is called on the trio thread after each group, before its letters are answered, and once at the start
    with nothing in it, so that what an earlier life committed and did not publish is read; it neither blocks nor
    raises. Raises what `open_store` does when it begins, `StoreDamaged` later.
    """
    access = options.access
    access.life = access.life or world.ids()
    store = open_store(
        options.path,
        durability=options.durability,
        connect=access.connect,
        now=world.clock.wall(),
        warn=options.warn,
        check_at_once_bytes=options.check_at_once_bytes,
    )
    opened = await access.run(store.__enter__)
    writer = _Writer(options=options, engine=_engine(opened, options, world), publish=publish, rng=world.rng)
    try:
        with access.lend(opened.connection):
            publish(await access.run(writer.engine.beginning))
            cell.started()
            async with _checked_beside(opened, options):
                async for letters in cell.inbox.batches(limit=GROUP):
                    await writer.commit(letters)
            await _end_in_order(access, opened, options)
    finally:
        await _close(access, store)


@asynccontextmanager
async def _checked_beside(opened: OpenedStore, options: StoreOptions) -> AsyncIterator[None]:
    """Check a large database that was not closed in order, while the block runs. Raises `StoreDamaged` in a group."""
    if not opened.is_unchecked:
        yield
        return
    given_up = Event()
    check = partial(check_beside, options.path, options.access.connect, given_up.is_set)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_thread, check)
        try:
            yield
        finally:
            given_up.set()


async def _end_in_order(access: Access, opened: OpenedStore, options: StoreOptions) -> None:
    await access.close()
    try:
        await access.run(opened.end_in_order)
    except faults.PASSING as error:
        options.warn(f"{options.path} could not be closed in order ({error}); it will be checked when it is opened")
    except faults.DAMAGE as error:
        raise faults.damaged(options.path, error) from error


async def _close(access: Access, store: AbstractContextManager[OpenedStore]) -> None:
    """Close what is open, without a deadline.

    One would end nothing: what is waited for is calls in threads, which cannot be left behind. And the lock must not
    be given up while a connection of this life may still write (C6). SQLite bounds them, for it waits two seconds for
    a lock at most.
    """
    with trio.CancelScope(shield=True):
        await access.close()
        await access.run(partial(store.__exit__, None, None, None))


def _engine(opened: OpenedStore, options: StoreOptions, world: World) -> Engine:
    # The engine may run in a thread, where the world's own source must not be used at the same time.
    ids = IdSource(clock=world.clock, rng=random.Random(world.rng.getrandbits(64)))
    return Engine(
        connection=opened.connection,
        clock=world.clock,
        ids=ids,
        rules=options.rules,
        life=options.access.life,
        probe=options.probe,
    )


@define(eq=False, kw_only=True)
class _Writer:
    options: StoreOptions
    engine: Engine
    publish: Callable[[Publication], None]
    rng: random.Random
    is_waiting: bool = False
    """Whether the last group was given up."""
    told: float = -math.inf
    """When people were told of that last, in trio's time."""

    async def commit(self, letters: list[Letter[Command]]) -> None:
        """Commit one group and answer its letters. Raises `StoreDamaged`."""
        commands = [letter.message for letter in letters]
        if (remembered := self.engine.from_memory(commands)) is not None:
            for letter, reply in zip(letters, remembered, strict=True):
                letter.reply(reply)
            return
        try:
            replies, publication = await self._patiently(partial(self.engine.run, commands))
        except faults.PASSING as error:
            self._tell(error)
            for letter in letters:
                letter.refuse(faults.busy(error))
        except faults.DAMAGE as error:
            for letter in letters:
                letter.refuse(faults.damaged(self.options.path, error))
            raise faults.damaged(self.options.path, error) from error
        else:
            self.is_waiting = False
            if publication is not None:
                self.publish(publication)
            for letter, reply in zip(letters, replies, strict=True):
                _answer(letter, reply)

    def _tell(self, error: apsw.Error) -> None:
        # What is small may still be taken in between; that is not worth telling the same again.
        if not self.is_waiting and trio.current_time() - self.told >= _TOLD_FOR_S:
            self.told = trio.current_time()
            self.options.warn(faults.waiting(error))
        self.is_waiting = True
        self.options.refused()

    async def _patiently(self, run: Callable[[], T]) -> T:
        """Run a group, again after each pause as long as what fails may pass; the last error is raised."""
        for pause_s in self.options.retry_s:
            try:
                return await self.options.access.run(run)
            except faults.PASSING:
                await self.options.sleep(pause_s * (0.5 + self.rng.random()))
        return await self.options.access.run(run)


def _answer(letter: Letter[Command], reply: object) -> None:
    if isinstance(reply, Failed):
        letter.refuse(reply.error)
    else:
        letter.reply(reply)
