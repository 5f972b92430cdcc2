"""Replay: a recorded schedule again, choice by choice. Pure."""

from __future__ import annotations

from attrs import define, field

from kesoku_actors.harness.errors import Divergence
from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.lanes import Ready
from kesoku_actors.harness.schedule import Schedule
from kesoku_actors.harness.strategy import RunInfo


@define(eq=False)
class Replay:
    """Plays a schedule. Raises `Divergence` when a decision has another number of ways than was recorded.

    `loose` goes on as well as it can in place of that: for a program that was changed since.
    """

    schedule: Schedule
    loose: bool = False
    _next: int = field(default=0, init=False)

    def begin(self, run: RunInfo) -> None:
        """Begin with the first choice."""
        self._next = 0

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return the recorded choice; the first lane when the record has ended."""
        ways = len(ready) + may_tick
        return 0 if ways == 1 else self._choose(ways)

    def fires(self, fault: Fire) -> bool:
        """Tell whether the fault happened when the run was recorded."""
        return self._choose(2) == 1

    def _choose(self, ways: int) -> int:
        choices = self.schedule.choices
        if self._next >= len(choices):
            if self.loose:
                return 0
            raise Divergence(f"the record ends after {len(choices)} choices, and the program goes on")
        choice = choices[self._next]
        self._next += 1
        if choice.ways != ways and not self.loose:
            raise Divergence(f"choice {self._next} was one of {choice.ways} ways and is now one of {ways}")
        return min(choice.index, ways - 1)
