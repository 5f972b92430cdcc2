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
    judged: bool = True
    """Whether the goal is judged by this row; another durability is shown beside it for comparison."""

    @property
    def reached(self) -> bool:
        """Whether nothing is missed here."""
        return self.ratio <= self.limit or not self.judged

    @property
    def verdict(self) -> str:
        """`ok` or `miss`; in parentheses when the goal is not judged by this row."""
        word = "ok" if self.ratio <= self.limit else "miss"
        return word if self.judged else f"({word})"

    def __str__(self) -> str:
        return f"{self.goal:<6}{self.name:<44}{self.ratio:>7.2f}{self.limit:>7.2f}{self.spread:>8.2f}  {self.verdict}"


def row(
    goal: int, name: str, *, limit: float, ours: Sequence[float], floor: Sequence[float], judged: bool = True
) -> Row:
    """Return the row of a goal from the costs of each round, in any unit; both sequences in the order of the rounds."""
    ratios = [mine / least for mine, least in zip(ours, floor, strict=True)]
    spread = max(ratios) - min(ratios)
    return Row(goal=goal, name=name, ratio=median(ratios), limit=limit, spread=spread, judged=judged)


def show(rows: Iterable[Row]) -> bool:
    """Print the rows as they come and tell whether all reached their goals."""
    print(HEADER)
    reached = True
    for one in rows:
        print(one, flush=True)
        reached = reached and one.reached
    return reached
