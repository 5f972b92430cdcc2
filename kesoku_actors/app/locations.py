"""Where things lie when nobody says so, and making folders and files that only their owner can read (T6)."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from pathlib import Path
from typing import Final

from kesoku_actors.errors import Fault, UsageError

CONFIG_NAME: Final = "config.toml"
_APPLICATION: Final = "kesoku-actors"


class Unwritable(Fault):
    """A folder or file cannot be made: no permission, a read-only or a full disk."""

    exit_code = 73


def data_folder() -> Path:
    """Return the user's data folder of this program; it need not exist."""
    import platformdirs

    return platformdirs.user_data_path(_APPLICATION, appauthor=False)


def example_config() -> str:
    """Return the commented configuration that holds every key with its default."""
    return Path(__file__).with_name("config.example.toml").read_text(encoding="utf-8")


def make_folder(path: Path) -> None:
    """Make `path` and what is missing above it, each readable by its owner only. Raises `Unwritable`."""
    missing = [folder for folder in (path, *path.parents) if not os.path.exists(folder)]
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make the folder {path}: {error.strerror}; choose another place with -c") from None


def exposed(path: Path, rights: int) -> str | None:
    """Return a warning if others than its owner have some of `rights`, mode bits, on what is at `path` already (T6)."""
    try:
        mode = path.stat().st_mode
    except OSError:  # it is not there yet, or whoever opens it says why it cannot be used
        return None
    others = mode & rights
    if not others or mode & stat.S_ISVTX:  # as in /tmp, where everybody has but what is his own
        return None
    can = "written" if others & 0o022 else "read"
    return f"{path} can be {can} by other users of this machine; keep them out: chmod go= {shlex.quote(str(path))}"


def write_new(path: Path, text: str, *, replace: bool) -> None:
    """Write `text` whole or not at all, as a file of mode 0600. Raises `UsageError` (exists), `Unwritable`."""
    if not replace and os.path.lexists(path):
        raise UsageError(f"{path} exists already; add --force to replace it")
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder; name a file in it")
    if os.path.islink(path):
        raise UsageError(f"{path} is a link; name the file itself")
    if os.path.lexists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is not a regular file; name another place")
    make_folder(path.parent)
    try:
        # A hard link would close the gap between looking and renaming, but some disks know no links.
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror}; choose another place with -c") from None
