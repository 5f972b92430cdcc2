"""C1 to C5 on a disk that loses power: at any write, nothing accepted is lost and nothing is done twice.

The real tree tells a story (`tests.paths.story`) on a disk of the harness. A few of all power cuts, at every write and
with every way to survive, are drawn (`tests.draws`).
"""

from __future__ import annotations

import random
import shutil
import sys
from itertools import product
from pathlib import Path

import apsw
import trio
from trio.testing import MockClock

from kesoku_actors.harness import SURVIVALS, Disk, Survival, mounted, no_fault, power_loss_at
from kesoku_actors.protocol import Message
from kesoku_actors.store import Durability, Inline, StoreOptions
from tests.draws import drawn
from tests.paths.story import STORY, Outside, judge, rows

CUTS = 24


def lived(folder: Path, disk: Disk, outside: Outside) -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
    """Tell the story in one life; return the rows it found and the rows it left, none when the power went."""

    async def live() -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
        store = StoreOptions(path=folder / "kesoku.db", durability=Durability.FULL, access=Inline(connect=disk.connect))
        with trio.CancelScope() as power:
            disk.on_power_loss = power.cancel
            async with outside.life(folder, store, grace_s=0.0) as home:
                found = await rows(home)
                with trio.fail_after(600):
                    await outside.tell(home)
                return found, await rows(home)
        return None

    return trio.run(live, clock=MockClock(autojump_threshold=0))


def cut_and_go_on(folder: Path, number: int, survival: Survival) -> int:
    """Tell the story until the power goes at a change, and go on afterwards; return how often an answer was resent."""
    outside = Outside()
    with mounted(f"power-{folder.name}", script=power_loss_at(number)) as disk:
        lived(folder, disk, outside)  # the power may also go in the orderly end, or right after it
        disk.script, accepted = no_fault, list(outside.accepted)
        disk.power_on(random.Random(number), survival)
        lives = lived(folder, disk, outside)
        assert lives is not None
        judge(outside, accepted, *lives)
    with apsw.Connection(str(folder / "kesoku.db")) as database:
        assert database.pragma("integrity_check") == "ok"
    database.close()
    return sum(outside.sent.values()) - len(STORY)


def changes_of_the_story(folder: Path) -> int:
    """Tell the story on a disk that works; return how many changes it asked of it."""
    outside = Outside()
    with mounted(f"whole-{folder.name}") as disk:
        lives = lived(folder, disk, outside)
        assert lives is not None
        judge(outside, [], *lives)
        assert set(outside.runs.values()) == set(outside.sent.values()) == {1}
        return disk.changes


def test_a_power_loss_at_any_write_loses_nothing_accepted_and_does_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    changes = changes_of_the_story(tmp_path / "whole")
    resent = 0
    for number, survival in drawn(list(product(range(1, changes + 1), SURVIVALS)), CUTS):
        folder = tmp_path / f"{number}-{survival.__name__}"
        folder.mkdir()
        sys.stdout.write(f"power loss at change {number}, survives: {survival.__name__}\n")
        resent += cut_and_go_on(folder, number, survival)
        shutil.rmtree(folder)
    sys.stdout.write(f"{resent} answers were sent twice\n")
