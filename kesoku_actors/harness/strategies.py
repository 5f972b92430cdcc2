"""The strategies that sample schedules. Pure.

* `Strict`: trio's own policy: batches, each in order of arrival or reversed, by one random bit
* `Shuffle`: batches, each in any order, as with trio's deterministic scheduling
* `Random`: any lane, each step
* `PCT`: random priorities with `depth - 1` places where the running lane falls to the bottom; a bug of that depth is
  found with probability 1/(n k^(depth-1)) at least (Burckhardt and others, 2010)
* `POS`: random priorities, drawn anew for the lane that ran and for those whose next step races with it (Yuan and
  others, 2018); what a step will touch is learnt from what its suspension site touched before
* `SURW`: each lane with a probability of the steps it is expected to have left, so that interleavings are drawn about
  evenly (Zhao and others, 2025); the counts are learnt from earlier runs

All but the first two let time pass while work is runnable, now and then, with probability `tick`.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import Any

from attrs import define, field

from kesoku_actors.harness.lanes import Lane, Ready
from kesoku_actors.harness.strategy import RunInfo

TICK_RATE = 0.02
_REMEMBERED = 50
"""Runs."""


Order = Callable[[random.Random, list[Lane]], None]
"""Puts a batch in order, in place; the last one runs first."""


@define(eq=False)
class Batches:
    """Lanes that run in the order of a batch; those that become runnable meanwhile wait for the next one."""

    order: Order
    rng: random.Random = field(factory=random.Random, init=False, repr=False)
    _batch: list[Lane] = field(factory=list, init=False, repr=False)

    sees_all = True

    def begin(self, run: RunInfo) -> None:
        """Begin with an empty batch."""
        self.rng, self._batch = run.rng, []

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return the next lane of the batch."""
        if not self._batch:
            self._batch = list(ready)
            self.order(self.rng, self._batch)
        return ready.index(self._batch.pop())


def Strict() -> Batches:
    """Return trio's own policy."""
    return Batches(_maybe_reversed)


def Shuffle() -> Batches:
    """Return the policy of any order within a batch."""
    return Batches(random.Random.shuffle)


def _maybe_reversed(rng: random.Random, batch: list[Lane]) -> None:
    if rng.random() < 0.5:
        batch.reverse()


@define(eq=False)
class Random:
    """Any lane, each step."""

    tick: float = TICK_RATE
    rng: random.Random = field(factory=random.Random, init=False, repr=False)

    def begin(self, run: RunInfo) -> None:
        self.rng = run.rng

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        if may_tick and self.rng.random() < self.tick:
            return len(ready)
        return int(self.rng.random() * len(ready))


@define(eq=False)
class PCT:
    """Random priorities with a few changes. After four times the expected length it draws at random: it would starve
    whoever polls, and call that a livelock."""

    depth: int = 3
    tick: float = TICK_RATE
    rng: random.Random = field(factory=random.Random, init=False, repr=False)
    _priority: dict[Lane, float] = field(factory=dict, init=False, repr=False)
    _changes: list[int] = field(factory=list, init=False, repr=False)
    """At which decisions of the run, the first one last. Only decisions count: a change where one lane alone can run
    would be lost."""
    _lowest: float = field(default=0.0, init=False, repr=False)
    _fair_after: int = field(default=0, init=False, repr=False)
    _decisions: int = field(default=0, init=False, repr=False)
    """Of this run, so far."""
    _before: deque[int] = field(factory=lambda: deque(maxlen=_REMEMBERED), init=False, repr=False)
    """Of the last runs; one of them is the guess for the next, as a mean would fit none where some are far longer."""

    def begin(self, run: RunInfo) -> None:
        if self._decisions:
            self._before.append(self._decisions)
        expected = run.rng.choice(self._before) if self._before else run.length
        self.rng, self._priority, self._lowest, self._decisions = run.rng, {}, 0.0, 0
        places = range(1, max(expected, self.depth) + 1)
        self._changes = sorted(run.rng.sample(places, self.depth - 1), reverse=True)
        self._fair_after = 4 * max(run.length, self.depth)

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        rng, priority = self.rng, self._priority
        if may_tick and rng.random() < self.tick:
            return len(ready)
        if step > self._fair_after:
            return int(rng.random() * len(ready))
        best = self._best(ready)
        if ready[best] not in priority:
            return best
        self._decisions += 1
        while self._changes and self._decisions >= self._changes[-1]:
            self._changes.pop()
            self._lowest -= 1.0
            priority[ready[best]] = self._lowest
            best = self._best(ready)
        return best

    def _best(self, ready: Ready) -> int:
        priority = self._priority
        best, highest = 0, -1e18
        for index, lane in enumerate(ready):
            mine = priority.get(lane)
            if mine is None:
                if lane.is_loops_own and not lane.steps:
                    return index  # it only starts: as long as it waited, every step would be a decision
                mine = priority[lane] = self.rng.random()
            if mine > highest:
                best, highest = index, mine
        return best


@define(eq=False)
class POS:
    """Random priorities, drawn anew for what races."""

    tick: float = TICK_RATE
    rng: random.Random = field(factory=random.Random, init=False, repr=False)
    _priority: dict[Lane, float] = field(factory=dict, init=False, repr=False)
    _others: tuple[Lane, ...] = field(default=(), init=False, repr=False)
    _learnt: dict[tuple[str, int], set[Any]] = field(factory=dict, init=False, repr=False)
    """By a lane's label and step: what it touched in an earlier run."""

    sees_all = True

    def begin(self, run: RunInfo) -> None:
        self.rng, self._priority = run.rng, {}

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        if may_tick and self.rng.random() < self.tick:
            self._others = ()
            return len(ready)
        priority = self._priority
        best, highest = 0, -1.0
        for index, lane in enumerate(ready):
            mine = priority.get(lane)
            if mine is None:
                mine = priority[lane] = self.rng.random()
            if mine > highest:
                best, highest = index, mine
        self._others = tuple(lane for lane in ready if lane is not ready[best])
        return best

    def ran(self, lane: Lane, touched: Collection[Any]) -> None:
        self._priority.pop(lane, None)
        if not touched:
            return
        self._learnt.setdefault((lane.label, lane.steps), set()).update(touched)
        for other in self._others:
            known = self._learnt.get((other.label, other.steps + 1))
            if known is not None and not known.isdisjoint(touched):
                self._priority.pop(other, None)


@define(eq=False)
class SURW:
    """Lanes by the steps they have left."""

    tick: float = TICK_RATE
    rng: random.Random = field(factory=random.Random, init=False, repr=False)
    _expected: Counter[str] = field(factory=Counter, init=False, repr=False)
    """By label: the most steps a lane took in an earlier run."""

    sees_all = True

    def begin(self, run: RunInfo) -> None:
        self.rng = run.rng

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        if may_tick and self.rng.random() < self.tick:
            return len(ready)
        left = [max(1, self._expected[lane.label] - lane.steps) for lane in ready]
        return self.rng.choices(range(len(ready)), left)[0]

    def ran(self, lane: Lane, touched: Collection[Any]) -> None:
        if lane.steps > self._expected[lane.label]:
            self._expected[lane.label] = lane.steps
