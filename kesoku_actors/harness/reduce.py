"""Reduction: any failing run, of whatever strategy, to hold form with as few events as possible. Pure but for `play`.

The recorded run is written in hold form, exactly, over each of the two orders; by tasks of the program alone, where
that fails too, as what the loop does for itself is not what a person can read. Then events are taken away as long as
the run still fails in the same way: halves first, then one by one, until none can be missed (1-minimal). What is left
is made plainer: a hold that lasts until something happens becomes one that lasts until nothing else can run, and fires
of the events that changed nothing are dropped. The smaller of the two forms is the counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, evolve

from kesoku_actors.harness.hold import Base, Event, Form, Hold, Recorded, Tick, form_of

Fails = Callable[[Form], frozenset[Event] | None]
"""Plays a form; returns the events that changed something when it failed as wanted, none when it did not."""


@define
class Reduced:
    """A counterexample in hold form, and how many runs it took to get there."""

    form: Form
    runs: int
    is_minimal: bool
    """Whether no event can be missed; false when the budget ended first."""


def reduce(trace: Sequence[Recorded], fails: Fails, *, budget: int = 4000) -> Reduced | None:
    """Return the smallest form found of a failing run; none when neither order plays it again."""
    found: Reduced | None = None
    runs = 0
    for base in Base:
        reducing = _Reducing(fails, budget - runs)
        form = reducing.try_(form_of(trace, base, of_program=True)) or reducing.try_(form_of(trace, base))
        if form is not None:
            small = reducing.plain(reducing.minimal(form))
            if found is None or _weight(small) < _weight(found.form):
                found = Reduced(small, 0, reducing.left > 0)
        runs += budget - runs - reducing.left
    return None if found is None else evolve(found, runs=runs)


def _weight(form: Form) -> tuple[int, int, int]:
    """Return what makes a form long to read: its events, their conditions, the less usual order."""
    untils = sum(isinstance(event, Hold) and event.until is not None for event in form.events)
    return len(form), untils, form.base is Base.STAY


@define
class _Reducing:
    """One reduction; `left` is the runs it may still take."""

    fails: Fails
    left: int

    def try_(self, form: Form) -> Form | None:
        """Return the form without what changed nothing, if it fails as wanted."""
        if self.left <= 0:
            return None
        self.left -= 1
        fired = self.fails(form)
        if fired is None:
            return None
        return evolve(form, events=tuple(event for event in form.events if event in fired))

    def minimal(self, form: Form) -> Form:
        """Take events away until none can be missed."""
        size = max(1, len(form) // 2)
        while True:
            at, shrunk = 0, False
            while at < len(form):
                rest = evolve(form, events=form.events[:at] + form.events[at + size :])
                if (found := self.try_(rest)) is not None and len(found) < len(form):
                    form, shrunk = found, True
                else:
                    at += size
            if size == 1:
                if not shrunk or self.left <= 0:
                    return form
            else:
                size = max(1, size // 2)

    def plain(self, form: Form) -> Form:
        """Make what is left plainer, event by event."""
        for event in form.events:
            plainer: Event | None = None
            if isinstance(event, Hold) and event.until is not None:
                plainer = evolve(event, until=None)
            elif isinstance(event, Tick) and event.times > 1:
                plainer = evolve(event, times=1)
            if plainer is None or event not in form.events:
                continue
            changed = tuple(plainer if one == event else one for one in form.events)
            if (found := self.try_(evolve(form, events=changed))) is not None and _weight(found) < _weight(form):
                form = found
        return self.minimal(form) if self.left > 0 else form
