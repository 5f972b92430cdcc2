"""An engine over a database in memory, for tests that group its commands themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import apsw

from kesoku_actors.clock import Clock
from kesoku_actors.store import Rules
from kesoku_actors.store.engine import Engine
from kesoku_actors.store.schema import migrate
from tests.properties import reference_store


def engine_in_memory(probe: Callable[[str], None] = lambda _point: None) -> Engine:
    """Return an engine whose clock stands still."""
    connection = apsw.Connection(":memory:")
    migrate(connection, 0.0)
    clock = Clock(wall=lambda: 1_000.0, monotonic=lambda: 0.0)
    return Engine(
        connection=connection,
        clock=clock,
        ids=partial(id_of_what_comes_next, connection),
        rules=Rules(max_waiting=reference_store.MAX_WAITING),
        life="life",
        probe=probe,
    )


def id_of_what_comes_next(connection: apsw.Connection) -> str:
    """Return an id that follows from what is stored, so that a command carried out twice makes the same row."""
    rows = "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM removed), count(*) FROM sessions"
    return "{:06}.{}".format(*connection.execute(rows).fetchall()[0])
