"""What the harness found in our code, as `tests/properties/found.toml` lists it, and the code that it was found in."""

from __future__ import annotations

import os
import subprocess
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from attrs import frozen

from scripts.seeded.table import PACKAGE, ROOT

TABLE: Final = ROOT / "tests" / "properties" / "found.toml"


class NoSuchState(Exception):
    """The code that a find was made in cannot be made again."""


@frozen(kw_only=True)
class Find:
    """A fault that was found and mended."""

    name: str
    rule: str
    fault: str
    """What it was, in one line."""
    mend: str
    """The commit that mended it."""
    kept: str
    """The test that holds it down today; its program is what the token plays."""
    at: str = ""
    """A commit in which that program stands."""
    undone: str = ""
    """The commit whose change of the product is taken back there."""
    file: str = ""
    """In place of that: where one text is put in the place of another."""
    old: str = ""
    new: str = ""
    token: str = ""
    """Of a run in which it shows; empty where no single run does."""
    fails: str = ""
    """How that run fails."""


def read_finds(path: Path = TABLE) -> tuple[Find, ...]:
    """Return the finds in the order of the table."""
    return tuple(Find(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["found"])


def put_code(find: Find, folder: Path, *, is_mended: bool) -> None:
    """Put the code of a find into a folder, with the fault or without it. Raises `NoSuchState`."""
    with ZipFile(BytesIO(_git("archive", "--format=zip", find.at))) as archive:
        archive.extractall(folder)
    if is_mended:
        return
    if find.undone:
        change = _git("diff", f"{find.undone}^", find.undone, "--", PACKAGE)
        _git("apply", "-R", "-", folder=folder, given=change)
        return
    file = folder / find.file
    before = file.read_text(encoding="utf-8")
    if (count := before.count(find.old)) != 1:
        raise NoSuchState(f"{find.old!r} stands {count} times in {find.file} of {find.at}")
    file.write_text(before.replace(find.old, find.new), encoding="utf-8")


def _git(*arguments: str, folder: Path = ROOT, given: bytes = b"") -> bytes:
    # A folder that lies within some checkout is no part of it: git would take a patch for the checkout's.
    environment = os.environ if folder == ROOT else os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    ended = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, input=given, capture_output=True, check=False
    )
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip()
        raise NoSuchState(f"{' '.join(arguments)}: {said}; it takes git, and the whole history of this repository")
    return ended.stdout
