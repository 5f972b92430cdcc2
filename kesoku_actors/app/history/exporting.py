"""`history export`: whole sessions as one file of lines, written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import trio

from kesoku_actors.app.history.export_lines import end_line, header_line, masked, session_lines
from kesoku_actors.app.history.finding import reading, the_session
from kesoku_actors.app.locations import Unwritable
from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import NotFound, UsageError
from kesoku_actors.log import mask_secrets
from kesoku_actors.protocol import SessionState
from kesoku_actors.store import Reader
from kesoku_actors.values import frozen

EVERY = 1 << 40
"""More sessions than there are."""


@frozen(kw_only=True)
class ExportRequest:
    """Write sessions to a file, or to standard output."""

    settings: Settings
    session: str | None
    """One session, as a person names it; none: all that are open."""
    output: Path | None


def export_history(request: ExportRequest) -> int:
    """Write the export and return the exit code. Raises `NotFound`, `Unwritable`, `UsageError`, store faults."""
    if request.output is None:
        trio.run(_export, request, sys.stdout.write)
        return 0
    with _replacing(request.output) as file:
        trio.run(_export, request, file.write)
    return 0


async def _export(request: ExportRequest, write: Callable[[str], object]) -> None:
    mask = mask_secrets(request.settings.secrets())
    lines = 0
    async with reading(request.settings) as reader:
        ids = [id async for id in _chosen(reader, request)]
        async for data in _lines(reader, ids):
            write(json.dumps(masked(data, mask), ensure_ascii=False, separators=(",", ":")) + "\n")
            lines += 1
    write(json.dumps(end_line(lines), separators=(",", ":")) + "\n")


async def _chosen(reader: Reader | None, request: ExportRequest) -> AsyncIterator[str]:
    if request.session is not None:
        yield (await the_session(reader, request.session, request.settings.program)).id
        return
    for info in reversed(await reader.sessions(EVERY) if reader else ()):
        if info.state is SessionState.OPEN:
            yield info.id


async def _lines(reader: Reader | None, session_ids: list[str]) -> AsyncIterator[dict[str, Any]]:
    yield header_line()
    for session_id in session_ids:
        archive = await reader.archive(session_id) if reader else None
        if archive is None and len(session_ids) == 1:
            raise NotFound(f"the session {session_id} is being cleared")
        for line in session_lines(archive) if archive is not None else ():
            yield line


@contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    """Open a file of mode 0600 that takes the place of the one at `path` when the block ends well."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name another place, or leave -o out")
    try:
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}-")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror or error}; name another place with -o") from None
