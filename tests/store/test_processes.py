"""Real processes: what a killed one leaves behind (C1), and one owner at a time (C6)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kesoku_actors.protocol import Inbound
from kesoku_actors.store import Durability, Post, Posted, StoreInUse, StoreOptions, open_reader
from kesoku_actors.store.access import connect_plainly
from kesoku_actors.store.opening import open_store
from tests.store.home import Home, living

ROOT = Path(__file__).parents[2]


def writer(path: Path, durability: Durability, point: str = "never", count: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.writer", str(path), durability, point, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def accepted(process: subprocess.Popen[str]) -> list[str]:
    """Everything it said before it died."""
    assert process.stdout is not None
    with process:
        return process.stdout.read().split()


async def stored(home: Home) -> list[str | None]:
    return [message.external_id for message in (await home.reader.changes(0, 1_000_000)).changed]


@pytest.mark.parametrize("durability", list(Durability))
async def test_c1_every_accepted_message_outlives_a_kill(tmp_path: Path, durability: Durability):
    path = tmp_path / "k.db"
    process = writer(path, durability)
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(40)]
    process.kill()
    said += accepted(process)
    async with living(path) as home:
        found = await stored(home)
        assert found == [str(number) for number in range(len(found))]
        assert len(found) - (len(said) - 1) in (0, 1), "at most the one not told of yet is there besides"


@pytest.mark.parametrize(("point", "kept"), [("store.before_commit", 4), ("store.after_commit", 5)])
async def test_c10_a_post_sent_again_after_a_kill_is_there_once(tmp_path: Path, point: str, kept: int):
    path = tmp_path / "k.db"
    said = accepted(writer(path, Durability.FULL, point, 5))
    assert said == ["ready", "0", "1", "2", "3"]
    async with living(path) as home:
        assert len(await stored(home)) == kept
        inbound = Inbound(chatbot_id="bot", channel_id="room4", content="again", external_id="4")
        again = await home.store.post(Post(id="again", inbound=inbound))
        assert isinstance(again, Posted)
        assert again.is_new is (kept == 4)
        assert len(await stored(home)) == 5


async def test_c6_a_second_process_is_told_who_owns_the_store_and_changes_nothing(tmp_path: Path):
    path = tmp_path / "k.db"
    process = writer(path, Durability.NORMAL)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    with (
        pytest.raises(StoreInUse, match=rf"process {process.pid} \(.*writer.py"),
        open_store(path, durability=Durability.NORMAL, connect=connect_plainly, now=0.0, warn=print),
    ):
        pass
    reader = open_reader(StoreOptions(path=path))
    assert await reader.head() >= 0
    await reader.close()
    process.kill()
    accepted(process)
    warnings: list[str] = []
    with open_store(
        path, durability=Durability.NORMAL, connect=connect_plainly, now=0.0, warn=warnings.append
    ) as opened:
        assert opened.was_unclean
    assert warnings == []
