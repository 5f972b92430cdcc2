"""A store used by one command alone, without the actor: for a program that does one thing and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kesoku_actors.clock import World
from kesoku_actors.store import faults
from kesoku_actors.store.access import connect_plainly
from kesoku_actors.store.archive import SessionArchive
from kesoku_actors.store.engine import Engine, Failed
from kesoku_actors.store.opening import Durability, OpenedStore, open_store
from kesoku_actors.store.port import Imported, ImportSessions
from kesoku_actors.store.soundness import check_soundness
from kesoku_actors.store.transaction import Rules

Take = Callable[[Iterable[SessionArchive]], Imported]


@contextmanager
def importing_into(path: Path, *, durability: Durability, world: World, warn: Callable[[str], None]) -> Iterator[Take]:
    """Own the store at `path` inside, made if it is not there, and import into it with what is yielded (C6).

    Raises what `open_store` does; what is yielded raises `AlreadyThere`, what the sessions' iteration raises, and
    `StoreBusy` for a disk that is full: then nothing was imported.
    """
    with open_store(path, durability=durability, connect=connect_plainly, now=world.clock.wall(), warn=warn) as opened:
        if opened.is_unchecked:
            check_soundness(path, opened.connection)
        yield lambda sessions: _import(path, opened, world, sessions)


def _import(path: Path, opened: OpenedStore, world: World, sessions: Iterable[SessionArchive]) -> Imported:
    engine = Engine(
        connection=opened.connection,
        clock=world.clock,
        ids=world.ids,
        rules=Rules(),
        life=world.ids(),
        probe=lambda _point: None,
    )
    try:
        (reply,), _ = engine.run([ImportSessions(sessions=sessions)])
        opened.end_in_order()
    except faults.PASSING as error:
        raise faults.busy(error) from error
    except faults.DAMAGE as error:
        raise faults.damaged(path, error) from error
    if isinstance(reply, Failed):
        raise reply.error
    assert isinstance(reply, Imported), "as the port says"
    return reply
