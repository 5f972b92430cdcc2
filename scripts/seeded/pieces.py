"""The pieces of a campaign: one property with one seed each, and the file that says which are done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import asdict, frozen

from scripts.seeded.server import Trial
from scripts.seeded.trial import Ended, Finding

_SECONDS: Final = 3_600
"""Of CPU time; a piece that takes longer hangs."""


@frozen(kw_only=True)
class Done:
    """What came of one piece."""

    test: str
    seed: int
    runs: int
    ended: str
    schedules: int
    by: str
    said: str
    seconds: float

    @classmethod
    def of(cls, trial: Trial, finding: Finding) -> Done:
        """Return what is kept of a trial."""
        told = asdict(finding, filter=lambda attribute, _value: attribute.name != "crashes")
        return cls(test=trial.test, seed=trial.seed, runs=trial.runs, **{**told, "ended": finding.ended.value})

    @property
    def is_failed(self) -> bool:
        """Whether the property did not hold; a crash is no pass either."""
        return self.ended != Ended.SURVIVED

    def line(self) -> str:
        """Return it as a line of the file."""
        return json.dumps(asdict(self))

    def command(self) -> str:
        """Return the command that finds it again, makes it small and tells its token."""
        module, _, test = self.test.partition(".")
        where = f"tests/properties/daemon/{module}.py:{test}"
        return f"KESOKU_RUNS={self.runs} kesoku-actors check {where} --seed {self.seed}"


def pieces(names: Sequence[str], rounds: int, runs: int, shard: tuple[int, int], done: Sequence[Done]) -> list[Trial]:
    """Return what a shard has left to do, round by round."""
    is_done = {(one.test, one.seed, one.runs) for one in done}
    share, shares = shard
    every = [(name, seed) for seed in range(1, rounds + 1) for name in names]
    return [
        Trial(test=name, mutant=None, runs=runs, seed=seed, seconds=_SECONDS)
        for name, seed in every[share::shares]
        if (name, seed, runs) not in is_done
    ]


def read_done(path: Path | None) -> list[Done]:
    """Return what the file says is done; of a line that was cut off, nothing."""
    if path is None or not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [Done(**json.loads(line)) for line in whole.splitlines()]
