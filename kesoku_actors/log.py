"""The structured logger as a value: a level, a sink, and the fields bound so far.

An event is a short constant sentence, what varies is a field: `log.warning("provider is slow", provider="openai")`.
`log.bind(session_id=...)` returns another logger and changes nothing; who gets a logger as an argument passes it on.
Fields of the current task come from a `ContextVar` the composer may give: trio tasks and threads started by
`trio.to_thread` inherit it.

Invariants: a line is one line whatever it holds (control characters are escaped); a known secret is masked before it
is written (T6), also inside nested fields and tracebacks; writing a line never raises.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, TextIO

from attrs import evolve

from kesoku_actors.values import frozen

DEBUG: Final = logging.DEBUG
INFO: Final = logging.INFO
WARNING: Final = logging.WARNING
ERROR: Final = logging.ERROR

Mask = Callable[[str], str]
Ambient = ContextVar[Mapping[str, object]]

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_LEVELS: Final = ((ERROR, "error"), (WARNING, "warning"), (INFO, "info"), (DEBUG, "debug"))
LEVELS: Final[Mapping[str, int]] = MappingProxyType({name: level for level, name in _LEVELS})
"""By their names, the quietest first."""
_COLOURS: Final = MappingProxyType({"error": "31", "warning": "33", "info": "36", "debug": "2"})
_SHORTEST_SECRET: Final = 6
_LONGEST_VALUE: Final = 2_000
"""Characters of one text in a field."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STDLIB_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@frozen(kw_only=True)
class Entry:
    """One thing that happened. `time` is UTC seconds, `level` one of the standard library's numbers."""

    time: float
    level: int
    event: str
    fields: Mapping[str, object] = _NOTHING
    cause: BaseException | None = None
    """Written with its whole traceback."""


Sink = Callable[[Entry], None]
"""Takes an entry; never raises and never blocks for long."""


@frozen(kw_only=True)
class Logger:
    """Says what happened, with the fields bound to it."""

    sink: Sink
    wall: Callable[[], float]
    level: int = INFO
    fields: Mapping[str, object] = _NOTHING

    def bind(self, **fields: object) -> Logger:
        """Return a logger that adds `fields` to everything it says."""
        return evolve(self, fields={**self.fields, **fields})

    def debug(self, event: str, **fields: object) -> None:
        """Say what only a developer wants to know."""
        self._say(DEBUG, event, fields, None)

    def info(self, event: str, *, cause: BaseException | None = None, **fields: object) -> None:
        """Say what an operator may want to know."""
        self._say(INFO, event, fields, cause)

    def warning(self, event: str, *, cause: BaseException | None = None, **fields: object) -> None:
        """Say what an operator should look at."""
        self._say(WARNING, event, fields, cause)

    def error(self, event: str, *, cause: BaseException | None = None, **fields: object) -> None:
        """Say what went wrong."""
        self._say(ERROR, event, fields, cause)

    def _say(self, level: int, event: str, fields: Mapping[str, object], cause: BaseException | None) -> None:
        if level >= self.level:
            entry = Entry(time=self.wall(), level=level, event=event, fields={**self.fields, **fields}, cause=cause)
            self.sink(entry)


def mask_secrets(secrets: Iterable[str]) -> Mask:
    """Return a function that replaces each of `secrets` by `***`. One shorter than six characters is left alone:
    it would blot out ordinary words and hide little."""
    known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
    if not known:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, known)))
    return lambda text: pattern.sub("***", text)


def render_json(entry: Entry, mask: Mask) -> str:
    """Return `entry` as one line of JSON: `time` (RFC 3339), `level`, `event`, then its fields."""
    record: dict[str, Any] = {
        "time": datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds"),
        "level": _name(entry.level),
        "event": _bounded(mask(entry.event)),
    }
    for name, value in entry.fields.items():
        record[name if name not in record else f"{name}_"] = _plain(value, mask)
    if entry.cause is not None:
        record["traceback"] = mask(_traceback(entry.cause))
    return json.dumps(record, ensure_ascii=False)


def render_line(entry: Entry, mask: Mask, *, coloured: bool) -> str:
    """Return `entry` as a line for people: time of day (UTC), level, event, `name=value` ...; a traceback below it."""
    level = _name(entry.level)
    clock = datetime.fromtimestamp(entry.time, UTC).strftime("%H:%M:%S")
    values = ((name, _plain(value, mask)) for name, value in entry.fields.items())
    fields = "".join(f" {name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in values)
    line = f"{level:<7} {_one_line(_bounded(mask(entry.event)))}"
    if coloured:
        line = f"\x1b[{_COLOURS[level]}m{line}\x1b[0m"
    line = f"{clock} {line}{_one_line(fields)}"
    if entry.cause is None:
        return line
    return "\n    ".join([line, *(_one_line(below) for below in mask(_traceback(entry.cause)).splitlines())])


def stream_sink(stream: TextIO, *, mask: Mask, environ: Mapping[str, str], ambient: Ambient | None = None) -> Sink:
    """Return a sink that writes to `stream`: readable lines on a terminal (in colour unless NO_COLOR is set), JSON
    lines otherwise. A stream that is closed or full swallows lines; there is nowhere left to report it."""
    readable = stream.isatty()
    coloured = readable and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    encoding = stream.encoding or "utf-8"

    def sink(entry: Entry) -> None:
        if ambient is not None:
            entry = evolve(entry, fields={**ambient.get(_NOTHING), **entry.fields})
        line = render_line(entry, mask, coloured=coloured) if readable else render_json(entry, mask)
        # A lone surrogate becomes \udcXX, which is also how JSON spells it.
        write_if_open(stream, line.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    return sink


def write_if_open(stream: TextIO | None, text: str) -> None:
    """Write and flush what may be lost: nothing happens when the stream is absent, closed, full or read by nobody."""
    if stream is None:
        return
    with suppress(OSError, ValueError):  # ValueError: the stream was closed
        stream.write(text)
        stream.flush()


@contextmanager
def stdlib_logging(log: Logger) -> Generator[None, None, None]:
    """While open, send what libraries log through the standard library to the sink of `log`, at its level."""
    handler = _Handler(log)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(log.level)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, log: Logger) -> None:
        super().__init__(log.level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = record.getMessage()
        except (TypeError, ValueError, KeyError):  # a library's own mistake in its format arguments
            event = f"{record.msg} {record.args!r}"
        fields = {name: value for name, value in vars(record).items() if name not in _STDLIB_FIELDS}
        self._log.sink(
            Entry(
                time=record.created,
                level=record.levelno,
                event=event,
                fields={**self._log.fields, "logger": record.name, **fields},
                cause=record.exc_info[1] if record.exc_info else None,
            )
        )


def _name(level: int) -> str:
    return next((name for least, name in _LEVELS if level >= least), "debug")


def _plain(value: object, mask: Mask) -> Any:
    """Return `value` as JSON data with its strings masked; what is not JSON data becomes its `repr`."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case str():
            return _bounded(mask(str(value)))
        case Mapping():
            return {_bounded(mask(str(name))): _plain(inner, mask) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(inner, mask) for inner in value]
        case _:
            return _bounded(mask(repr(value)))


def _bounded(text: str) -> str:
    """Cut after the masking: half a secret would be masked by nobody."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text):,} characters)"


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()
