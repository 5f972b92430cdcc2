"""What has to hold at the end of each day of a soak, and what of its notes the next day needs.

The checks of the properties are over a whole run. Here a day is one, and some sessions had begun before it: of those
the notes are carried over, and all others are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw
from attrs import evolve

from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import Message, attachments_in
from kesoku_actors.store import queries
from kesoku_actors.store.sql import select
from tests.properties.daemon import checks, endings, work
from tests.properties.daemon.computer import Computer
from tests.properties.daemon.truth import Truth, read_stops

PARALLEL: Final = 4
_ROW_OF: Final = {
    "accepted": "id",
    "row": "id",
    "shown": "message",
    "began": "call",
    "ended": "call",
    "killed": "call",
    "up": "call",
    "down": "call",
}
"""By kind of note: the field with the row it is about."""


def truth_of_day(connection: apsw.Connection, *, since_rev: int) -> Truth:
    """Read what is stored, and what was removed since `since_rev`. Raises `AssertionError` for a damaged database."""
    [(sound,)] = connection.execute("PRAGMA integrity_check").fetchall()
    assert sound == "ok", f"the database is damaged: {sound}"
    sessions = {session.id: session for session in queries.sessions(connection, 100_000, None)}
    removed = select(connection, "SELECT message_id FROM removed WHERE rev > ?", (since_rev,))
    return Truth(
        rows=tuple(_rows(connection)),
        removed=frozenset(message_id for (message_id,) in removed),
        stops=tuple(read_stops(connection)),
        sessions=sessions,
        histories={session_id: queries.history(connection, session_id) for session_id in sessions},
        trees=(),
    )


def check_day(carried: Sequence[Note], today: Sequence[Note], truth: Truth, computer: Computer, folders: Path) -> None:
    """Raise `AssertionError` for a promise that was broken on this day."""
    notes = (*carried, *today)
    checks.ends_once(notes, truth)
    checks.posted_once(notes, truth)
    checks.numbered(notes, truth)
    checks.one_open_session(truth)
    checks.history_stands(notes, truth)
    checks.heard_in_order(truth)
    checks.delivered_in_order(notes, truth, once=False)
    checks.jobs_are_told_once(truth)
    work.one_at_a_time(today, parallel=PARALLEL)
    work.tools_run_once(notes, truth)
    work.results_stand_together(truth)
    endings.signalled_for_a_reason(notes, truth)
    endings.settled_behind_its_end(notes, truth)
    endings.output_is_whole(truth, computer, folders)
    endings.cleared_behind_its_end(notes)
    endings.ended_before_it_goes_on(notes)
    _stops(notes, truth)


def _stops(notes: Sequence[Note], truth: Truth) -> None:
    """Check what stops did; without messages whose files were saved later, as that is a change behind the end."""
    covered = {message_id for stop in truth.stops for message_id in stop.covers}
    told = [note for note in notes if note.kind == "row" and note["id"] in covered]
    plain = tuple(row for row in truth.rows if not attachments_in(row.metadata))
    work.stops_end_what_they_cover(told, evolve(truth, rows=plain))


def carried_over(notes: Sequence[Note], truth: Truth) -> tuple[Note, ...]:
    """Return the notes that are about what is stored still: of each session's inferences, the last."""
    rows = {row.id for row in truth.rows}
    last = {note["session"]: note for note in notes if note.kind == "thinks"}
    kept = {id(note) for session, note in last.items() if session in truth.sessions}
    return tuple(
        note
        for note in notes
        if (note.kind in _ROW_OF and note[_ROW_OF[note.kind]] in rows) or (note.kind == "thinks" and id(note) in kept)
    )


def _rows(connection: apsw.Connection) -> Iterator[Message]:
    for (message_id,) in select(connection, "SELECT id FROM messages ORDER BY rev"):
        row = queries.message(connection, message_id)
        assert row is not None, f"{message_id} is there and cannot be read"
        yield row
