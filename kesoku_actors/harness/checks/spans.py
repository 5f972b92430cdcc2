"""Checkers of spans: what begins has to end, in time. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from attrs import frozen

from kesoku_actors.harness.checks.judgement import Judgement, Trace, fails, holds
from kesoku_actors.harness.checks.order import grouped
from kesoku_actors.harness.notes import Note


@frozen(kw_only=True)
class Span:
    """From a note of one kind to the note of another one with the same id."""

    begin: str
    end: str
    by: str = "id"

    def __str__(self) -> str:
        return f"{self.begin} .. {self.end}, by {self.by}"


def never_killed(trace: Trace, span: Span, *, killed: str | None = None) -> Judgement:
    """Check that every span that was begun comes to its own end, and no note `killed` of its id comes into it."""
    name, cases = f"never_killed({span})", 0
    kinds = (span.begin, span.end, *((killed,) if killed is not None else ()))
    for what, notes in grouped(trace, span.by, *kinds):
        is_open: Note | None = None
        for note in notes:
            if note.kind == span.begin:
                if is_open is not None:
                    return fails(name, f"{what!r} was begun anew before it ended", is_open, note)
                is_open, cases = note, cases + 1
            elif note.kind == killed:
                if is_open is not None:
                    return fails(name, f"{what!r} was killed", is_open, note)
            elif is_open is None:
                return fails(name, f"{what!r} ended and had not begun", note)
            else:
                is_open = None
        if is_open is not None:
            return fails(name, f"{what!r} was begun and never ended", is_open, trace[-1])
    return holds(name, cases)


def terminal(trace: Trace, *, begins: str, ends: Collection[str], by: str = "id") -> Judgement:
    """Check that everything begun comes to one of these ends, and that nothing of it comes afterwards.

    What ends and was not seen to begin is no matter: who notes may have come later. `never_killed` minds that, too.
    """
    name, cases = f"terminal({begins} -> {' | '.join(sorted(ends))}, by {by})", 0
    for what, notes in grouped(trace, by):
        ended: Note | None = None
        begun: Note | None = None
        for note in notes:
            if ended is not None:
                return fails(name, f"{what!r} had ended, and went on", ended, note)
            if note.kind == begins and begun is None:
                begun, cases = note, cases + 1
            if note.kind in ends:
                ended = note
        if begun is not None and ended is None:
            return fails(name, f"{what!r} never ended", begun, trace[-1])
    return holds(name, cases)


def prompt(
    trace: Trace,
    after: str,
    then: str,
    *,
    by: str | None = None,
    within_steps: int | None = None,
    within_s: float | None = None,
) -> Judgement:
    """Check that each note `after` is followed by a note `then` of its group, soon.

    Steps are those of the task that notes `then`: how long others ran in between is the schedule's doing, not its own.
    Seconds are virtual. Without either, it is enough that it comes.
    """
    name, cases = f"prompt({after} -> {then}, by {by}, within {within_steps} steps, {within_s} s)", 0
    for _group, notes in grouped(trace, by, after, then):
        for place, note in enumerate(notes):
            if note.kind != after:
                continue
            cases += 1
            answer = next((other for other in notes[place + 1 :] if other.kind == then), None)
            if answer is None:
                return fails(name, f"no `{then}` ever came", note, trace[-1])
            steps = answer.lane_step - note.steps_of.get(answer.lane, 0)
            if within_steps is not None and steps > within_steps:
                return fails(name, f"`{answer.lane}` took {steps} steps", note, answer)
            if within_s is not None and answer.time - note.time > within_s:
                return fails(name, f"it took {answer.time - note.time:g} s", note, answer)
    return holds(name, cases)


def conserved(trace: Trace, kind: str, *, total: str, by: str | None = None, expected: Any = None) -> Judgement:
    """Check that a total is the same in every note of a kind; the `expected` one, if it is given."""
    name, cases = f"conserved({kind}.{total}, by {by})", 0
    for _group, notes in grouped(trace, by, kind):
        for note in notes:
            cases += 1
            wanted = notes[0][total] if expected is None else expected
            if note[total] != wanted:
                return fails(name, f"{note[total]!r} in place of {wanted!r}", *notes[:1] * (note is not notes[0]), note)
    return holds(name, cases)
