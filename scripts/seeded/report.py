"""What came of the trials: a line for each fault, and whether each was noticed as it should be. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from attrs import asdict, define, field

from scripts.seeded.table import Mutant
from scripts.seeded.trial import Ended, Finding


@define(eq=False, kw_only=True)
class Report:
    """The findings so far."""

    seed: int
    found: dict[Mutant, Finding] = field(factory=dict)
    without: dict[str, Finding] = field(factory=dict)
    """Of each property without any fault, in as many schedules as it took with one."""

    @property
    def survivors(self) -> list[Mutant]:
        """Faults that their property did not notice."""
        return [mutant for mutant, finding in self.found.items() if finding.ended is not Ended.KILLED]

    @property
    def false_alarms(self) -> list[str]:
        """Properties that do not hold without a fault either."""
        return [name for name, finding in self.without.items() if finding.ended is not Ended.SURVIVED]

    @property
    def is_good(self) -> bool:
        """Whether every fault was noticed, and nothing else."""
        return not self.survivors and not self.false_alarms

    def schedules_of(self) -> Mapping[str, int]:
        """Return how many schedules each property that noticed a fault took at the most."""
        most = defaultdict[str, int](int)
        for mutant, finding in self.found.items():
            if finding.ended is Ended.KILLED:
                most[mutant.test] = max(most[mutant.test], finding.schedules)
        return most

    def data(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        faults = [
            {
                "rule": mutant.rule,
                "name": mutant.name,
                "file": mutant.file,
                "property": mutant.test,
                "fault": mutant.fault,
                **asdict(finding),
            }
            for mutant, finding in self.found.items()
        ]
        without = {name: asdict(finding) for name, finding in self.without.items()}
        return {"seed": self.seed, "good": self.is_good, "faults": faults, "without": without}

    def text(self) -> str:
        """Return it for people."""
        lines = [_line(mutant, finding) for mutant, finding in self.found.items()]
        for name in self.false_alarms:
            finding = self.without[name]
            lines.append(f"{name} does not hold without a fault: {finding.ended} by {finding.by}, {finding.said}")
        rules = len({mutant.rule for mutant in self.found})
        schedules = sorted(each.schedules for each in self.found.values() if each.ended is Ended.KILLED)
        median = f", half of them within {schedules[len(schedules) // 2]} schedules" if schedules else ""
        killed = len(self.found) - len(self.survivors)
        lines.append(f"{killed} of {len(self.found)} faults of {rules} rules were noticed{median}; seed {self.seed}")
        return "\n".join(lines)


def _line(mutant: Mutant, finding: Finding) -> str:
    how = finding.by or finding.said or f"{finding.crashes} crashes"
    where = f"{mutant.name:<6} {mutant.file:<28} {mutant.test.partition('.')[2]:<84.84}"
    return f"{where} {finding.ended:<8} {finding.schedules:>5} {finding.seconds:>6.1f} s  {how:.60}"
