"""`history show`: one session, or one turn of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import trio

from kesoku_actors.app.history.export_lines import masked, session_lines
from kesoku_actors.app.history.finding import reading, the_session
from kesoku_actors.app.history.pages import Line, Turn, heading, outside_lines, summary_lines, turn_lines, turns_of
from kesoku_actors.app.history.printing import print_lines, write
from kesoku_actors.app.settings import Settings
from kesoku_actors.errors import NotFound
from kesoku_actors.log import mask_secrets
from kesoku_actors.protocol import SessionInfo, Usage
from kesoku_actors.protocol.summaries import Summary
from kesoku_actors.store import SessionRecord
from kesoku_actors.store.archive import SessionArchive
from kesoku_actors.values import frozen


@frozen(kw_only=True)
class ShowRequest:
    """Show a session to a person, or as the lines of an export."""

    settings: Settings
    session: str
    turn: int | None = None
    summaries: bool = False
    json: bool = False


@frozen(kw_only=True)
class _Found:
    session: SessionInfo
    usage: Usage
    record: SessionRecord
    summaries: tuple[Summary, ...]
    archive: SessionArchive | None


def show_history(request: ShowRequest) -> int:
    """Print the session and return the exit code. Raises `NotFound`, store faults."""
    found = trio.run(_read, request)
    turns = turns_of(found.record.messages, found.record.steps)
    chosen = _chosen(request, found, turns)
    mask = mask_secrets(request.settings.secrets())
    if request.json:
        for data in _data(request, found, chosen):
            write(json.dumps(masked(data, mask), ensure_ascii=False) + "\n")
    else:
        print_lines(_lines(request, found, turns, chosen), mask)
    return 0


async def _read(request: ShowRequest) -> _Found:
    async with reading(request.settings) as reader:
        session = await the_session(reader, request.session, request.settings.program)
        assert reader is not None, "a session was found in it"
        record = await reader.record(session.id)
        if record is None:
            raise NotFound(f"the session {session.id} is gone")
        return _Found(
            session=session,
            usage=(await reader.usage((session.id,))).get(session.id, Usage()),
            record=record,
            summaries=await reader.summaries(session.id) if request.summaries else (),
            archive=await reader.archive(session.id) if request.json else None,
        )


def _chosen(request: ShowRequest, found: _Found, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    if request.turn is None:
        return turns
    if request.turn > len(turns):
        count = f"{len(turns)} turn{'' if len(turns) == 1 else 's'}"
        raise NotFound(f"the session {found.session.id} has {count}, and no turn {request.turn}")
    return (turns[request.turn - 1],)


def _lines(request: ShowRequest, found: _Found, turns: tuple[Turn, ...], chosen: tuple[Turn, ...]) -> Iterator[Line]:
    yield from heading(found.session, len(turns), found.usage)
    if request.summaries:
        yield from summary_lines(found.summaries)
    for turn in chosen:
        yield from turn_lines(turn)
    if request.turn is None:
        yield from outside_lines(found.record.outside)


def _data(request: ShowRequest, found: _Found, chosen: tuple[Turn, ...]) -> Iterator[dict[str, Any]]:
    """Yield the session's lines of an export, those of other turns left out."""
    roots = {turn.messages[0].root_id for turn in chosen}
    calls = {message.id for turn in chosen for message in turn.messages}
    for line in session_lines(found.archive) if found.archive is not None else ():
        match line["kind"]:
            case "message" | "turn" | "step":
                is_wanted = request.turn is None or line["root_id"] in roots
            case "call" | "job":
                is_wanted = request.turn is None or line["call_id"] in calls
            case "summary":
                is_wanted = request.summaries
            case _:
                is_wanted = True
        if is_wanted:
            yield line
