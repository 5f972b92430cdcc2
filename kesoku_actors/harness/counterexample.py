"""A counterexample: what failed, how to make it fail, and what a person needs to see why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import frozen

from kesoku_actors.harness.hold import Base, Form
from kesoku_actors.harness.sites import Site


class Grade(StrEnum):
    """Which scheduler can do this."""

    STRICT = "strict"
    SHUFFLE = "shuffle"
    FREE = "free"
    FREE_AND_TIME = "free + time"


ORDERS: Final = {
    Base.FIFO: "whoever could run first runs first",
    Base.STAY: "a task goes on until it has to wait, then whoever could run first",
}
"""The plain orders, in words."""

MEANING: Final = {
    Grade.STRICT: "trio as it is can do this: batches, each in order of arrival or reversed",
    Grade.SHUFFLE: "any order within a batch can do this, as with trio's deterministic scheduling",
    Grade.FREE: "it takes an order across batches: a wake-up from a thread, a socket or a timer can make it",
    Grade.FREE_AND_TIME: "it takes time that passes while work is runnable: a slow step or a slow machine can make it",
}


@frozen(kw_only=True)
class Doing:
    """A step that has an effect, as the report tells it."""

    step: int
    lane: str
    lane_step: int
    time: float
    what: str
    """In words: "sends to channel `inbox`"; the line of source alone where nothing more is known."""
    site: Site | None
    source: str
    """The line of source, bare."""
    is_witness: bool = False
    is_held: bool = False
    """Whether the task is held just before this step."""


@frozen(kw_only=True)
class Witness:
    """One of the two events whose order decides."""

    lane: str
    what: str
    site: Site | None
    source: str
    step: int
    """In the failing run; 0 when it does not come there."""


@frozen(kw_only=True)
class Blocked:
    """A task that waits for ever."""

    lane: str
    site: Site | None
    source: str
    waits_for: str
    """In words; empty where it is not known."""
    until: tuple[str, ...]
    """The tasks that could let it go on."""
    is_held: bool = False
    """Whether these have what it waits for, as a lock; otherwise they would have to do the other half."""
    ended: tuple[str, ...] = ()
    """Those of them that have ended without."""


@frozen(kw_only=True)
class LaneView:
    """A task in the picture."""

    label: str
    parent: str | None
    is_shown: bool
    """Whether it takes part; others are bystanders."""


@frozen(kw_only=True)
class Arrow:
    """One step is the cause of another's turn."""

    of: int
    to: int
    why: str


@frozen(kw_only=True)
class RunView:
    """One run as it is drawn."""

    doings: tuple[Doing, ...]
    arrows: tuple[Arrow, ...]
    ticks: tuple[tuple[int, float], ...]
    """Steps at which time passed while work was runnable, and what the clock shows then."""
    wakes: tuple[str, ...]
    """For each of these, whose wait it ended and where: "`main` at app.py:12"; empty where nobody's."""
    left_out: int = 0
    """Steps like others, or long before the end, that are not drawn."""


@frozen(kw_only=True)
class Parting:
    """Where the failing run and the nearest passing one part."""

    step: int
    failing: str
    passing: str
    difference: str
    """What the passing run does otherwise, as a whole."""


@frozen(kw_only=True)
class Rate:
    """How often a strategy fails in this way."""

    strategy: str
    failures: int
    runs: int

    def __str__(self) -> str:
        return f"{self.strategy} {self.failures} of {self.runs}"


@frozen(kw_only=True)
class Story:
    """What happened in the failing run, as far as it matters, and what is otherwise in one that passes."""

    message: str
    summary: str
    """What goes wrong, in a sentence or two; empty when no order was found that decides."""
    raised_by: str
    """The task whose step failed; empty when nothing was raised."""
    raised_at: Site | None
    raised_source: str
    witnesses: tuple[Witness, ...]
    """Two, or none when no order was found that decides."""
    decides: str
    """In words, how their order decides."""
    gap: Witness | None
    """Where the one stands in the middle of something while the other does its part."""
    blocked: tuple[Blocked, ...]
    held_at: tuple[Site | None, ...]
    """For each event of the form, where the task stands that is held; none where none is, or it has not begun."""
    lanes: tuple[LaneView, ...]
    failing: RunView
    passing: RunView | None
    parting: Parting | None


@frozen(kw_only=True)
class Counterexample:
    """All that a report tells."""

    program: str
    """`file.py:test`."""
    failure: str
    """The name of the failure, the same in every run that fails in this way."""
    form: Form
    is_minimal: bool
    story: Story
    grade: Grade
    rates: tuple[Rate, ...]
    found_by: str
    found_after: int
    """The schedules explored when it was found."""
    token: str
    inputs: Mapping[str, Any]
    unconfirmed: str
    """Why it was not seen again in a fresh process; empty when it was."""

    @property
    def is_confirmed(self) -> bool:
        """Whether it failed in a fresh process too."""
        return not self.unconfirmed
