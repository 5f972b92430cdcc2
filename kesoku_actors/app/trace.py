"""`kesoku-actors trace` and `/trace`: reads a session and its turn log, and writes what happened as one HTML file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import trio

from kesoku_actors import __version__
from kesoku_actors.app.history.finding import reading, the_session
from kesoku_actors.app.locations import write_new
from kesoku_actors.app.sections import ModelPrice
from kesoku_actors.app.settings import Settings
from kesoku_actors.clock import Clock
from kesoku_actors.errors import NotFound
from kesoku_actors.log import mask_secrets
from kesoku_actors.store import Reader, SessionRecord
from kesoku_actors.trace import Sources, Tokens, Trace, build_trace, render_page, trace_data
from kesoku_actors.turnlog import read_logs
from kesoku_actors.values import frozen

STANDARD_OUTPUT = Path("-")


@frozen(kw_only=True)
class TraceRequest:
    """Write the trace of a session."""

    settings: Settings
    session: str
    """What names it: an id, the beginning of one, or `last`."""
    turn: int | None = None
    """Only this turn, counted from 1."""
    output: Path | None = None
    """None: a name made of the session's id, in the current folder."""
    json: bool = False
    """Print the data instead."""


def write_trace(request: TraceRequest) -> int:
    """Write what is asked for and return the exit code. Raises `NotFound`, `UsageError`, `Unwritable`, store faults."""
    record = trio.run(_read, request)
    trace = make_trace(record, request.settings, Clock(), request.turn)
    if request.json:
        json.dump(trace_data(trace), sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
        return 0
    page = render_page(trace_data(trace))
    if request.output == STANDARD_OUTPUT:
        sys.stdout.write(page)
        return 0
    path = Path.cwd() / (request.output or default_name(record.session.id))
    write_new(path, page, replace=True)
    sys.stdout.write(f"wrote {path} ({_contents(trace)}); open it in a browser\n")
    return 0


async def trace_file(reader: Reader, session_id: str, settings: Settings, clock: Clock) -> Path:
    """Write the trace of a session into the current folder, beside the event loop; return where it is."""
    record = await reader.record(session_id)
    if record is None:
        raise NotFound("there is nothing to trace yet")
    return await trio.to_thread.run_sync(partial(_write_here, record, settings, clock))


def make_trace(record: SessionRecord, settings: Settings, clock: Clock, number: int | None = None) -> Trace:
    """Return the trace of a session, or of one of its turns. Raises `NotFound` when there is no such turn."""
    sources = Sources(
        record=record,
        logs=read_logs(settings.workspace.sessions_dir / record.session.id),
        mask=mask_secrets(settings.secrets()),
        price=partial(price_of, settings.prices),
        generated=clock.wall(),
        program=f"kesoku-actors {__version__}",
    )
    try:
        return build_trace(sources, number)
    except IndexError as error:
        raise NotFound(f"{error}; leave --turn out to see all") from None


def default_name(session_id: str) -> Path:
    """Return the name of a session's trace."""
    return Path(f"trace-{session_id}.html")


def price_of(prices: Mapping[str, ModelPrice], model: str, tokens: Tokens) -> float | None:
    """Return what an inference cost, in US dollars; none when the price or the tokens are not known."""
    price = prices.get(model)
    if price is None or not tokens.is_known:
        return None
    cached = price.input if price.cached is None else price.cached
    dear = (tokens.input - tokens.cached) * price.input + tokens.cached * cached + tokens.output * price.output
    return dear / 1_000_000


async def _read(request: TraceRequest) -> SessionRecord:
    async with reading(request.settings) as reader:
        session = await the_session(reader, request.session, request.settings.program)
        record = await reader.record(session.id) if reader is not None else None
        if record is None:
            raise NotFound(f"the session {session.id} is gone")
        return record


def _write_here(record: SessionRecord, settings: Settings, clock: Clock) -> Path:
    path = Path.cwd() / default_name(record.session.id)
    write_new(path, render_page(trace_data(make_trace(record, settings, clock))), replace=True)
    return path


def _contents(trace: Trace) -> str:
    turns, steps = len(trace.turns), len(trace.exchanges)
    return f"{turns} turn{'' if turns == 1 else 's'}, {steps} step{'' if steps == 1 else 's'}"
