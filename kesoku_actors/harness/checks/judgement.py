"""What a checker says about a trace. Pure.

Three answers: it *holds*, with how many cases were looked at (none is told, too: a property of nothing was not tested);
it *fails*, with the two events that show it; or it is *inconclusive*, when the search was given up. Only the first lets
`demand` return.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from attrs import field, frozen

from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.notes import Note

Trace = Sequence[Note]
"""The notes of a run, in order: `run.notes`, `world.notes`."""


class Answer(StrEnum):
    """Whether a property holds."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


class PropertyFailed(AssertionError):
    """A property does not hold; `judgement` has the events that show it."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement = judgement
        super().__init__(f"{judgement.name}: {judgement.why}")

    def __str__(self) -> str:
        return str(self.judgement)


class GaveUp(HarnessError):
    """A property could not be decided within its budget, or was tried in too few cases: no pass, and no failure."""


@frozen(kw_only=True)
class Judgement:
    """The answer of one checker."""

    name: str
    """Of the property, with what it was asked about."""
    answer: Answer
    cases: int = 0
    """How many instances of the property the trace has."""
    why: str = ""
    witnesses: tuple[Note, ...] = field(default=())
    """The two events that show a failure; one, where the other is missing."""

    @property
    def holds(self) -> bool:
        """Whether it holds."""
        return self.answer is Answer.HOLDS

    def demand(self, *, at_least: int = 0) -> Judgement:
        """Return the judgement if it holds in so many cases. Raises `PropertyFailed`, or `GaveUp` when nobody knows.

        A kind or a field that is written otherwise than in the program has no case, and so never fails: where it is
        known that there are some, ask for them.
        """
        match self.answer:
            case Answer.HOLDS if self.cases < at_least:
                raise GaveUp(f"{self}, and at least {at_least} were asked for")
            case Answer.HOLDS:
                return self
            case Answer.FAILS:
                raise PropertyFailed(self)
            case Answer.INCONCLUSIVE:
                raise GaveUp(str(self))

    def __str__(self) -> str:
        match self.answer:
            case Answer.HOLDS:
                return f"{self.name} holds in {self.cases} case{'s' * (self.cases != 1)}"
            case Answer.FAILS:
                return "\n  ".join([f"{self.name} fails: {self.why}", *map(str, self.witnesses)])
            case Answer.INCONCLUSIVE:
                return f"{self.name} is inconclusive: {self.why}"


def holds(name: str, cases: int) -> Judgement:
    """Return that a property holds."""
    return Judgement(name=name, answer=Answer.HOLDS, cases=cases)


def fails(name: str, why: str, *witnesses: Note) -> Judgement:
    """Return that a property fails."""
    return Judgement(name=name, answer=Answer.FAILS, why=why, witnesses=witnesses)


def gave_up(name: str, why: str) -> Judgement:
    """Return that nobody knows."""
    return Judgement(name=name, answer=Answer.INCONCLUSIVE, why=why)
