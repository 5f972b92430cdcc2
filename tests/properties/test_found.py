"""What the harness found in our code is played again by one command, on the code it was found in and on its mend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from scripts.seeded.finds import Find, read_finds
from tests.draws import drawn

ROOT: Final = Path(__file__).parents[2]
FINDS: Final = read_finds()
PLAYED: Final = [find for find in FINDS if find.token]


def has_history(find: Find) -> bool:
    commits = [commit for commit in (find.at, find.undone and f"{find.undone}^") if commit]
    ended = [subprocess.run(["git", "cat-file", "-e", one], cwd=ROOT, capture_output=True) for one in commits]
    return all(one.returncode == 0 for one in ended)


def found(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/found", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("find", FINDS, ids=lambda find: find.name)
def test_what_was_found_is_held_down_by_a_test_that_is_there(find: Find) -> None:
    file, _, test = find.kept.partition(":")
    assert f"def {test}" in (ROOT / file).read_text()


def test_all_are_listed() -> None:
    listed = found()
    assert listed.returncode == 0
    assert [find.name for find in FINDS if find.name not in listed.stdout or find.fault not in listed.stdout] == []


def test_a_token_fails_where_it_was_found_and_passes_with_the_mend() -> None:
    if not all(map(has_history, PLAYED)):
        pytest.skip("the history of this checkout does not go back so far")
    for find in drawn(PLAYED, 1):
        fails_and_is_mended(find)


def fails_and_is_mended(find: Find) -> None:
    before, after = found(find.name, "--step"), found(find.name, "--step", "--mended")
    assert find.fails in before.stdout.splitlines()[-1], before.stderr
    assert before.returncode == 1
    assert after.stdout.splitlines()[-1] == "the program ends", after.stderr
    assert after.returncode == 0


def test_what_cannot_be_played_is_said() -> None:
    ended = found("history-of-a-cleared-session")
    assert ended.returncode == 1
    assert "cannot be played" in ended.stderr
