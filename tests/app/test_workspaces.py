"""The trash of cleared sessions: what a model left in its folder cannot keep it from being deleted (M7)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kesoku_actors.app.workspaces import SessionFolders, workspace_folder

SESSION = "06H2T2KSMWZFFEHHK521HN5SZX"
OTHER = "06H2T2KSMWZFFEHHK521HN5SZY"


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Path]:
    """A folder that is deleted by whoever can, also where ours could not: the next run's cleaning could not either."""
    yield tmp_path / "sessions"
    subprocess.run(["rm", "-rf", tmp_path / "sessions"], check=True)


def deep(folder: Path) -> None:
    """Nest folders deeper than any path can say, and than functions can call each other."""
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("a", dir_fd=inside)
        below = os.open("a", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=inside))
    os.close(inside)


def read_only(folder: Path) -> None:
    """Leave folders as package caches are: with files, and not to be written in."""
    (folder / "cache" / "module").mkdir(parents=True)
    (folder / "cache" / "module" / "file").write_text("kept")
    (folder / "cache" / "module").chmod(0o500)
    (folder / "cache").chmod(0o000)


def odd_names(folder: Path) -> None:
    """Leave names that are no text, that begin with a dash, and that a sweep might choose itself."""
    for name in (b"\xff\xfe", b"-rf", b".0", b".1", b"a\nb"):
        os.makedirs(os.path.join(os.fsencode(folder), name, b".0"))


def pipes_and_links(folder: Path) -> None:
    """Leave what is no file."""
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to("/does/not/exist")


@pytest.mark.parametrize("leave", [deep, read_only, odd_names, pipes_and_links])
async def test_a_swept_folder_is_gone_whatever_was_left_in_it(sessions: Path, leave: Callable[[Path], None]) -> None:
    folders = SessionFolders(sessions_dir=sessions)
    leave(workspace_folder(folders.sessions_dir, SESSION))
    workspace_folder(folders.sessions_dir, OTHER)
    await folders.discard(SESSION)
    await folders.sweep()
    assert os.listdir(folders.sessions_dir) == [OTHER]


async def test_a_sweep_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "home" / "inner").mkdir(parents=True)
    (tmp_path / "home" / "letter").write_text("dear")
    (tmp_path / "home").chmod(0o750)
    folders = SessionFolders(sessions_dir=tmp_path / "sessions")
    folder = workspace_folder(folders.sessions_dir, SESSION)
    (folder / "below").mkdir()
    for place in (folder, folder / "below"):
        (place / "link").symlink_to(tmp_path / "home")
    await folders.discard(SESSION)
    await folders.sweep()
    assert os.listdir(folders.sessions_dir) == []
    assert (tmp_path / "home" / "letter").read_text() == "dear"
    assert (tmp_path / "home" / "inner").is_dir()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o750


async def test_what_an_earlier_sweep_left_half_done_is_deleted_too(tmp_path: Path) -> None:
    folders = SessionFolders(sessions_dir=tmp_path)
    for name in (".0", ".1", SESSION):
        (tmp_path / ".trash" / name / "inner" / "deeper").mkdir(parents=True)
        (tmp_path / ".trash" / name / "inner" / "file").write_text("text")
    await folders.sweep()
    assert os.listdir(tmp_path) == []
