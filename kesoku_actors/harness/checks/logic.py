"""Checkers of temporal logic over the notes of a whole run. Pure.

A run has ended when it is checked, so *eventually* means: before its end.
"""

from __future__ import annotations

from collections.abc import Callable

from kesoku_actors.harness.checks.judgement import Judgement, Trace, fails, holds
from kesoku_actors.harness.checks.order import grouped
from kesoku_actors.harness.notes import Note

Predicate = Callable[[Note], bool]


def always(trace: Trace, predicate: Predicate, *, kind: str | None = None) -> Judgement:
    """Check that a predicate holds of every note; of every one of a kind."""
    name = f"always({_named(predicate)})"
    notes = [note for note in trace if kind is None or note.kind == kind]
    for place, note in enumerate(notes):
        if not predicate(note):
            return fails(name, "it does not hold here", *notes[max(0, place - 1) : place], note)
    return holds(name, len(notes))


def eventually(trace: Trace, predicate: Predicate, *, kind: str | None = None) -> Judgement:
    """Check that a predicate holds of some note."""
    name = f"eventually({_named(predicate)})"
    notes = [note for note in trace if kind is None or note.kind == kind]
    if any(predicate(note) for note in notes):
        return holds(name, 1)
    ends = notes or trace
    return fails(name, f"it held of none of {len(notes)} notes", *ends[:1], *ends[1:][-1:])


def leads_to(trace: Trace, cause: Predicate, effect: Predicate, *, by: str | None = None) -> Judgement:
    """Check that each note that is a cause is followed, in its group, by one that is an effect."""
    name, cases = f"leads_to({_named(cause)} -> {_named(effect)}, by {by})", 0
    for _group, notes in grouped(trace, by):
        waiting: Note | None = None
        for note in notes:
            if waiting is not None and effect(note):
                waiting = None
            if cause(note):
                cases += 1
                waiting = waiting or note
        if waiting is not None:
            return fails(name, "no effect came", waiting, trace[-1])
    return holds(name, cases)


def _named(predicate: Predicate) -> str:
    return getattr(predicate, "__name__", repr(predicate))
