"""Why a run failed: it is laid beside one that passed, and what changed places is looked for. Pure.

Both runs were watched in detail. The two events that decide are uses of one thing by two tasks, at least one of which
changes it, that come in the other order in the passing run; where there are none, uses that one of the runs does not
come to at all. Of several pairs of a kind the one is taken that is closest to what failed: on what the failing line
reads, on plain state before channels and locks, the earliest.
"""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import define, field, frozen

from kesoku_actors.harness.control import Run, Step
from kesoku_actors.harness.sites import Site
from kesoku_actors.harness.touches import Touch

_MOST_WRITES: Final = 300
_MOST_PAIRS: Final = 45_000
"""Of uses of one thing, that are compared."""
_WEAK: Final = (
    *("has to wait to send to", "has to wait to receive from", "has to wait for"),
    *("takes", "lets go of", "closes", "waits for"),
)
"""What says less than that state changes or a message comes."""


@frozen(eq=False)
class Use:
    """One touch of one step."""

    order: int
    step: Step
    lane: str
    touch: Touch
    name: tuple[str, str, str, int]
    """The same in every run: the task, the thing, what was done, how often it had done that before."""


@define(eq=False)
class Observed:
    """A run that was watched in detail, as far as it counts: what came of it, and where it failed."""

    run: Run
    until: int
    """The last step that counts: later ones are the clean-up."""
    steps: list[Step] = field(init=False)
    uses: list[Use] = field(init=False)
    by_name: dict[tuple[str, str, str, int], Use] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.steps = [step for step in self.run.trace if step.number <= self.until]
        self.uses = list(_uses(self.steps))
        self.by_name = {use.name: use for use in self.uses}

    def order(self) -> list[tuple[str, int] | None]:
        """Return who ran at each step; none where time passed."""
        return [None if step.lane is None else (step.lane.label, step.lane_step) for step in self.steps]

    def users(self, things: frozenset[Hashable]) -> set[str]:
        """Return the tasks that use one of these things."""
        return {use.lane for use in self.uses if use.touch.thing in things}

    def shared(self) -> set[Hashable]:
        """Return the things that several tasks use and at least one changes."""
        users: dict[Hashable, set[str]] = defaultdict(set)
        changed: set[Hashable] = set()
        for use in self.uses:
            users[use.touch.thing].add(use.lane)
            if use.touch.writes:
                changed.add(use.touch.thing)
        return {thing for thing in changed if len(users[thing]) > 1}


def _uses(steps: Sequence[Step]) -> Iterator[Use]:
    counts: Counter[tuple[str, str, str]] = Counter()
    order = 0
    for step in steps:
        for touch in step.touched:
            lane = "time" if step.lane is None else step.lane.label
            like = (lane, touch.what, touch.how)
            counts[like] += 1
            yield Use(order, step, lane, touch, (*like, counts[like]))
            order += 1


def source_of(site: Site | None) -> str:
    """Return the line of source at a site, bare; empty when there is none."""
    return "" if site is None else linecache.getline(site.file, site.line).strip()


def parting(failing: Observed, passing: Observed) -> int:
    """Return how many steps the two runs have in common."""
    common = 0
    for one, other in zip(failing.order(), passing.order(), strict=False):
        if one != other:
            break
        common += 1
    return common


@frozen(eq=False)
class Pair:
    """Two uses of one thing, in the order of the failing run."""

    uses: tuple[Use, Use]
    rank: int
    """0: they come the other way round in the passing run; more: one of the runs does not come to one of them."""


def deciding_pair(
    failing: Observed, passing: Observed, focus: frozenset[Hashable], end: tuple[str, int] | None
) -> Pair | None:
    """Return the two uses whose order decides; none when nothing changed places.

    `focus` are the things that the failing line uses, `end` is the task and the step that failed: what that line reads
    is where the failure shows, and seldom where it comes from.
    """
    focus = focus & (failing.shared() | passing.shared()) or _shared_by(failing, end)
    users = failing.users(focus) | passing.users(focus)
    best: tuple[tuple[int, ...], Pair] | None = None
    for rank, pair in _candidates(failing, passing):
        related = sum(use.lane in users for use in pair)
        if users and not related:
            continue
        at_end = any((use.lane, use.step.number) == end for use in pair)
        plain = all(use.touch.is_plain for use in pair)
        near = any(use.touch.thing in focus for use in pair)
        last, first = max(use.order for use in pair), min(use.order for use in pair)
        is_weak = any(use.touch.how in _WEAK for use in pair)
        weight = (rank > 0, is_weak, at_end, not near, -related, rank, not plain, last, first)
        if best is None or weight < best[0]:
            best = weight, Pair(pair, rank)
    return None if best is None else best[1]


def _shared_by(observed: Observed, end: tuple[str, int] | None) -> frozenset[Hashable]:
    """Return all that the task that failed shares with others, where the failing line uses nothing of the kind."""
    shared = observed.shared()
    return frozenset(
        use.touch.thing for use in observed.uses if end and use.lane == end[0] and use.touch.thing in shared
    )


def _candidates(failing: Observed, passing: Observed) -> Iterator[tuple[int, tuple[Use, Use]]]:
    for one, other in _conflicts(failing):
        there = passing.by_name.get(one.name), passing.by_name.get(other.name)
        match there:
            case (Use() as a, Use() as b):
                if a.order > b.order:
                    yield 0, (one, other)
            case (None, Use()) | (Use(), None):
                yield 2, (one, other)
            case _:
                pass
    for one, other in _conflicts(passing):
        here = failing.by_name.get(one.name), failing.by_name.get(other.name)
        match here:
            case (Use() as a, None):
                yield 1, (a, other)
            case (None, Use() as b):
                yield 1, (b, one)
            case _:
                pass


def _conflicts(observed: Observed) -> Iterator[tuple[Use, Use]]:
    """Yield the pairs of uses of one thing by two tasks, at least one of which changes it."""
    by_thing: dict[Hashable, list[Use]] = defaultdict(list)
    for use in observed.uses:
        by_thing[use.touch.thing].append(use)
    for uses in by_thing.values():
        if len({use.lane for use in uses}) < 2:
            continue
        writes = [use for use in uses if use.touch.writes][-_MOST_WRITES:]
        kept = uses[-_MOST_PAIRS // max(1, len(writes)) :]
        written = {use.order for use in writes}
        for one in writes:
            for other in kept:
                if one.lane == other.lane or (other.order in written and other.order < one.order):
                    continue  # a pair of writes comes once
                yield (one, other) if one.order < other.order else (other, one)


def cone(observed: Observed, ends: Sequence[int]) -> set[int]:
    """Return the numbers of the steps that could have had a part in these steps: all that happened before them."""
    before: dict[int, set[int]] = defaultdict(set)
    last_of: dict[str, int] = {}
    last_use: dict[Hashable, int] = {}
    started: dict[str, int] = {}
    for step, following in pairwise([*observed.steps, None]):
        assert step is not None
        if step.lane is not None:
            label = step.lane.label
            if label in last_of:
                before[step.number].add(last_of[label])
            if label in started:
                before[step.number].add(started[label])
            last_of[label] = step.number
        for touch in step.touched:
            if touch.thing in last_use:
                before[step.number].add(last_use[touch.thing])
            last_use[touch.thing] = step.number
        if following is not None:
            fresh = {lane.label for lane in following.ready} - {lane.label for lane in step.ready}
            started.update(dict.fromkeys(fresh, step.number))
    found, todo = set(ends), list(ends)
    while todo:
        for number in before[todo.pop()] - found:
            found.add(number)
            todo.append(number)
    return found
