"""The strategy that leaves nothing out: every schedule with at most `bound` holds and ticks, one after the other. Pure.

`Hold(1)` goes through both orders that `hold` knows. When it has come to its end, the schedules are all there are, and
their number is a certificate: no failure with at most so many events, whatever a sample may have missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from attrs import define, evolve, field

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.hold import Base, Decision, Event, Form, Hold, Holding, Tick
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.strategy import RunInfo


@define(eq=False)
class HoldBound:
    """Plays every form with at most `bound` events, over one order or over both by turns.

    The first event of a form belongs to one share of the work: share `index` of `count` (`shard`) plays every
    `count`-th. `skip` forms are taken as played before, where nothing has to be learnt from them.
    """

    bound: int = 1
    base: Base | None = None
    """None: both."""
    shard: tuple[int, int] = (0, 1)
    skip: int = 0
    played: int = field(default=0, init=False)
    """How many forms were played or skipped."""
    _walks: list[_Walk] = field(factory=list, init=False)
    _holding: Holding | None = field(default=None, init=False)
    _walk: _Walk | None = field(default=None, init=False)
    _next: Form | None = field(default=None, init=False)

    sees_all = True

    def __attrs_post_init__(self) -> None:
        bases = list(Base) if self.base is None else [self.base]
        self._walks = [_Walk(base, self.bound, self.shard) for base in bases]

    @property
    def is_exhausted(self) -> bool:
        """Whether every form was played."""
        if self._next is None:
            self._advance()
        return self._next is None

    @property
    def form(self) -> Form | None:
        """The form that is played; none before the first."""
        return None if self._holding is None else self._holding.form

    def begin(self, run: RunInfo) -> None:
        """Take the next form. Raises `HarnessError` when there is none."""
        if self.is_exhausted:
            raise HarnessError("every schedule was played")
        assert self._next is not None
        self._holding = Holding(self._next)
        self._next = None
        self.played += 1
        self._holding.begin(run)

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return what the form says."""
        assert self._holding is not None
        return self._holding.choose(ready, may_tick=may_tick, step=step)

    def _advance(self) -> None:
        """Find the next form, from what the last one showed."""
        if self._holding is not None and self._walk is not None:
            self._walk.learn(self._holding.form, self._holding.decisions)
            self._holding = None
            self._walks.append(self._walk)
        while self._walks:
            self._walk = self._walks.pop(0)
            form = self._walk.next_form()
            if form is None:
                continue
            if self.played < self.skip and len(form) == self.bound:
                self.played += 1
                self._walks.append(self._walk)
                continue
            self._next = form
            return
        self._walk = None


@define(eq=False)
class _Walk:
    """The forms over one order, the smaller ones first."""

    base: Base
    bound: int
    shard: tuple[int, int]
    _parents: deque[Iterator[Form]] = field(factory=deque, init=False)
    _begun: bool = False
    _first_place: dict[Form, int] = field(factory=dict, init=False)

    def next_form(self) -> Form | None:
        if not self._begun:
            self._begun = True
            return Form(base=self.base)
        while self._parents:
            form = next(self._parents[0], None)
            if form is not None:
                return form
            self._parents.popleft()
        return None

    def learn(self, form: Form, decisions: Sequence[Decision]) -> None:
        """Put forms with one event more behind those that are there: an event comes only behind the others."""
        if len(form) < self.bound:
            self._parents.append(self._children(form, decisions, self._first_place.pop(form, 0)))

    def _children(self, form: Form, decisions: Sequence[Decision], begin: int) -> Iterator[Form]:
        number = 0
        for place in range(begin, len(decisions)):
            for event in _possible(decisions[place]):
                number += 1
                if not form.events and (number - 1) % self.shard[1] != self.shard[0]:
                    continue
                child = evolve(form, events=(*form.events, event))
                if len(child) < self.bound:
                    self._first_place[child] = place
                yield child


def _possible(decision: Decision) -> Iterator[Event]:
    if decision.ways > 1:
        yield Hold(decision.who.who, decision.who.steps)
    if decision.may_tick:
        yield Tick(decision.last)
