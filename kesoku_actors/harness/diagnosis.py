"""From a failing run to a counterexample: replayed, reduced, run again in a fresh process, graded, explained.

Invariant: no token is reported for a failure that was not seen again, by the same choices, in this process and, where
the program has a name by which it is found there, in a fresh one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from time import process_time
from typing import Any, Final

from attrs import define, evolve, field

from kesoku_actors.harness.cause import parting
from kesoku_actors.harness.control import Program, Run, execute
from kesoku_actors.harness.counterexample import Counterexample, Grade, Rate
from kesoku_actors.harness.errors import Divergence, Escape, HarnessError
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import failure_of, leaves
from kesoku_actors.harness.hold import Base, Event, Form, Holding, Tick, form_of
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.observe import Seen, see_form
from kesoku_actors.harness.reduce import Reduced, reduce
from kesoku_actors.harness.replay import Replay
from kesoku_actors.harness.rerun import fails_elsewhere
from kesoku_actors.harness.schedule import Schedule
from kesoku_actors.harness.search import Found, Plan
from kesoku_actors.harness.story import told
from kesoku_actors.harness.strategies import PCT, Random, Shuffle, Strict
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.systematic import HoldBound
from kesoku_actors.harness.token import shortest_token

_REDUCE_SECONDS: Final = 30.0
"""Of CPU time, in which events are taken away to reduce it, and again to find a run that passes; after it, what is left
is told as it is."""
_FEW: Final = 2
_FEWER_SECONDS: Final = 1.0
"""Of CPU time, in which the forms of so few events are tried."""
_GRADE_RUNS: Final = 200
_GRADE_SECONDS: Final = 0.2
"""Of CPU time, for each scheduler that is tried."""
_NEAR_RUNS: Final = 60
_NEAR_SECONDS: Final = 1.0
"""Of CPU time, in which a run that passes is looked for."""


class Nondeterminism(HarnessError):
    """The same choices gave another run: something that is not under control decides too."""


@define(eq=False)
class Diagnosis:
    """What is done with one failing run."""

    exploration: Exploration
    inputs: Inputs
    failure: str
    plan: Plan
    reduce_seconds: float = _REDUCE_SECONDS
    program: Program = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.program = self.exploration.program(self.inputs)

    def reduced(self, schedule: Schedule) -> Reduced:
        """Return the failing run in hold form. Raises `Nondeterminism`."""
        try:
            again = self._run(Replay(schedule), trace=True)
        except Divergence as error:
            raise Nondeterminism(f"the failing run is another one when it is run again: {error}") from None
        if not self._is_it(again):
            now = "passes" if again.error is None else f"fails with {failure_of(again.error)}"
            raise Nondeterminism(f"the run that failed with {self.failure} {now} when it is run again")
        began, is_found = process_time(), False

        def fails_in_time(form: Form) -> frozenset[Event] | None:
            nonlocal is_found
            if is_found and process_time() - began > self.reduce_seconds:
                return None
            fired = self.fails(form)
            is_found = is_found or fired is not None
            return fired

        small = reduce(again.trace, fails_in_time)
        if small is None:
            raise Nondeterminism(f"the run that failed with {self.failure} does not fail again in hold form")
        small = evolve(small, is_minimal=small.is_minimal and process_time() - began <= self.reduce_seconds)
        return self._with_fewer(small) or small

    def _with_fewer(self, small: Reduced) -> Reduced | None:
        """Look for the failure among all forms of one event, then of two, if it took more: what is left when no event
        can be missed depends on the run it came from, and one hold elsewhere may do.
        """
        began = process_time()
        walk = HoldBound(min(_FEW, len(small.form) - 1)) if len(small.form) > 1 else None
        runs = small.runs
        while walk is not None and process_time() - began < min(_FEWER_SECONDS, self.reduce_seconds):
            if walk.is_exhausted:
                return None
            runs += 1
            if self._is_it(self._run(walk)) and (form := walk.form) is not None:
                return Reduced(form, runs, is_minimal=True)
        return None

    def fails(self, form: Form) -> frozenset[Event] | None:
        """Return the events that changed something, if the form fails as wanted; else none."""
        holding = Holding(form)
        return frozenset(holding.fired) if self._is_it(self._run(holding)) else None

    def counterexample(self, found: Found, schedules: int) -> Counterexample:
        """Return all that a report tells. Raises `Nondeterminism`, and `Escape` when only the close look finds one."""
        small = self.reduced(found.schedule)
        form = small.form
        schedule = self._run(Holding(form)).schedule
        token = shortest_token(self.exploration.fingerprint, form, schedule, self.inputs)
        elsewhere = fails_elsewhere(self.exploration, token)
        if not elsewhere.why_not and elsewhere.failure != self.failure:
            now = f"fails with {elsewhere.failure}" if elsewhere.failure else "passes"
            raise Nondeterminism(
                f"the run that failed with {self.failure} {now} in a fresh process: "
                f"state is left over from one run to the next, as in a global or a cache, "
                f"or it is another order of a set of strings, whose hashes are others there"
            )
        failing = see_form(self.program, form, self.plan, _info())
        if not self._is_it(failing.run):
            for leaf in leaves(failing.run.error or Nondeterminism()):
                if isinstance(leaf, Escape):
                    raise leaf
            raise Nondeterminism(f"the run that failed with {self.failure} passes when it is watched line by line")
        near = self._nearest(form, failing)
        grade, rates = self._grade(form)
        return Counterexample(
            story=told(form, failing, near),
            program=self.exploration.name,
            failure=self.failure,
            form=form,
            is_minimal=small.is_minimal,
            grade=grade,
            rates=rates,
            found_by=found.strategy,
            found_after=schedules,
            token=token,
            inputs=self.inputs.named,
            unconfirmed=elsewhere.why_not,
        )

    def _run(
        self, strategy: Strategy, info: RunInfo | None = None, *, trace: bool = False, may_tick: bool = True
    ) -> Run:
        strategy.begin(info or _info())
        may = may_tick and self.plan.may_tick
        return execute(
            self.program, strategy, limits=self.plan.limits, may_tick=may, trace=trace, allow=self.plan.allow
        )

    def _is_it(self, run: Run) -> bool:
        return run.error is not None and failure_of(run.error) == self.failure

    def _nearest(self, form: Form, failing: Seen) -> tuple[Form, Seen] | None:
        """Return a run that passes and has as much as possible in common with the failing one."""
        best: tuple[int, Form, Seen] | None = None
        began = process_time()
        for other in _neighbours(form):
            if process_time() - began > self.reduce_seconds:
                break
            if self._run(Holding(other)).error is not None:
                continue
            seen = see_form(self.program, other, self.plan, _info())
            common = parting(failing.observed, seen.observed)
            if seen.run.error is None and (best is None or common > best[0]):
                best = common, other, seen
            if best is not None and form.events:
                break
        if best is None:
            best = self._near_by_search(failing)
        return None if best is None else best[1:]

    def _near_by_search(self, failing: Seen) -> tuple[int, Form, Seen] | None:
        """Look among the small forms, when none that leaves something out passes."""
        best: tuple[int, Form, Seen] | None = None
        began = process_time()
        for base in Base:
            walk = HoldBound(1, base)
            while not walk.is_exhausted and walk.played < _NEAR_RUNS and process_time() - began < _NEAR_SECONDS:
                if self._run(walk).error is not None or (form := walk.form) is None:
                    continue
                seen = see_form(self.program, form, self.plan, _info())
                common = parting(failing.observed, seen.observed)
                if best is None or common > best[0]:
                    best = common, form, seen
                if best is not None and walk.played > _NEAR_RUNS // 4:
                    break
        return best or self._near_by_chance(failing)

    def _near_by_chance(self, failing: Seen) -> tuple[int, Form, Seen] | None:
        """Look among random runs, when no small form passes."""
        began = process_time()
        for number in range(_NEAR_RUNS):
            if process_time() - began > _NEAR_SECONDS:
                break
            if self._run(Random(), _info(number)).error is None:
                form = form_of(self._run(Random(), _info(number), trace=True).trace, Base.FIFO)
                seen = see_form(self.program, form, self.plan, _info())
                if seen.run.error is None:
                    return parting(failing.observed, seen.observed), form, seen
        return None

    def _grade(self, form: Form) -> tuple[Grade, tuple[Rate, ...]]:
        """Return the most ordinary scheduler that can do this, and how often each does."""
        rates = tuple(self._rate(name, make) for name, make in _SCHEDULERS.items())
        strict, shuffle = rates[:2]
        if strict.failures:
            return Grade.STRICT, rates
        if shuffle.failures:
            return Grade.SHUFFLE, rates
        if not any(isinstance(event, Tick) for event in form.events):
            return Grade.FREE, rates
        without = [self._rate(name, make, may_tick=False) for name, make in list(_SCHEDULERS.items())[2:]]
        return Grade.FREE if any(rate.failures for rate in without) else Grade.FREE_AND_TIME, rates

    def _rate(self, name: str, make: type[Strategy] | Any, *, may_tick: bool = True) -> Rate:
        """Make the first runs that a search with this strategy alone makes, by the same randomness."""
        strategy: Strategy = make()
        may_tick = may_tick and name not in _WITHOUT_TIME
        began, failures, runs, steps = process_time(), 0, 0, 0
        while runs < _GRADE_RUNS and process_time() - began < _GRADE_SECONDS:
            info = RunInfo(number=runs, rng=self.plan.rng(runs), length=steps // runs if runs else self.plan.length)
            run = self._run(strategy, info, may_tick=may_tick)
            failures, runs, steps = failures + self._is_it(run), runs + 1, steps + run.steps
        return Rate(strategy=name, failures=failures, runs=runs)


_SCHEDULERS: Final[Mapping[str, Any]] = {"strict": Strict, "shuffle": Shuffle, "random": Random, "PCT(3)": PCT}
_WITHOUT_TIME: Final = ("strict", "shuffle")


def _neighbours(form: Form) -> Iterator[Form]:
    """Yield the forms that leave one event out, the last one first, then the other order."""
    for at in reversed(range(len(form))):
        yield evolve(form, events=form.events[:at] + form.events[at + 1 :])
    if form.events:
        yield evolve(form, events=())
    yield evolve(form, base=Base.STAY if form.base is Base.FIFO else Base.FIFO, events=())


def _info(number: int = 0) -> RunInfo:
    return RunInfo(number=number, rng=random.Random(f"diagnosis:{number}"), length=100)
