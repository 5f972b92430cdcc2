"""`history import`: the sessions of an export become sessions of this store, all or none.

It owns the store while it works (C6): beside a program that uses it, it changes nothing and says who that is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final

from kesoku_actors.app.history.export_lines import (
    KINDS,
    LONGEST_LINE,
    BadExport,
    Line,
    parse,
    take_archive,
    take_header,
)
from kesoku_actors.app.settings import Settings
from kesoku_actors.clock import World
from kesoku_actors.errors import UsageError
from kesoku_actors.store import Durability, Imported
from kesoku_actors.store.alone import importing_into
from kesoku_actors.store.archive import SessionArchive
from kesoku_actors.values import frozen

_MOST_LINES: Final = 5_000_000
STDIN: Final = "-"


@frozen(kw_only=True)
class ImportRequest:
    """Take the sessions of a file, or of standard input."""

    settings: Settings
    file: str


def import_history(request: ImportRequest, world: World, warn: Callable[[str], None]) -> Imported:
    """Import the file and return what it brought. Raises `UsageError`, `BadExport`, store faults."""
    path, durability = request.settings.workspace.db_path, Durability(request.settings.workspace.durability)
    with _opened(request.file) as stream:
        sessions = sessions_of(stream)  # what is no export at all opens no store
        with importing_into(path, durability=durability, world=world, warn=warn) as take:
            return take(sessions)


def sessions_of(stream: IO[bytes]) -> Iterator[SessionArchive]:
    """Return the sessions of an export, each read when it is asked for. Raises `BadExport`, now or then."""
    lines = _lines(stream)
    first = next(lines, None)
    if first is None:
        raise BadExport(1, "the file is empty")
    take_header(first)
    return _sessions(lines)


def _sessions(lines: Iterator[Line]) -> Iterator[SessionArchive]:
    number = 1
    session: Line | None = None
    rows: list[Line] = []
    seen: set[str] = set()
    for line in lines:
        number = line.number
        if line.kind in KINDS and session is not None:
            rows.append(line)
            continue
        if session is not None:
            yield take_archive(session, rows)
        session, rows = None, []
        if line.kind == "end":
            _take_end(line, lines)
            return
        if line.kind != "session":
            raise BadExport(line.number, _unexpected(line.kind))
        if (named := f"{line.data.get('id')!r:.80}") in seen:
            raise BadExport(line.number, f"the session {named} stands here twice")
        seen.add(named)
        session = line
    raise BadExport(number, "the file is cut short behind this line: its end is missing")


def _take_end(line: Line, rest: Iterator[Line]) -> None:
    if line.data != {"lines": line.number - 1}:
        raise BadExport(
            line.number, f"the file is cut short or was changed: {line.number - 1} lines stand before its end"
        )
    if (after := next(rest, None)) is not None:
        raise BadExport(after.number, "something stands behind the end")


def _unexpected(kind: str) -> str:
    if kind in KINDS:
        return f"a {kind} stands here before any session"
    return f"kind: {kind!r:.40} is not known here; there are session, {', '.join(KINDS)}, end"


def _lines(stream: IO[bytes]) -> Iterator[Line]:
    number = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE or number > _MOST_LINES:
            raise BadExport(number, f"a line has at most {LONGEST_LINE:,} bytes, and a file {_MOST_LINES:,} lines")
        if not raw.endswith(b"\n"):
            raise BadExport(number, "the file is cut short: this line does not end")
        yield parse(number, raw)


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == STDIN:
        if sys.stdin is None:
            raise UsageError("standard input is closed; name a file")
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115  closed below, where another error is not this one
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{name!r:.200} cannot be read: {why}") from None
    with file:
        yield file
