"""C1 to C5 on a disk that loses power: at any write, nothing accepted is lost and nothing is done twice.

The real tree tells a story (`tests.paths.story`) on a disk of the harness. A few power cuts are drawn by the seed that
is printed (`KESOKU_SEED` repeats it); `KESOKU_POWER_LOSS=all` cuts at every write, with every way to survive.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import trio
from trio.testing import MockClock

from kesoku_actors.harness import SURVIVALS, Disk, Survival, mounted, no_fault, power_loss_at
from kesoku_actors.protocol import Message, Role, Status, Type
from kesoku_actors.store import Durability, Inline, StoreOptions
from tests.paths.house import Home
from tests.paths.story import STORY, TOOLS, Outside

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


async def rows(home: Home) -> tuple[Message, ...]:
    return (await home.gateway.reader.changes(0, 1_000)).changed


def judge(outside: Outside, accepted: list[str], found: tuple[Message, ...], left: tuple[Message, ...]) -> None:
    """Raise unless the life after the power loss kept every promise."""
    there = {row.external_id for row in found}
    assert set(accepted) <= there, "C1: what was accepted is there"
    questions = [row for row in left if row.role is Role.USER]
    assert [row.content for row in sorted(questions, key=lambda row: row.seq)] == list(STORY)
    assert {row.status for row in questions} == {Status.PROCESSED}, "C2: what was open is answered"
    answers = Counter(row.content for row in left if row.status is Status.DELIVERED)
    assert answers == Counter(f"I am done with: {text}" for text in STORY), "C4: once each"
    calls = [row.id for row in left if row.type is Type.TOOL_CALL]
    results = [row for row in left if row.type is Type.TOOL_RESULT]
    assert sorted(calls) == sorted(row.parent_id or "" for row in results), "O4: one result for each call"
    for what in TOOLS:
        assert outside.runs[what] <= 1, f"C3: {what} ran {outside.runs[what]} times"
    done = {row.content.partition(" ")[0] for row in results if row.metadata["outcome"] == "ok"}
    assert done <= set(outside.runs)
    assert set(outside.sent) == set(answers), "C5: every answer was sent"
    assert max(outside.sent.values()) <= 2


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


def drawn(count: int) -> Iterator[tuple[int, Survival]]:
    """The cuts to make among `count` changes."""
    if os.environ.get("KESOKU_POWER_LOSS") == "all":
        yield from ((number, survival) for number in range(1, count + 1) for survival in SURVIVALS)
        return
    seed = int(os.environ.get("KESOKU_SEED") or random.SystemRandom().getrandbits(32))
    print(f"KESOKU_SEED={seed}")  # noqa: T201  (pytest shows it when the test fails)
    rng = random.Random(seed)
    for number in rng.sample(range(1, count + 1), CUTS):
        yield number, rng.choice(SURVIVALS)


def test_a_power_loss_at_any_write_loses_nothing_accepted_and_does_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    resent = 0
    for number, survival in drawn(changes_of_the_story(tmp_path / "whole")):
        folder = tmp_path / f"{number}-{survival.__name__}"
        folder.mkdir()
        print(f"power loss at change {number}, survives: {survival.__name__}")  # noqa: T201
        resent += cut_and_go_on(folder, number, survival)
        shutil.rmtree(folder)
    print(f"{resent} answers were sent twice")  # noqa: T201
