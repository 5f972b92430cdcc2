"""Many strategies by turns: none of them finds everything. Pure.

What leaves nothing out comes every other time, for most bugs need one hold or none; when it is through with those it
goes on to two, and to three. Between come those that sample, each of which finds something that the others hardly ever
do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from attrs import define, field

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.lanes import Lane, Ready
from kesoku_actors.harness.strategies import PCT, POS, SURW, Random, Shuffle, Strict
from kesoku_actors.harness.strategy import Learns, RunInfo, Strategy
from kesoku_actors.harness.systematic import HoldBound

DEEPEST: Final = 3
"""The most events that a portfolio goes through; long programs never come to so many."""


@define(eq=False)
class Portfolio:
    """Plays its members by turns; one that is exhausted is left out."""

    members: list[Strategy] = field(factory=lambda: default_members())
    current: Strategy | None = field(default=None, init=False)
    """Who decides this run."""
    turn: int = 0
    """Whose turn it is, counted without end."""

    @property
    def sees_all(self) -> bool:
        """Whether the current member wants to be asked at each step."""
        return bool(getattr(self.current, "sees_all", False))

    def begin(self, run: RunInfo) -> None:
        """Let the next member decide this run. Raises `HarnessError` when all are exhausted."""
        for _ in self.members:
            member = self.members[self.turn % len(self.members)]
            self.turn += 1
            if not is_exhausted(member):
                self.current = member
                member.begin(run)
                return
        raise HarnessError("every schedule was played")

    def choose(self, ready: Ready, *, may_tick: bool, step: int) -> int:
        """Return what the current member says."""
        assert self.current is not None
        return self.current.choose(ready, may_tick=may_tick, step=step)

    def ran(self, lane: Lane, touched: Collection[Any]) -> None:
        """Tell the current member, if it learns."""
        if isinstance(self.current, Learns):
            self.current.ran(lane, touched)


def deciding(strategy: Strategy) -> Strategy:
    """Return who decides the run that has begun: the member of a portfolio, or the strategy itself."""
    return strategy.current if isinstance(strategy, Portfolio) and strategy.current is not None else strategy


def is_exhausted(strategy: Strategy) -> bool:
    """Return whether a strategy has nothing more to play."""
    if isinstance(strategy, Portfolio):
        return all(map(is_exhausted, strategy.members))
    return bool(getattr(strategy, "is_exhausted", False))


def default_members(holds: HoldBound | None = None) -> list[Strategy]:
    """Return the members of the default portfolio."""
    holds = holds or HoldBound(DEEPEST)
    sampling: list[Strategy] = [PCT(2), POS(), Random(), PCT(3), SURW(), PCT(5), Strict(), Shuffle()]
    return [member for one in sampling for member in (holds, one)]
