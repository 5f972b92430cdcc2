"""What a campaign found: how often a life was killed at each point, and what did not hold afterwards. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from scripts.crashes.points import INSTANT, TERM
from scripts.crashes.trial import Outcome

BAR = 40


@define(eq=False, kw_only=True)
class Report:
    """The sum of the outcomes so far."""

    seed: int
    passages: Mapping[str, int]
    hits: Counter[str] = field(factory=Counter)
    """Kills at each point."""
    runs: int = 0
    unhit: int = 0
    """Lives that ended before the kill: the point was passed less often than in the recording run."""
    resent: int = 0
    slowest: Outcome | None = None
    """The one whose last life took longest."""
    failed: list[Outcome] = field(factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.runs += 1
        self.hits.update(outcome.hit)
        self.unhit += len(outcome.trial.kills) - len(outcome.hit)
        self.resent += outcome.resent
        if self.slowest is None or outcome.seconds > self.slowest.seconds:
            self.slowest = outcome
        if outcome.violations:
            self.failed.append(outcome)

    def fewest(self) -> int:
        """How often the point hit least was hit."""
        return min(self.hits[point] for point in self.passages)

    def text(self) -> str:
        """Return the histogram and the findings."""
        points = [*sorted(self.passages), INSTANT, TERM]
        width, most = max(map(len, points)), max(1, *self.hits.values(), 1)
        rows = [
            f"{point:<{width}} {self.passages.get(point, 0):>4} {self.hits[point]:>5} "
            + "#" * round(BAR * self.hits[point] / most)
            for point in points
        ]
        ends = [
            f"{self.runs} runs, {self.hits.total()} kills at {sum(self.hits[point] > 0 for point in points)} of"
            f" {len(points)} points (each at least {self.fewest()} times), {self.unhit} kills not reached",
            f"{self.resent} parts were sent again, each after a kill between the send and its record",
            *(
                f"the slowest restart had everything done after {slow.seconds:.1f} s: --repeat '{slow.trial}'"
                for slow in [self.slowest]
                if slow is not None
            ),
            f"seed {self.seed}: {len(self.failed)} runs broke a promise",
        ]
        findings = [
            line
            for outcome in self.failed
            for line in (f"  --repeat '{outcome.trial}'", *(f"    {one}" for one in outcome.violations))
        ]
        return "\n".join([f"{'point':<{width}} passed kills", *rows, *ends, *findings])

    def data(self) -> dict[str, Any]:
        """Return the same as JSON data."""
        return {
            "seed": self.seed,
            "runs": self.runs,
            "kills": dict(self.hits),
            "passages": dict(self.passages),
            "unhit": self.unhit,
            "resent": self.resent,
            "slowest": None if self.slowest is None else [round(self.slowest.seconds, 2), str(self.slowest.trial)],
            "failed": [{"repeat": str(one.trial), "violations": list(one.violations)} for one in self.failed],
        }
