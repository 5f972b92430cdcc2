"""What came of an exploration: it holds, it fails, or it is not known. Pure.

A verdict *holds* only when everything that was asked for was explored; it carries how much that was. A budget that
ended first, or runs that did not come to an end, make it *inconclusive*, never a pass.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from kesoku_actors.harness.counterexample import Counterexample


class Outcome(StrEnum):
    """What is known of a program."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    NONDETERMINISM = "nondeterminism"
    """The same schedule gave different runs: the program depends on something that is not under control."""


EXIT_CODES: Final = {
    Outcome.HOLDS: 0,
    Outcome.FAILS: 1,
    Outcome.NONDETERMINISM: 2,
    Outcome.INCONCLUSIVE: 4,
}
"""What a command that explored ends with; 3 is an unsupported trio."""


@frozen(kw_only=True)
class Certificate:
    """Every schedule with at most `bound` holds, ticks and faults was played, over both orders.

    A hold lasts until nothing else can run; of one that ends earlier nothing is said. Nor is anything said of inputs
    that were not drawn, of ticks that are longer than the limit, and of faults that the program did not ask for.
    """

    bound: int
    schedules: int
    """Over all inputs."""
    inputs: int = 0
    """So many were drawn, and it is of each of them; none: the program has no drawn inputs."""
    ticks: bool = True
    """Whether time was let pass while work was runnable; else it passed only when nothing could run."""
    share: tuple[int, int] = (1, 1)
    """Which share of these schedules, from 1 on, of how many shares; of the others nothing is said."""

    def __str__(self) -> str:
        is_one = self.bound == 1
        hold, fault = ("hold", "fault") if is_one else ("holds", "faults")
        others = f"{'tick' if is_one else 'ticks'} or {fault}" if self.ticks else f"or {fault}, and no tick"
        drawn = f" for the {self.inputs:,} inputs drawn" if self.inputs > 1 else " for the 1 input drawn"
        number, shares = self.share
        part = f" of share {number}/{shares}" if shares > 1 else ""
        return (
            f"no failure{part} with at most {self.bound} {hold} (until nothing else can run)"
            f"{',' * self.ticks} {others}: "
            f"all {self.schedules:,} such schedules{part} were run{drawn if self.inputs else ''}"
        )


@frozen(kw_only=True)
class Verdict:
    """What came of an exploration, and how much was explored."""

    outcome: Outcome
    schedules: int
    classes: int
    """Distinct happens-before classes, as far as trio's primitives and `shared` tell."""
    steps: int
    seconds: float
    """Of CPU time."""
    certificates: tuple[Certificate, ...] = ()
    counterexample: Counterexample | None = None
    reason: str = ""
    """Why it is not known, or what was not deterministic."""

    @property
    def exit_code(self) -> int:
        """What a command ends with."""
        return EXIT_CODES[self.outcome]

    def __str__(self) -> str:
        explored = f"{self.schedules:,} schedules, {self.classes:,} distinct happens-before classes"
        lines = [f"{self.outcome}: {explored}" + (f"; {self.reason}" if self.reason else "")]
        return "\n".join([*lines, *map(str, self.certificates)])
