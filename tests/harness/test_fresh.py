"""A program is found in a fresh process as it is found here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import trio

async def test_order():
    told = []

    async def tell(word):
        await trio.sleep(0)
        told.append(word)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell, "a")
        nursery.start_soon(tell, "b")
    assert told == ["a", "b"], "the other way round"
"""


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["one job", "two jobs"])
def test_a_file_beside_a_program_is_not_taken_for_a_standard_module(tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "platform.py").write_text("raise AssertionError('nobody asked for this one')\n")
    command = [sys.executable, "-m", "kesoku_actors", "check", str(tmp_path / "program.py"), *more]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1, ended.stderr
    assert "the other way round" in ended.stdout
    assert "in this process only" not in ended.stdout
