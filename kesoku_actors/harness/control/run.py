"""One run of a program, as values: where it has to end, what came of it, and each of its steps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, field, frozen

from kesoku_actors.harness.faults import Fire
from kesoku_actors.harness.lanes import Lane
from kesoku_actors.harness.notes import Note
from kesoku_actors.harness.schedule import Choice, Schedule
from kesoku_actors.harness.sites import Site

Program = Callable[[], Awaitable[object]]


@frozen(kw_only=True)
class Limits:
    """Where a run ends, whatever the program does."""

    steps: int = 20_000
    longest_tick_s: float = 10.0
    """Time that may pass at once while work is runnable: an uncapped tick sets off watchdogs that mean hours."""
    stuck_s: float = 10.0
    """Real seconds of the processor that one step may take; infinite: nobody watches, as when a person steps."""


@frozen
class Step:
    """One step of a run, as it is kept for a trace."""

    number: int
    lane: Lane | None
    """None: time passed."""
    lane_step: int
    time: float
    site: Site | None
    """Where the lane was when it was chosen."""
    ready: tuple[Lane, ...]
    touched: tuple[Any, ...]
    fired: tuple[Fire, ...] = ()
    """Faults that happened in this step."""


@define(kw_only=True, eq=False)
class Run:
    """What came of one run."""

    choices: tuple[int, ...]
    """Two numbers for each decision: what was chosen, and of how many ways."""
    steps: int
    error: BaseException | None
    """How the program ended; none when it returned."""
    lanes: tuple[Lane, ...]
    trace: tuple[Step, ...]
    """Empty unless it was asked for."""
    seconds: float
    """Of virtual time."""
    notes: tuple[Note, ...] = ()
    asked: Counter[str] = field(factory=Counter)
    """How often each fault was asked for."""
    fired: tuple[Fire, ...] = ()
    """The faults that happened."""
    ended_at: int | None
    """The step at which the harness ended the program, when it did not end by itself."""

    @property
    def schedule(self) -> Schedule:
        """The choices, to be written down and played again."""
        return Schedule(tuple(map(Choice, self.choices[::2], self.choices[1::2])))
