"""The search: run a program under schedule after schedule, until one fails or all that was asked for was run.

Invariants: a run depends on the seed and its number alone, and on what a strategy has learnt from earlier ones; a
budget is looked at between runs, so that no run is ever cut off half-way by it; CPU time counts and not the time of
day, so that a busy machine explores as much as an idle one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from time import process_time
from typing import Final

from attrs import define, evolve, field, frozen

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.control import Limits, Program, Run, execute
from kesoku_actors.harness.control.calls import watching_calls
from kesoku_actors.harness.control.footprints import Watch
from kesoku_actors.harness.control.traps import wants_asyncio
from kesoku_actors.harness.errors import HarnessError, StepLimit, Stuck
from kesoku_actors.harness.failures import failure_of, leaves
from kesoku_actors.harness.faults import Tally
from kesoku_actors.harness.hold import Form, Holding
from kesoku_actors.harness.inputs import draws_while_it_runs
from kesoku_actors.harness.named import strategy_named
from kesoku_actors.harness.portfolio import DEEPEST, Portfolio, deciding, is_exhausted
from kesoku_actors.harness.schedule import Schedule
from kesoku_actors.harness.strategies import PCT, Batches, Strict
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.systematic import HoldBound
from kesoku_actors.harness.verdict import Certificate

Runner = Callable[[Strategy], Run]
"""Runs the program once."""

KNOWN: Final = "a schedule that failed before"
"""What is told of a run of a form that is tried as it failed with other inputs."""
_HOPELESS: Final = 5
"""When so many runs came to their step limit and no other one has been made, it is given up."""


@frozen(kw_only=True)
class Plan:
    """How much to explore, and how."""

    runs: int = 2000
    seconds: float | None = None
    """Of CPU time; none: as long as it takes."""
    strategy: str | Callable[[], Strategy] = "portfolio"
    seed: int = 0
    certify: int = 0
    """Play every schedule with at most so many holds, ticks and faults."""
    limits: Limits = field(factory=Limits)
    may_tick: bool = True
    allow: Allow = field(factory=Allow)
    """What the program may reach of the real world."""
    shard: tuple[int, int] = (0, 1)
    """Which share of the work, of how many: a share runs every so-many-th run."""
    is_part: bool = False
    """Whether this share is judged together with the others: a fault that never happens in it may do so in those."""
    runs_before: int = 0
    """Runs of this share's that were made before, by an earlier search that this one goes on with."""
    holds_before: int = 0
    """Forms that were played before."""
    length: int = 100
    """Steps that the first run is expected to take."""

    def rng(self, number: int) -> random.Random:
        """Return the randomness of the run with this number."""
        return random.Random(f"{self.seed}:{number}")

    def certificate(self, *, schedules: int, inputs: int = 0) -> Certificate:
        """Return the certificate of so many schedules, when all of this share were played."""
        share, shares = self.shard
        return Certificate(
            bound=self.certify, schedules=schedules, inputs=inputs, ticks=self.may_tick, share=(share + 1, shares)
        )

    def fresh_strategy(self, holds: HoldBound) -> Strategy:
        """Return the strategy, knowing nothing yet; `holds` takes part in a portfolio."""
        if isinstance(self.strategy, str):
            return strategy_named(self.strategy, shard=self.shard, holds=holds)
        return self.strategy()


@frozen(kw_only=True)
class Found:
    """A failing run."""

    failure: str
    schedule: Schedule
    strategy: str
    error: BaseException | None = field(default=None, eq=False, repr=False)
    """What it ended with; none when another process found it."""


@frozen(kw_only=True)
class First:
    """The first run of a search, to tell whether it is still the same when all others were made."""

    schedule: Schedule
    steps: int
    happened_before: int
    """Its happens-before class."""


@define(kw_only=True)
class Searched:
    """What a search saw so far."""

    schedules: int = 0
    steps: int = 0
    seconds: float = 0.0
    classes: set[int] = field(factory=set)
    found: Found | None = None
    certificate: Certificate | None = None
    reason: str = ""
    """Why more is not known."""
    unended: int = 0
    """Runs that came to their step limit."""
    cut: str = ""
    """What the first of them did when it was ended."""
    faults: Tally = field(factory=Tally)
    escaped: str = ""
    """How the program reached outside of the simulated world."""
    runs: int = 0
    """Runs that the strategy decided, those before among them."""
    holds: int = 0
    """Forms with few holds, ticks and faults that were played, those before among them."""
    inputs: int = 0
    """Drawn inputs that were searched to their end."""
    first: First | None = None

    def add(self, other: Searched) -> None:
        """Add what another search of the same program saw, with other inputs or another share of the work."""
        self.schedules += other.schedules
        self.steps += other.steps
        self.seconds += other.seconds
        self.classes |= other.classes
        self.runs += other.runs
        self.holds += other.holds
        self.inputs += other.inputs
        self.unended += other.unended
        self.cut = self.cut or other.cut
        self.faults.asked += other.faults.asked
        self.faults.fired += other.faults.fired
        self.escaped = self.escaped or other.escaped
        self.reason = self.reason or other.reason
        self.found = self.found or other.found
        self.first = self.first or other.first
        one, more = self.certificate, other.certificate
        self.certificate = more if one is None else one
        if one is not None and more is not None:
            self.certificate = evolve(one, schedules=one.schedules + more.schedules, inputs=one.inputs + more.inputs)

    @property
    def is_stopped(self) -> bool:
        """Whether there is nothing more to find."""
        return self.found is not None or bool(self.escaped)


def together(*searches: Searched) -> Searched:
    """Return what several searches of the same program saw."""
    total = Searched()
    for one in searches:
        total.add(one)
    return total


Watcher = Callable[[Searched], None]
"""Is shown the progress after each run."""


def runner_of(program: Program, plan: Plan, watch: Watch | None) -> Runner:
    """Return what runs a program under this plan's limits."""

    def run(strategy: Strategy) -> Run:
        return execute(program, strategy, limits=plan.limits, may_tick=plan.may_tick, observe=watch, allow=plan.allow)

    return run


def search(
    program: Program, plan: Plan, watch: Watch, *, known: Sequence[Form] = (), on_run: Watcher | None = None
) -> Searched:
    """Run a program as planned; `known` forms first: they failed before, with other inputs."""
    run, so_far = runner_of(program, plan, watch), Searched(runs=plan.runs_before, holds=plan.holds_before)
    holds = HoldBound(max(plan.certify, DEEPEST), shard=plan.shard, skip=plan.holds_before)
    strategy = plan.fresh_strategy(holds)
    if isinstance(strategy, Portfolio):
        strategy.turn = plan.runs_before  # it goes on where the search before ended
    began = process_time()
    for number, turn in enumerate(_turns(plan, strategy, holds, so_far, known)):
        if plan.seconds is not None and so_far.seconds >= plan.seconds:
            so_far.reason = f"the time was over after {so_far.schedules:,} schedules"
            return so_far
        length = so_far.steps // so_far.schedules if so_far.schedules else plan.length
        rng = plan.rng(so_far.runs * plan.shard[1] + plan.shard[0])
        turn.begin(RunInfo(number=number, rng=rng, length=length))
        decides = deciding(turn)
        so_far.runs += turn is strategy
        with watching_calls() if not so_far.schedules else nullcontext():
            one = run(decides)
        _keep(so_far, one, watch, decides)
        so_far.seconds, so_far.holds = process_time() - began, max(so_far.holds, holds.played)
        if on_run is not None:
            on_run(so_far)
        if so_far.is_stopped:
            return so_far
        if so_far.unended == so_far.schedules >= _HOPELESS:
            so_far.reason = f"none of {so_far.unended} runs came to its end: {so_far.cut}"
            return so_far
    if plan.certify:
        so_far.certificate = plan.certificate(schedules=holds.played_within(plan.certify))
    return so_far


def _turns(
    plan: Plan, strategy: Strategy, holds: HoldBound, so_far: Searched, known: Sequence[Form]
) -> Iterator[Strategy]:
    """Yield who decides each run: known forms, then the strategy, then what is left of the certificate."""
    for form in known:
        yield Holding(form)
    share, shares = plan.shard
    while so_far.runs * shares + share < plan.runs and not is_exhausted(strategy):
        yield strategy
    while plan.certify and not holds.has_played(plan.certify):
        yield holds


def _keep(so_far: Searched, run: Run, watch: Watch, strategy: Strategy) -> None:
    """Add a run to what was seen."""
    so_far.schedules += 1
    so_far.steps += run.steps
    happened_before = watch.happened_before()
    so_far.classes.add(happened_before)
    so_far.faults.add(run.asked, run.fired)
    if so_far.first is None:
        so_far.first = First(schedule=run.schedule, steps=run.steps, happened_before=happened_before)
    judge(so_far, run, described(strategy))


def judge(so_far: Searched, run: Run, strategy: str) -> None:
    """Add how a run ended: it passed, failed, was cut off, or reached out of the simulated world."""
    if run.error is None:
        return
    ends = list(leaves(run.error))
    for end in ends:
        if isinstance(end, HarnessError | Stuck):  # to run a stuck step again takes as long each time
            so_far.escaped = str(end)
            return
    if all(isinstance(end, StepLimit) for end in ends):
        so_far.unended += 1
        so_far.cut = so_far.cut or str(ends[0])
        return
    for wants in (wants_asyncio, draws_while_it_runs):
        if escape := next(filter(None, map(wants, ends)), ""):
            so_far.escaped = escape
            return
    so_far.found = Found(failure=failure_of(run.error), schedule=run.schedule, strategy=strategy, error=run.error)


def described(strategy: Strategy) -> str:
    """Return what a strategy is called in a report."""
    match strategy:
        case PCT(depth=depth):
            return f"PCT({depth})"
        case HoldBound(depth=depth):
            return f"Hold({max(1, depth)})"
        case Batches(order=order):
            return "Strict" if order is Strict().order else "Shuffle"
        case Holding():
            return KNOWN
        case _:
            return type(strategy).__name__
