"""Files that a person attaches to a prompt: checked before anything is posted, copied after (M8)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import trio

from kesoku_actors.adapters.saving import LARGEST, receive
from kesoku_actors.app.workspaces import workspace_folder
from kesoku_actors.errors import UsageError
from kesoku_actors.gateway import Gateway
from kesoku_actors.log import Logger
from kesoku_actors.protocol import ATTACHMENTS, Message, expected

_PIECE: Final = 1 << 18


def check_files(files: Sequence[Path]) -> None:
    """Raise `UsageError` for the first file that cannot be attached."""
    for file in files:
        wrong = _what_is_wrong(file)
        if wrong is not None:
            raise UsageError(f"cannot attach {str(file)!r}: {wrong}")


def metadata_of(files: Sequence[Path]) -> dict[str, Any]:
    """Return the metadata of a message that these files come with."""
    names = [os.fsencode(file.name).decode("utf-8", "replace") for file in files]
    return {ATTACHMENTS: [expected(name).as_data() for name in names]} if names else {}


async def attach(message: Message, files: Sequence[Path], *, gateway: Gateway, sessions_dir: Path, log: Logger) -> None:
    """Copy the files into the session's workspace and settle each, in their order."""
    if not files:
        return
    workspace = workspace_folder(sessions_dir, message.session_id)
    async with trio.open_nursery() as nursery:
        for index, file in enumerate(files):
            nursery.start_soon(_copy, message, index, file, gateway, workspace, log)


async def _copy(message: Message, index: int, file: Path, gateway: Gateway, workspace: Path, log: Logger) -> None:
    await receive(message, index, _pieces(file), gateway=gateway, workspace=workspace, log=log)


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _what_is_wrong(file: Path) -> str | None:
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            return "it is a folder; attach files, or name the folder in the prompt"
        if not stat.S_ISREG(status.st_mode):
            return "it is no regular file; copy its content into one"
        if status.st_size > LARGEST:
            return f"it is larger than {LARGEST >> 20} MiB; name it in the prompt instead"
        file.open("rb").close()
    except (OSError, ValueError) as problem:
        return (getattr(problem, "strerror", None) or str(problem)).lower()
    return None
