"""The folder of a session (M6): named by the session's own id, never by anything from outside."""

from __future__ import annotations

from pathlib import Path

from kesoku_actors.clock import ID_LENGTH
from kesoku_actors.errors import NotFound


def workspace_folder(sessions_dir: Path, session_id: str) -> Path:
    """Return `sessions_dir/<session_id>`, made with mode 0700 if need be (T6).

    Raises `NotFound` for an id that this program cannot have made.
    """
    if len(session_id) != ID_LENGTH or not (session_id.isascii() and session_id.isalnum()):
        raise NotFound(f"{session_id!r:.60} is not a session's id; list them with: kesoku-actors chat -l")
    folder = sessions_dir / session_id
    if not folder.is_dir():
        sessions_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
