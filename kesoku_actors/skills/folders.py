"""Reading folders of skills: every folder in a root is a skill, or is told of with a reason.

Nothing here follows a link out of the root or opens what is not a regular file, and of a file no more is read than its
largest header. The Markdown file of a skill is `SKILL.md`, in any case; without it the first file `*.md`, by name, that
begins with a header. Folders whose names begin with a dot or an underscore are nobody's skill. A root that is not there
holds none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kesoku_actors.skills.catalog import Left, Skill
from kesoku_actors.skills.front_matter import LARGEST_HEADER, InvalidHeader, parse, split

SHIPPED: Final = Path(__file__).with_name("shipped")
"""The folder of the skills that come along."""
MOST_SKILLS: Final = 256
"""Of one root."""
LARGEST_TEXT: Final = 262_144
"""Bytes of a skill's file that are read."""
MOST_FILES: Final = 200
"""That are listed of one skill."""
_PRIVATE: Final = (".", "_")

Mark = tuple[str, int, int, int]
"""Path, size, inode and time of change: what tells that something is no longer what was read."""


def read_roots(roots: Iterable[Path]) -> Iterator[Skill | Left]:
    """Yield what each folder in each root is, in the order of the roots, then of the names."""
    for root in roots:
        real = Path(os.path.realpath(root))
        try:
            names = _folders(real)
        except OSError as problem:
            yield Left(folder=root, reason=f"the folder of skills cannot be read: {problem.strerror}")
            continue
        for name in names[:MOST_SKILLS]:
            yield _read_folder(real / name, real)
        if len(names) > MOST_SKILLS:
            yield Left(folder=root, reason=f"holds more than {MOST_SKILLS} folders; the rest is not looked at")


def look(roots: Iterable[Path]) -> frozenset[Mark]:
    """Return what changes when a skill comes, goes or changes its file. Reads no file."""
    marks = set()
    for root in roots:
        try:
            names = _folders(Path(root))
        except OSError:
            continue
        for name in names[:MOST_SKILLS]:
            folder = os.path.join(root, name)
            for path in (folder, *(os.path.join(folder, file) for file in _markdown(folder))):
                try:
                    found = os.stat(path)
                except OSError:
                    continue
                marks.add((path, found.st_size, found.st_ino, found.st_mtime_ns))
    return frozenset(marks)


def read_text(skill: Skill) -> str:
    """Return the instructions of a skill, its header left out. Raises `OSError`, `InvalidHeader`."""
    content = _read(skill.file, LARGEST_TEXT + 1)
    cut = len(content) > LARGEST_TEXT
    text = split(content[:LARGEST_TEXT])[1].decode("utf-8", "replace").replace("\r\n", "\n").strip()
    return f"{text}\n[the rest is left out: the file is larger than {LARGEST_TEXT:,} bytes]" if cut else text


def list_files(skill: Skill) -> tuple[tuple[str, ...], bool]:
    """Return the paths of a skill's further files, from its folder, and whether there are more than `MOST_FILES`."""
    found: list[str] = []
    for folder, inner, files in os.walk(skill.folder):
        inner[:] = sorted(name for name in inner if not name.startswith(_PRIVATE))
        for name in sorted(files):
            path = Path(folder, name)
            if name.startswith(".") or path == skill.file or not str(path).isprintable():
                continue
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            if len(found) == MOST_FILES:
                return tuple(found), True
            found.append(path.relative_to(skill.folder).as_posix())
    return tuple(found), False


def _folders(root: Path) -> list[str]:
    """The names of a root's folders, and of its links that lead nowhere."""
    try:
        names = sorted(name for name in os.listdir(root) if not name.startswith(_PRIVATE))
    except FileNotFoundError:
        return []
    return [name for name in names if os.path.isdir(path := os.path.join(root, name)) or not os.path.exists(path)]


def _markdown(folder: str) -> list[str]:
    """The Markdown files of a folder, `SKILL.md` first."""
    try:
        names = [name for name in os.listdir(folder) if name.lower().endswith(".md")]
    except OSError:
        return []
    return sorted(names, key=lambda name: (name.lower() != "skill.md", name))


def _read_folder(folder: Path, root: Path) -> Skill | Left:
    if not folder.name.isprintable():
        # The path goes to models and terminals, and must be the path also after they had it.
        return Left(
            folder=root / ascii(folder.name)[1:-1],
            reason="its name holds signs that cannot be shown; rename the folder",
        )
    real = Path(os.path.realpath(folder))
    if not real.is_dir():
        return Left(folder=folder, reason="is a link that leads nowhere")
    if real != folder and real.parent == root:
        return Left(folder=folder, reason=f"is a link to {real}, which is here already")
    if not real.is_relative_to(root):
        return Left(folder=folder, reason=f"is a link out of the folder of skills, to {real}; copy the folder here")
    names = _markdown(str(real))
    if not names:
        return Left(folder=folder, reason="holds no SKILL.md")
    named = names[:1] if names[0].lower() == "skill.md" else names
    reasons = []
    for name in named:
        try:
            return _read_skill(real, name)
        except InvalidHeader as problem:
            reasons.append(f"{name}: {problem}")
        except OSError as problem:
            reasons.append(f"{name}: cannot be read: {problem.strerror}")
    return Left(folder=folder, reason=reasons[0])


def _read_skill(folder: Path, name: str) -> Skill:
    file = Path(os.path.realpath(folder / name))
    if not file.is_relative_to(folder):
        raise InvalidHeader(f"is a link out of the skill's folder, to {file}; copy the file here")
    # The two lines of dashes and a line end more than fits, so that what is too large is seen to be so.
    header, _ = split(_read(file, LARGEST_HEADER + 64))
    return Skill(header=parse(header), folder=folder, file=file)


def _read(path: Path, limit: int) -> bytes:
    # Without O_NONBLOCK the open of a named pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidHeader("is not a regular file")
        return file.read(limit)
