"""How a benchmark reports: a ratio to a floor measured in the same run, its spread over rounds, a verdict. Pure.

Times of a shared machine say little; only ratios are compared. Ours and the floor take turns, so a slow minute hits
both, and the verdict is on the median of the ratios of the rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from attrs import frozen

HEADER = f"{'goal':<6}{'what':<44}{'ratio':>7}{'limit':>7}{'spread':>8}  verdict"


@frozen(kw_only=True)
class Row:
    """One measured goal."""

    goal: int
    """Its number in the list of goals."""
    name: str
    ratio: float
    """Ours over the floor: the median of the rounds."""
    limit: float
    spread: float
    """Largest minus smallest ratio of the rounds."""

    @property
    def verdict(self) -> str:
        """`ok` or `miss`."""
        return "ok" if self.ratio <= self.limit else "miss"

    def __str__(self) -> str:
        return f"{self.goal:<6}{self.name:<44}{self.ratio:>7.2f}{self.limit:>7.2f}{self.spread:>8.2f}  {self.verdict}"


def row(goal: int, name: str, *, limit: float, ours: Sequence[float], floor: Sequence[float]) -> Row:
    """Return the row of a goal from the costs of each round, in any unit; both sequences in the order of the rounds."""
    ratios = [mine / least for mine, least in zip(ours, floor, strict=True)]
    return Row(goal=goal, name=name, ratio=median(ratios), limit=limit, spread=max(ratios) - min(ratios))


def show(rows: Iterable[Row]) -> bool:
    """Print the rows as they come and tell whether all reached their goals."""
    print(HEADER)
    reached = True
    for one in rows:
        print(one, flush=True)
        reached = reached and one.verdict == "ok"
    return reached
