"""What has to hold of a run of the daemon: the checkers of the harness over its notes, and looks at what is stored.

Each takes the notes and the truth of the end. A row that a later life shows again, as it was, counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from kesoku_actors.harness.checks import terminal
from kesoku_actors.harness.notes import Note
from kesoku_actors.protocol import ENDED, Role
from tests.properties.daemon.lives import Truth

Notes = Sequence[Note]


def rows_seen(notes: Notes) -> Iterator[Note]:
    """Yield the notes of rows, each state of a row once."""
    seen = set[tuple[str, int]]()
    for note in notes:
        if note.kind == "row" and (state := (note["id"], note["rev"])) not in seen:
            seen.add(state)
            yield note


def ends_once(notes: Notes, truth: Truth) -> None:
    """Every message of a person comes to one end and to no second one; what is deleted may have ended before."""
    accepted = {note["id"] for note in notes if note.kind == "accepted"}
    assert accepted == {row.id for row in truth.rows if row.role is Role.USER} | (accepted & truth.removed)
    assert all(row.status in ENDED for row in truth.rows if row.role is Role.USER)
    ended = set[str]()
    told: list[Note] = []
    for note in rows_seen(notes):
        if note["id"] in accepted and not (note["status"] == "removed" and note["id"] in ended):
            told.append(evolve(note, kind=note["status"]))
            ended |= {note["id"]} if note["status"] in ENDED else set()
    terminal(told, begins="pending_agent", ends={*ENDED, "removed"}).demand()
