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

from kesoku_actors.harness import EVERYTHING, SURVIVALS, Disk, Survival, mounted, no_fault, power_loss_at
from kesoku_actors.protocol import Message
from kesoku_actors.store import Durability, Inline, StoreOptions
from tests.draws import drawn
from tests.paths.story import STORY, Outside, judge, rows

CUTS = 60


def lived(
    folder: Path, disk: Disk, outside: Outside, durability: Durability = Durability.FULL
) -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
    """Tell the story in one life; return the rows it found and the rows it left, none when the power went."""

    async def live() -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
        store = StoreOptions(path=folder / "kesoku.db", durability=durability, access=Inline(connect=disk.connect))
        with trio.CancelScope() as power:
            disk.on_power_loss = power.cancel
            async with outside.life(folder, store, stop_s=20.0) as home:
                found = await rows(home)
                with trio.fail_after(600):
                    await outside.tell(home)
                return found, await rows(home)
        return None

    return trio.run(live, clock=MockClock(autojump_threshold=0))


def cut_and_go_on(
    folder: Path, cuts: tuple[int, ...], survival: Survival, durability: Durability = Durability.FULL
) -> int:
    """Tell the story in lives that end at these changes, then in a whole one; return how often answers were resent.

    A cut may also come in the orderly end of a life, or right after it.
    """
    folder.mkdir()
    outside = Outside()
    with mounted(f"power-{folder.name}") as disk:
        for number in cuts:
            disk.script = power_loss_at(number)
            lived(folder, disk, outside, durability)
            disk.power_on(random.Random(number), survival)
        disk.script, accepted = no_fault, list(outside.accepted)
        lives = lived(folder, disk, outside, durability)
        assert lives is not None
        if durability is Durability.FULL or survival is EVERYTHING:
            judge(outside, accepted, *lives, breaks=len(cuts))
    database = apsw.Connection(str(folder / "kesoku.db"))
    assert database.pragma("integrity_check") == "ok"
    database.close()
    shutil.rmtree(folder)
    return outside.sent.total() - len(STORY)


def changes_of_the_story(folder: Path) -> int:
    """Tell the story on a disk that works; return how many changes it asked of it."""
    outside = Outside()
    folder.mkdir()
    with mounted(f"whole-{folder.name}") as disk:
        lives = lived(folder, disk, outside)
        assert lives is not None
        judge(outside, [], *lives, breaks=0)
        assert set(outside.runs.values()) == set(outside.sent.values()) == {1}
        return disk.changes


def test_a_power_loss_at_any_write_loses_nothing_accepted_and_does_nothing_twice(tmp_path: Path) -> None:
    changes = changes_of_the_story(tmp_path / "whole")
    resent = 0
    for number, survival in drawn(list(product(range(1, changes + 1), SURVIVALS)), CUTS):
        sys.stdout.write(f"power loss at change {number}, survives: {survival.__name__}\n")
        resent += cut_and_go_on(tmp_path / "cut", (number,), survival)
    sys.stdout.write(f"{resent} answers were sent twice\n")


def test_a_power_loss_in_the_life_after_a_power_loss_breaks_no_promise_either(tmp_path: Path) -> None:
    changes = changes_of_the_story(tmp_path / "whole")
    for first, survival in drawn(list(product(range(1, changes + 1), SURVIVALS)), CUTS // 4):
        second = random.Random(first).randint(1, changes - min(first, changes // 2))
        sys.stdout.write(f"power loss at changes {first} and {second}, survives: {survival.__name__}\n")
        cut_and_go_on(tmp_path / "cut", (first, second), survival)


def test_with_normal_durability_a_death_loses_nothing_and_a_power_loss_leaves_a_store_that_works(
    tmp_path: Path,
) -> None:
    changes = changes_of_the_story(tmp_path / "whole")
    for number, survival in drawn(list(product(range(1, changes + 1), SURVIVALS)), CUTS // 4):
        sys.stdout.write(f"death or power loss at change {number}, survives: {survival.__name__}\n")
        cut_and_go_on(tmp_path / "cut", (number,), survival, Durability.NORMAL)
