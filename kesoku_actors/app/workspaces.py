"""The folders of sessions (M6): named by the session's own id, never by anything from outside.

A cleared session's folder is renamed into `.trash` beside it before anything of it is deleted (M7). What lies in the
trash was a model's: folders nested without end, or closed to their owner, keep nothing from being deleted, and no link
is followed. A folder is emptied by lifting the folders in it into the trash, so that nothing is ever reached by a long
path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import trio

from kesoku_actors.app.locations import Unwritable, make_folder
from kesoku_actors.clock import ID_LENGTH
from kesoku_actors.errors import NotFound
from kesoku_actors.values import frozen

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_of(sessions_dir: Path, session_id: str) -> Path:
    """Return `sessions_dir/<session_id>`, whether it is there or not: to name it costs a hundredth of making it.

    Raises `NotFound` for an id that this program cannot have made.
    """
    if len(session_id) != ID_LENGTH or not (session_id.isascii() and session_id.isalnum()):
        raise NotFound(f"{session_id!r:.60} is not a session's id")
    return sessions_dir / session_id


def workspace_folder(sessions_dir: Path, session_id: str) -> Path:
    """Return the same folder, made with mode 0700 if need be (T6)."""
    folder = folder_of(sessions_dir, session_id)
    if not os.path.isdir(folder):
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError:
            sessions_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def prepare_sessions_dir(sessions_dir: Path) -> None:
    """Make the folder of the sessions' folders (T6) and look that it takes one. Raises `Unwritable`."""
    make_folder(sessions_dir)
    if not os.access(sessions_dir, os.R_OK | os.W_OK | os.X_OK):
        raise Unwritable(f"cannot write in the folder {sessions_dir}; make it writable or set `workspace.sessions_dir`")


InThread = Callable[[Callable[[], None]], Awaitable[None]]


async def in_thread(call: Callable[[], None]) -> None:
    """Run what waits for a disk beside the event loop."""
    await trio.to_thread.run_sync(call)


@frozen(kw_only=True)
class SessionFolders:
    """Implements `kesoku_actors.session.Folders` on a disk."""

    sessions_dir: Path
    run: InThread = in_thread

    async def discard(self, session_id: str) -> None:
        """Move the session's folder into the trash; nothing happens when it has none."""
        await self.run(lambda: self._discard(session_id))

    async def sweep(self) -> None:
        """Delete the trash, and what cannot be deleted next time."""
        if self._trash.exists():
            await self.run(lambda: _delete(self._trash))

    @property
    def _trash(self) -> Path:
        return self.sessions_dir / ".trash"

    def _discard(self, session_id: str) -> None:
        folder = self.sessions_dir / session_id
        if folder.is_dir():
            self._trash.mkdir(mode=0o700, exist_ok=True)
            folder.rename(self._trash / session_id)


def _delete(trash: Path) -> None:
    """Delete the trash and all in it; what cannot be deleted stays. Raises `OSError` when it cannot be read."""
    top = os.open(trash, _FOLDER)
    try:
        waiting = os.listdir(top)
        present = frozenset(waiting)
        free = (name for number in count() if (name := f".{number}") not in present)
        while waiting:
            with suppress(OSError):
                waiting += _taken_apart(top, waiting.pop(), free)
    finally:
        os.close(top)
    with suppress(OSError):
        trash.rmdir()


def _taken_apart(top: int, name: str, free: Iterator[str]) -> list[str]:
    """Delete what is called `name` in the trash, and return under which of the `free` names its folders lie there."""
    lifted: list[str] = []
    if not _is_folder(top, name):
        os.unlink(name, dir_fd=top)
        return lifted
    _open_up(top, name)
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(folder):
            with suppress(OSError):
                if not _is_folder(folder, inner):
                    os.unlink(inner, dir_fd=folder)
                    continue
                _open_up(folder, inner)
                outer = next(free)
                os.rename(inner, outer, src_dir_fd=folder, dst_dir_fd=top)
                lifted.append(outer)
    finally:
        os.close(folder)
    with suppress(OSError):
        os.rmdir(name, dir_fd=top)
    return lifted


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _open_up(folder: int, name: str) -> None:
    """Let ourselves into a folder: one that its owner may not write in cannot even be moved."""
    os.chmod(name, 0o700, dir_fd=folder)
