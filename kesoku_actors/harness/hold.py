"""Hold form: a schedule as a plain order and a few named events that disturb it. Pure.

The order is one of two: *fifo* (whoever became runnable first) or *stay* (the task that ran last goes on until it
blocks, then fifo). The events:

* `Hold(who, at, until)`: the task does not take the step behind its first `at` steps until another task has taken so
  many steps, or, without `until`, until nothing else can run;
* `Fire(name, time)`: a fault of the world happens the so-manieth time it is asked for; without one none happens;
* `Tick(after)`: when that task has taken so many steps, time passes to the next deadline, although work is runnable.

Tasks are named by their labels and steps are counted per task, so that an event means the same when another one is
taken away. `form_of` writes any recorded run in hold form; `Holding` plays one, and tells, if it is asked to, at which
places there was something to decide: there `systematic` puts the next event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from attrs import define, evolve, field, frozen

from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.lanes import Lane, Ready
from kesoku_actors.harness.strategy import RunInfo


class Base(StrEnum):
    """The order that events disturb."""

    FIFO = "fifo"
    STAY = "stay"


@frozen
class Moment:
    """When a task has taken so many steps."""

    who: str
    steps: int

    def __str__(self) -> str:
        return f"`{self.who}` has taken {self.steps} step{'s' * (self.steps != 1)}"


@frozen
class Hold:
    """Keep a task from its next step."""

    who: str
    at: int
    until: Moment | None = None
    """None: until nothing else can run."""

    def __str__(self) -> str:
        where = "before its first step" if self.at == 0 else f"after its step {self.at}"
        return f"hold `{self.who}` {where} until {self.until or 'nothing else can run'}"


@frozen
class Tick:
    """Let time pass."""

    after: Moment | None
    """None: before any step."""
    times: int = 1

    def __str__(self) -> str:
        count = "" if self.times == 1 else f" {self.times} times"
        return f"let time pass{count} when {self.after}" if self.after else f"let time pass{count} at the beginning"


Event = Hold | Tick | Fire


@frozen(kw_only=True)
class Form:
    """A schedule in hold form."""

    base: Base = Base.FIFO
    events: tuple[Event, ...] = ()

    def __len__(self) -> int:
        return len(self.events)


@frozen
class Decision:
    """One decision of a run that was played in hold form: what may be put there next."""

    who: Moment
    """The lane that ran, and the steps it had taken before."""
    last: Moment | None
    """What had run before it."""
    may_hold: bool
    """Whether another lane could have run."""
    may_tick: bool


@frozen
class Chance:
    """A fault that could have happened in such a run, and did not."""

    fault: Fire


Place = Decision | Chance
"""Where an event can be put into a run."""

_Kept = tuple[str, int, str | None, int, bool, bool]
"""A decision: who and at which step, who had run before and its steps, whether one may hold it or let time pass."""


def _decision(who: str, at: int, last: str | None, steps: int, may_hold: bool, may_tick: bool) -> Decision:
    return Decision(Moment(who, at), None if last is None else Moment(last, steps), may_hold, may_tick)


@define
class Line:
    """What is known of those that can run, from step to step, so that not all of them are looked at in each: whoever
    runs leaves the line, and who comes goes to its end. Known as long as every step is asked about."""

    next: int = 0
    """The step that is asked about next; at another one all of this is forgotten."""
    left: int = 0
    """How many were in line already when the last step was asked about, but for who took it."""
    held: int = 0
    """So many at the front are held, but for those that are `freed`."""
    passed: int = 0
    """The holds of so many at the front made a difference already."""
    freed: list[Lane] = field(factory=list)

    def left_by(self, lane: Lane, place: int) -> None:
        """Take note that who stood at this place runs."""
        self.passed -= place < self.passed
        if place < self.held:
            self.held -= 1
            self.freed = [one for one in self.freed if one is not lane]


@define(eq=False)
class Holding:
    """Plays a form."""

    form: Form
    keeps_places: bool = False
    fired: set[Event] = field(factory=set, init=False)
    """The events that changed something."""
    _holds: dict[tuple[str, int], Hold] = field(factory=dict, init=False)
    _held: frozenset[str] = field(default=frozenset(), init=False)
    """Who is held at some time: to look for one of them costs less than for a hold."""
    _faults: frozenset[Fire] = field(default=frozenset(), init=False)
    _ticks: Counter[Moment | None] = field(factory=Counter, init=False)
    _ticked: dict[Moment | None, Tick] = field(factory=dict, init=False)
    _released: set[tuple[str, int]] = field(factory=set, init=False)
    _waiting: dict[tuple[str, int], Lane] = field(factory=dict, init=False)
    """What is held, in the order in which it began to be."""
    _untils: dict[tuple[str, int], list[tuple[str, int]]] = field(factory=dict, init=False)
    """By moment: what is held until then."""
    _line: Line = field(factory=Line, init=False)
    _lanes: dict[str, Lane] = field(factory=dict, init=False)
    _last: Lane | None = field(default=None, init=False)
    _kept: list[_Kept | Fire] = field(factory=list, init=False)
    """The places, in a form that costs little at each step."""

    _stays: bool = field(default=False, init=False)
    _is_bare: bool = field(default=False, init=False)
    """Whether nothing disturbs the order of who became runnable first but holds that last until nothing else can run:
    then who is first in line is all there is to look at."""

    @property
    def sees_all(self) -> bool:
        """Whether what it does depends on steps at which there is nothing to choose."""
        return self.keeps_places or self._stays or bool(self._untils or self._ticked)

    @property
    def places(self) -> list[Place]:
        """Where there was something to decide, if they are kept."""
        return [Chance(one) if isinstance(one, Fire) else _decision(*one) for one in self._kept]

    def begin(self, run: RunInfo) -> None:
        """Take the events up again."""
        self._kept, self.fired, self._released, self._waiting = [], set(), set(), {}
        self._lanes, self._last, self._line = {}, None, Line()
        self._holds = {(event.who, event.at): event for event in self.form.events if isinstance(event, Hold)}
        self._held = frozenset(who for who, _at in self._holds)
        self._faults = frozenset(event for event in self.form.events if isinstance(event, Fire))
        self._ticked = {event.after: event for event in self.form.events if isinstance(event, Tick)}
        self._ticks = Counter({after: tick.times for after, tick in self._ticked.items()})
        self._stays = self.form.base is Base.STAY
        self._untils = {}
        for key, hold in self._holds.items():
            if hold.until is not None:
                self._untils.setdefault((hold.until.who, hold.until.steps), []).append(key)
        self._is_bare = not self.sees_all

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return the first lane in order that is not held."""
        if self._is_bare:
            lane = ready[0]
            is_held = lane.label in self._held and (lane.label, lane.steps) in self._holds
            return self._first_free(ready, step) if is_held else 0
        last = self._last
        if may_tick and self._ticks:
            moment = None if last is None else Moment(last.label, last.steps)
            if self._ticks[moment] > 0:
                self._ticks[moment] -= 1
                self.fired.add(self._ticked[moment])
                return len(ready)
        if step != self._line.next:
            self._line = Line(step)
        if self._untils:
            self._hear_of(ready, last)
        index = 0
        if self._stays and last is not None:
            # Who ran last became runnable last, if it did, but for those that its step set free.
            index = len(ready) - 1 if ready[-1] is last else ready.index(last) if last in ready else 0
        lane = ready[index]
        if lane.label in self._held and (lane.label, lane.steps) in self._holds:
            index = self._first_free(ready, step)
            lane = ready[index]
        if self.keeps_places:
            self._keep(ready, index, may_tick)
        self._last, self._line.next, self._line.left = lane, step + 1, len(ready) - 1
        return index

    def _keep(self, ready: Ready, index: int, may_tick: bool) -> None:
        """Keep a decision; how the loop starts a task of its own is none that a program could notice."""
        lane, last, may_hold = ready[index], self._last, len(ready) > 1
        if may_hold and ready[0].number <= 2:
            may_hold = not _is_start(lane) and any(other is not lane and not _is_start(other) for other in ready)
        if last is None:
            self._kept.append((lane.label, lane.steps, None, 0, may_hold, may_tick))
            return
        if last.is_loops_own and last.steps == 1:
            may_tick = False
        self._kept.append((lane.label, lane.steps, last.label, last.steps, may_hold, may_tick))

    def fires(self, fault: Fire) -> bool:
        """Tell whether this fault is among the events."""
        if fault not in self._faults:
            if self.keeps_places:
                self._kept.append(fault)
            return False
        self.fired.add(fault)
        return True

    def _hear_of(self, ready: Ready, last: Lane | None) -> None:
        """Take note of lanes that are new in line, and let go whoever was held until now."""
        line = self._line
        self._lanes.update((one.label, one) for one in ready[line.left :])
        if last is None:
            return
        for key in self._untils.get(_key(last), ()):
            self._released.add(key)
            lane = self._waiting.pop(key, None)
            if lane is not None and line.held and lane.steps == key[1] and ready.index(lane) < line.held:
                line.freed.append(lane)

    def _first_free(self, ready: Ready, step: int) -> int:
        if step != self._line.next:
            self._line = Line(step)
        line, behind = self._line, None
        if self._stays and self._last is not None and self._last in ready:
            if not self._is_held(self._last):
                return ready.index(self._last)
            behind = self._last
        index = self._next_in_line(ready)
        if index < len(ready):
            self._passes(ready, index, behind)
        else:
            oldest = self._oldest()
            index = ready.index(oldest)
            if oldest is not (behind or ready[0]):
                self._passes(ready, len(ready), behind)
            self._released.add(_key(oldest))
            del self._waiting[_key(oldest)]
        line.left_by(ready[index], index)
        line.next = step + 1
        return index

    def _next_in_line(self, ready: Ready) -> int:
        """Return the place of the first that is not held; behind the last one when all are."""
        line = self._line
        if line.freed:
            return min(map(ready.index, line.freed))
        index, count = line.held, len(ready)
        while index < count and self._is_held(ready[index]):
            index += 1
        line.held = index
        return index

    def _passes(self, ready: Ready, index: int, behind: Lane | None) -> None:
        """Take note of the holds that made a difference: of those in front of this place, who would have run sooner."""
        line = self._line
        self.fired.update(self._hold_of(ready[place]) for place in range(line.passed, index))
        line.passed = max(line.passed, index)
        if behind is not None:
            self.fired.add(self._hold_of(behind))

    def _oldest(self) -> Lane:
        """Return who has been held for the longest time."""
        while True:
            key, lane = next(iter(self._waiting.items()))
            if lane.steps == key[1]:
                return lane
            del self._waiting[key]  # it ran when nobody asked

    def _is_held(self, lane: Lane) -> bool:
        key = _key(lane)
        hold = self._holds.get(key)
        if hold is None or key in self._released:
            return False
        if hold.until is not None:
            other = self._lanes.get(hold.until.who)
            if other is not None and other.steps >= hold.until.steps:
                self._released.add(key)
                self._waiting.pop(key, None)
                return False
        self._waiting.setdefault(key, lane)
        return True

    def _hold_of(self, lane: Lane) -> Hold:
        return self._holds[_key(lane)]


def _is_start(lane: Lane) -> bool:
    return lane.steps == 0 and lane.is_loops_own


def _key(lane: Lane) -> tuple[str, int]:
    return lane.label, lane.steps


class Recorded(Protocol):
    """A step of a recorded run."""

    @property
    def lane(self) -> Lane | None: ...
    @property
    def lane_step(self) -> int: ...
    @property
    def ready(self) -> tuple[Lane, ...]: ...
    @property
    def fired(self) -> tuple[Fire, ...]: ...


def form_of(trace: Sequence[Recorded], base: Base, *, of_program: bool = False) -> Form:
    """Return the form that plays exactly the run that was recorded.

    With `of_program` it names tasks of the program alone, and nearly always plays the run all the same.
    """
    holds: dict[tuple[str, int], Hold] = {}
    ticks: Counter[Moment | None] = Counter()
    steps: Counter[Lane] = Counter()
    last: Lane | None = None
    moment: Moment | None = None
    known = left = 0  # so many at the front are held already; so many were in line before
    for step in trace:
        known = 0 if len(step.ready) < left else min(known, left)
        left = len(step.ready)
        if step.lane is None:
            ticks[moment] += 1
            continue
        key = (step.lane.label, steps[step.lane])
        if key in holds:
            holds[key] = evolve(holds[key], until=moment)
        place = step.ready.index(step.lane)
        stays = base is Base.STAY and last in step.ready
        if not (stays and step.lane is last):
            before = step.ready[known:place]
            for lane in (last, *before) if stays and last is not None else before:
                other = (lane.label, steps[lane])
                if other not in holds and (lane.is_program or not of_program):
                    holds[other] = Hold(*other)
            known = max(known, place)
        known -= place < known
        left -= 1
        steps[step.lane] += 1
        last = step.lane
        if last.is_program or not of_program:
            moment = Moment(last.label, steps[last])
    faults = [fault for step in trace for fault in step.fired]
    events: list[Event] = [*holds.values(), *faults, *(Tick(after, times) for after, times in ticks.items())]
    return Form(base=base, events=tuple(events))
