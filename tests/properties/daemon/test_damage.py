"""A database that is damaged while the program runs ends it, with that fault and no other, and nothing is made of it
(C8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import apsw
import trio
from hypothesis import strategies as st

from kesoku_actors.actors import SystemFailed
from kesoku_actors.actors.leaves import leaves
from kesoku_actors.app.graces import STOP_S
from kesoku_actors.store import StoreDamaged
from tests.properties.daemon import model
from tests.properties.daemon.exploring import explored
from tests.properties.daemon.lives import Life, Play
from tests.properties.daemon.script import QUICK, TOOLS, Say, Script
from tests.properties.daemon.seams import DATABASE, DaemonWorld

LATE: Final = Say(model.HELLO, 60.0)
"""Said when all else is over: at the latest it meets the damage."""
SCRIPTS: Final = st.builds(
    lambda said: Script(rooms=((*said, LATE),)), st.lists(st.one_of(QUICK, TOOLS), min_size=1, max_size=2)
)
_FRAME_BYTES: Final = 24
"""Of the head of each page in a write-ahead log; that of the log itself has 32."""


def tear(connection: apsw.Connection, path: Path, table: str) -> None:
    """Write nonsense over a table's first page, in the file and wherever the log has it, and let it be read again."""
    [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
    size = int(connection.pragma("page_size"))
    nonsense = b"\xff" * size
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(nonsense)
    log = path.with_name(f"{path.name}-wal")
    with log.open("r+b") as file:
        for at in range(32, log.stat().st_size, _FRAME_BYTES + size):
            file.seek(at)
            if int.from_bytes(file.read(4)) == page:
                file.seek(at + _FRAME_BYTES)
                file.write(nonsense)
    connection.pragma("shrink_memory")


@explored(share=0.25, may_tick=False)
async def test_c8_damage_that_is_met_ends_the_program_with_that_fault(
    world: DaemonWorld,
    script: Any = SCRIPTS,
    after_s: Any = st.sampled_from((0.2, 0.5, 1.5, 4.0, 30.0)),
    table: Any = st.sampled_from(("messages", "sessions", "meta")),
) -> None:
    async def damage(life: Life) -> None:
        await trio.sleep(after_s)
        assert life.access.connection is not None
        while life.access.is_writing:
            await life.access.written.wait()
        tear(life.access.connection, world.disk.path(DATABASE), table)
        world.note("torn")

    one = Play(world=world, script=script, beside=damage)
    met: list[BaseException] = []
    try:
        await one.go()
    except* SystemFailed as failed:
        met += [leaf for each in leaves(failed) if isinstance(each, SystemFailed) for leaf in each.leaves]
    except* AssertionError as failed:
        raise AssertionError("it goes on with a damaged database, or crashes over it") from failed
    assert met, "it goes on with a damaged database"
    assert all(isinstance(leaf, StoreDamaged) for leaf in met), f"it ends for another reason: {met}"
    [torn] = [note for note in world.notes if note.kind == "torn"]
    late = f"room0 {len(script.rooms[0]) - 1}"
    if table == "messages":
        assert not [note for note in world.notes if note.kind == "accepted" and note["external"] == late]
    assert trio.current_time() <= max(torn.time, LATE.pause_s + 20.0) + STOP_S
