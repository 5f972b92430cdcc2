"""An export as lines of JSON: a header, the rows of one session after another, an end. Pure.

Every line is an object whose `kind` says what the rest is: one of `KINDS`, `header` or `end`. A session's line comes
before its rows; the rows of a kind stand in their order. The end counts the lines before it, so that a file that was
cut short is known by its missing end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kesoku_actors.errors import UsageError
from kesoku_actors.log import Mask
from kesoku_actors.protocol import DecodeError, decode, make_converter
from kesoku_actors.store.archive import (
    ArchivedCall,
    ArchivedJob,
    ArchivedMessage,
    ArchivedStep,
    ArchivedSummary,
    ArchivedTurn,
    Flaw,
    SessionArchive,
    SessionHead,
)
from kesoku_actors.values import frozen

VERSION: Final = 1
FORMAT: Final = "kesoku-actors history"
LONGEST_LINE: Final = 64 << 20
"""Bytes."""
DEEPEST: Final = 100
"""Objects and lists inside one another."""
KINDS: Final[Mapping[str, tuple[str, type[Any]]]] = {
    "message": ("messages", ArchivedMessage),
    "turn": ("turns", ArchivedTurn),
    "step": ("steps", ArchivedStep),
    "call": ("calls", ArchivedCall),
    "job": ("jobs", ArchivedJob),
    "summary": ("summaries", ArchivedSummary),
}
"""What the rows of a session are called, the field of `SessionArchive` they stand in, and their values."""

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_CONVERTER: Final = make_converter()


class BadExport(UsageError):
    """An export that cannot be taken; the text names the line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}; nothing was imported")


@frozen(kw_only=True)
class Header:
    """What the first line says."""

    format: str
    version: int
    secrets_masked: bool
    """Known secrets were replaced by `***` (T6), so that the texts may differ from what was said."""
    files: str
    """What to know of attachments: their files stay in the sessions' folders."""


HEADER: Final = Header(
    format=FORMAT,
    version=VERSION,
    secrets_masked=True,
    files="not included: attachments and outputs stay in the folders of their sessions",
)


def header_line() -> dict[str, Any]:
    """Return the first line of every export."""
    return {"kind": "header", **_CONVERTER.unstructure(HEADER)}


def end_line(lines: int) -> dict[str, Any]:
    """Return the last line; `lines` stand before it."""
    return {"kind": "end", "lines": lines}


def session_lines(archive: SessionArchive) -> Iterator[dict[str, Any]]:
    """Yield a session and its rows."""
    yield {"kind": "session", **_CONVERTER.unstructure(archive.head)}
    for kind, (name, _) in KINDS.items():
        for row in getattr(archive, name):
            yield {"kind": kind, **_CONVERTER.unstructure(row)}


def masked(data: Any, mask: Mask) -> Any:
    """Return JSON data with every text in it masked."""
    match data:
        case str():
            return mask(data)
        case Mapping():
            return {mask(name): masked(value, mask) for name, value in data.items()}
        case list() | tuple():
            return [masked(value, mask) for value in data]
        case _:
            return data


@frozen(kw_only=True)
class Line:
    """One decoded line."""

    number: int
    kind: str
    data: Mapping[str, Any]


def parse(number: int, raw: bytes) -> Line:
    """Return a line as data. Raises `BadExport` for what is no object of strict JSON with a `kind`."""
    try:
        text = raw.decode("utf-8")
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise BadExport(number, "it is not UTF-8") from None
    except RecursionError:
        raise BadExport(number, "it is nested too deep") from None
    except ValueError as error:  # also of a number with too many digits
        raise BadExport(number, f"it is not JSON: {error}") from None
    kind = data.pop("kind", None) if isinstance(data, dict) else None
    if not isinstance(kind, str):
        raise BadExport(number, "it is not an object with a kind")
    _check_depth(number, data)
    if _SURROGATE.search(text):
        _check_unicode(number, data)
    return Line(number=number, kind=kind, data=data)


def take_header(line: Line) -> None:
    """Check the first line. Raises `BadExport`."""
    if line.kind != "header" or line.data.get("format") != FORMAT:
        raise BadExport(line.number, f"this is no export: the first line's format is not {FORMAT!r}")
    if line.data.get("version") != VERSION:
        raise BadExport(
            line.number, f"version: {line.data.get('version')!r:.40} is not {VERSION}, which this program reads"
        )
    _take(line, Header)


def take_archive(session: Line, rows: list[Line]) -> SessionArchive:
    """Return the session that a session's line and those after it stand for. Raises `BadExport`."""
    fields: dict[str, list[Any]] = {name: [] for name, _ in KINDS.values()}
    places: dict[tuple[str, int], int] = {}
    for row in rows:
        name, wanted = KINDS[row.kind]
        places[name, len(fields[name])] = row.number
        fields[name].append(_take(row, wanted))
    try:
        return SessionArchive(head=_take(session, SessionHead), **{name: tuple(each) for name, each in fields.items()})
    except Flaw as flaw:
        line = session.number if flaw.row is None else places[flaw.row]
        raise BadExport(line, str(flaw)) from None


def _take(line: Line, wanted: type[Any]) -> Any:
    try:
        return decode(_CONVERTER, line.data, wanted)
    except DecodeError as error:
        text = "; ".join(_keyed(problem) for problem in error.problems[:3])
        raise BadExport(line.number, f"{line.kind}: {text}") from None


def _keyed(problem: str) -> str:
    """Turn `what @ value.key` around."""
    what, _, where = problem.rpartition(" @ ")
    return f"{where.removeprefix('value').lstrip('.') or 'the line'}: {what}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} stands there twice")
    return data


def _check_depth(number: int, data: Any) -> None:
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise BadExport(number, f"it is nested deeper than {DEEPEST}")
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]


def _check_unicode(number: int, data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadExport(number, "it has half of a surrogate pair, which is no text") from None
