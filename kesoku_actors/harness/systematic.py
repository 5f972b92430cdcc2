"""The strategy that leaves nothing out: every schedule with at most `bound` holds, ticks and faults, one by one. Pure.

`Hold(1)` goes through both orders that `hold` knows. When it has come to its end, the schedules are all there are, and
their number is a certificate: no failure with at most so many events, whatever a sample may have missed.

The forms with fewer events come first. An event is put only behind those that are there, so that none comes twice; and
where it can be put is known only when the form before it was played. That form is played again when it is its turn to
be continued, in place of what it showed being kept: memory would grow with every form, and time hardly does, as each
is followed by hundreds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from attrs import define, evolve, field, frozen

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.hold import Base, Chance, Decision, Event, Form, Hold, Holding, Place, Tick
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.strategy import RunInfo


class Chooses(Protocol):
    """The method `choose` of a strategy."""

    def __call__(self, ready: Ready, *, may_tick: bool, step: int) -> int: ...


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
    _counts: Counter[int] = field(factory=Counter, init=False)
    """By the number of events: how many forms were played or skipped; one that is played again does not count."""
    _walks: deque[_Walk] = field(factory=deque, init=False)
    _holding: Holding | None = field(default=None, init=False)
    _depth: int = field(default=0, init=False)

    @property
    def sees_all(self) -> bool:
        """Whether the form that is played has to be asked at each step."""
        return self._holding is None or self._holding.sees_all

    def __attrs_post_init__(self) -> None:
        bases = list(Base) if self.base is None else [self.base]
        self._walks.extend(_Walk(_forms(base, self.bound, self.shard)) for base in bases)

    @property
    def played(self) -> int:
        """How many forms were played or skipped."""
        return self._counts.total()

    def played_within(self, bound: int) -> int:
        """Return how many of them have at most so many events."""
        return sum(count for depth, count in self._counts.items() if depth <= bound)

    @property
    def is_exhausted(self) -> bool:
        """Whether every form was played."""
        return self.has_played(self.bound)

    def has_played(self, bound: int) -> bool:
        """Whether every form with at most so many events was played."""
        self._skip_played()
        return all((turn := walk.next()) is None or turn.depth > bound for walk in self._walks)

    @property
    def depth(self) -> int:
        """Up to how many events the forms have that are played now; the smaller ones are through."""
        return self._depth

    @property
    def form(self) -> Form | None:
        """The form that is played; none before the first."""
        return None if self._holding is None else self._holding.form

    def begin(self, run: RunInfo) -> None:
        """Take the next form. Raises `HarnessError` when there is none."""
        self._skip_played()
        while self._walks:
            walk = self._walks.popleft()
            turn = walk.next()
            if turn is None:
                continue
            self._walks.append(walk)
            self._holding = Holding(turn.form, keeps_places=turn.continues)
            self._counts[turn.depth] += turn.is_new
            self._depth = turn.depth
            walk.holding, walk.turn = self._holding, None
            self._holding.begin(run)
            return
        raise HarnessError("every schedule was played")

    @property
    def choose(self) -> Chooses:
        """What says who runs next: the form that is played, without a step in between."""
        assert self._holding is not None
        return self._holding.choose

    def fires(self, fault: Fire) -> bool:
        """Tell whether the fault is in the form."""
        assert self._holding is not None
        return self._holding.fires(fault)

    def _skip_played(self) -> None:
        """Leave out what was played before, by the turns in which it was."""
        while self._walks and self.played < self.skip:
            walk, turn = self._walks[0], self._walks[0].next()
            if turn is not None and turn.continues:
                return
            self._walks.popleft()
            if turn is not None:
                self._counts[turn.depth] += 1
                walk.turn = None
                self._walks.append(walk)


@frozen
class _Turn:
    """A form that is to be played."""

    form: Form
    depth: int
    """Up to how many events the forms of this round have."""
    is_new: bool
    continues: bool
    """Whether others follow that are put together from it: where it can be disturbed has to be learnt."""


_Forms = Generator[_Turn, Sequence[Place], None]
"""Yields forms, and is sent the places of each that is continued."""


@define(eq=False)
class _Walk:
    """The way through the forms over one order."""

    forms: _Forms
    turn: _Turn | None = None
    """What comes next; none: it is not known yet."""
    holding: Holding | None = None
    """What played last."""
    _has_begun: bool = False
    _is_over: bool = False

    def next(self) -> _Turn | None:
        """Return the next turn, from what the last one showed; none at the end."""
        if self.turn is None and not self._is_over:
            try:
                self.turn = self.forms.send(self._shown()) if self._has_begun else next(self.forms)
            except StopIteration:
                self._is_over = True
            self._has_begun, self.holding = True, None
        return self.turn

    def _shown(self) -> Sequence[Place]:
        return () if self.holding is None else self.holding.places


def _forms(base: Base, bound: int, shard: tuple[int, int]) -> _Forms:
    """Yield the forms over an order, in rounds of one event more each."""
    share, shares = shard
    root = Form(base=base)
    places = yield _Turn(root, 0, share == 0, bound > 0)
    for depth in range(1, bound + 1):
        for number, (child, place) in enumerate(_children(root, places, 0)):
            if number % shares == share:
                yield from _from(child, place, depth, depth - 1)


def _from(form: Form, place: int, depth: int, left: int) -> _Forms:
    """Yield the forms that have so many events more than this one, and itself, to be continued."""
    places = yield _Turn(form, depth, left == 0, left > 0)
    if left:
        for child, at in _children(form, places, place):
            yield from _from(child, at, depth, left - 1)


def _children(form: Form, places: Sequence[Place], begin: int) -> Iterator[tuple[Form, int]]:
    """Yield the forms with one event more, and the place where it was put. At one place, time passes before a hold."""
    is_behind_a_hold = bool(form.events) and isinstance(form.events[-1], Hold)
    for at in range(begin, len(places)):
        for event in _possible(places[at]):
            if at == begin and is_behind_a_hold and isinstance(event, Tick):
                continue
            if (child := _with(form, event)) is not None:
                yield child, at


def _possible(place: Place) -> Iterator[Event]:
    match place:
        case Chance(fault):
            yield fault
        case Decision(who, last, may_hold, may_tick):
            if may_hold:
                yield Hold(who.who, who.steps)
            if may_tick:
                yield Tick(last)


def _with(form: Form, event: Event) -> Form | None:
    """Return the form with this event; none if it says so already. Time can pass more than once at a place."""
    for one in form.events:
        if isinstance(one, Tick) and isinstance(event, Tick) and one.after == event.after:
            again = evolve(one, times=one.times + 1)
            return evolve(form, events=tuple(again if other is one else other for other in form.events))
    return None if event in form.events else evolve(form, events=(*form.events, event))
