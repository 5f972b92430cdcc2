"""Checkers of order: what comes after what. Pure.

Each takes the trace and the kinds of notes it is about; `by` names the field that tells apart what is independent
(sessions, queues); without it everything is one group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kesoku_actors.harness.checks.judgement import Judgement, Trace, fails, holds
from kesoku_actors.harness.notes import Note


def grouped(trace: Trace, by: str | None, *kinds: str) -> Iterator[tuple[Any, list[Note]]]:
    """Yield each group with its notes of these kinds, in order; of any kind, when none is named."""
    groups: defaultdict[Any, list[Note]] = defaultdict(list)
    for note in trace:
        if (not kinds or note.kind in kinds) and (by is None or by in note.fields):
            groups[None if by is None else note[by]].append(note)
    yield from groups.items()


def fifo(
    trace: Trace, *, by: str | None = None, sent: str = "sent", received: str = "received", item: str = "item"
) -> Judgement:
    """Check that what is received comes in the order in which it was sent, each thing once at most.

    What never arrives is no matter of order: see `exactly_once`.
    """
    name, cases = f"fifo({sent} -> {received}, by {by})", 0
    for _group, notes in grouped(trace, by, sent, received):
        places: dict[Any, Note] = {}
        last: tuple[int, Note] | None = None
        arrived: dict[Any, Note] = {}
        for note in notes:
            what = note[item]
            if note.kind == sent:
                places.setdefault(what, note)
                continue
            cases += 1
            if what not in places:
                return fails(name, f"{what!r} was received before it was sent", note)
            if what in arrived:
                return fails(name, f"{what!r} was received twice", arrived[what], note)
            if last is not None and places[what].number < last[0]:
                return fails(name, f"{last[1][item]!r} overtook {what!r}, which was sent earlier", last[1], note)
            arrived[what], last = note, (places[what].number, note)
    return holds(name, cases)


def ordered(trace: Trace, kind: str, *, key: str, by: str | None = None, strictly: bool = False) -> Judgement:
    """Check that a field never falls from one note of a kind to the next; `strictly`: that it rises."""
    name, cases = f"ordered({kind}.{key}, by {by})", 0
    for _group, notes in grouped(trace, by, kind):
        for one, other in pairwise(notes):
            cases += 1
            if other[key] < one[key] or (strictly and other[key] == one[key]):
                return fails(name, f"{other[key]!r} came after {one[key]!r}", one, other)
    return holds(name, cases)


def batch_atomic(trace: Trace, *, opens: str, closes: str, batch: str = "batch", by: str | None = None) -> Judgement:
    """Check that batches are whole: from the note that opens one to the note that closes it, no other one has a note.

    Notes with a field `batch` belong to one.
    """
    name, cases = f"batch_atomic({opens} .. {closes}, by {by})", 0
    for _group, notes in grouped([note for note in trace if batch in note.fields], by):
        is_open: Note | None = None
        for note in notes:
            if is_open is not None and note[batch] != is_open[batch]:
                return fails(name, f"batch {note[batch]!r} came into batch {is_open[batch]!r}", is_open, note)
            if is_open is None and note.kind != opens:
                return fails(name, f"batch {note[batch]!r} has a note and is not open", note)
            if note.kind == opens:
                if is_open is not None:
                    return fails(name, f"batch {note[batch]!r} was opened twice", is_open, note)
                is_open, cases = note, cases + 1
            elif note.kind == closes:
                is_open = None
        if is_open is not None:
            return fails(name, f"batch {is_open[batch]!r} was never closed", is_open, trace[-1])
    return holds(name, cases)


def exactly_once(trace: Trace, *, asked: str, done: str, by: str = "id") -> Judgement:
    """Check that what was asked for was done, once, and nothing else was."""
    name = f"exactly_once({asked} -> {done}, by {by})"
    wanted = {note[by]: note for note in trace if note.kind == asked and by in note.fields}
    times: Counter[Any] = Counter()
    first: dict[Any, Note] = {}
    for note in trace:
        if note.kind != done or by not in note.fields:
            continue
        times[note[by]] += 1
        if note[by] not in wanted:
            return fails(name, f"{note[by]!r} was done, and nobody asked for it", note)
        if times[note[by]] > 1:
            return fails(name, f"{note[by]!r} was done twice", first[note[by]], note)
        first[note[by]] = note
    for what, note in wanted.items():
        if not times[what]:
            return fails(name, f"{what!r} was never done", note, trace[-1])
    return holds(name, len(wanted))
