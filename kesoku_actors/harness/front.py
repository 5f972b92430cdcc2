"""The front door: `explore`, a function that explores a program now, and a decorator that makes a test of one.

    verdict = explore(main, runs=500)

    @explore(runs=2000, strategy="portfolio", certify=Hold(1))
    async def test_nothing_is_lost(world, messages=st.lists(st.text())):
        ...

An argument called `world` is given a world of its own in each run; arguments with a Hypothesis strategy as their
default are drawn by Hypothesis; all others are for whoever calls the test, as pytest's fixtures are.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Final, overload

from attrs import evolve, field, frozen

from kesoku_actors.harness.allow import Allow
from kesoku_actors.harness.campaign import Campaign
from kesoku_actors.harness.control import Limits
from kesoku_actors.harness.diagnosis import Nondeterminism
from kesoku_actors.harness.errors import HarnessError
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.exploring import explored, replayed
from kesoku_actors.harness.origin import MARK
from kesoku_actors.harness.report import text
from kesoku_actors.harness.search import Plan, Watcher
from kesoku_actors.harness.strategy import Strategy
from kesoku_actors.harness.systematic import HoldBound
from kesoku_actors.harness.verdict import Outcome, Verdict

Test = Callable[..., Awaitable[object]]
_WHOLE: Final = (None, (0, 1), 0)
"""The base, the shard and what is skipped, when nothing is left out."""


class ProgramFails(AssertionError):
    """A test was explored and fails; `verdict` carries the counterexample, the text is the report."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        found = verdict.counterexample
        super().__init__(str(verdict) if found is None else text(found))


class Inconclusive(HarnessError):
    """A test was explored, and not to the end: it did not fail, and that is no pass."""


@frozen(kw_only=True)
class Overrides:
    """What whoever runs tests wants otherwise than the tests say."""

    runs: int | None = None
    seconds: float | None = None
    replay: str | None = None
    """A token to play in place of exploring."""
    heard: list[Verdict] = field(factory=list)
    """What came of the token."""


_overrides: ContextVar[Overrides] = ContextVar("overrides")


@contextmanager
def overridden(overrides: Overrides) -> Iterator[None]:
    """Let every test that is explored meanwhile be explored in this way."""
    token = _overrides.set(overrides)
    try:
        yield
    finally:
        _overrides.reset(token)


@frozen(kw_only=True)
class _Options:
    """What was asked for, as a plan."""

    plan: Plan
    world: Callable[[], Any] | None
    examples: int = field(default=25)

    def exploration(self, function: Test) -> Exploration:
        parameters = inspect.signature(function).parameters
        drawn = {name: one.default for name, one in parameters.items() if _is_drawn(one.default)}
        return Exploration(function=function, plan=self.plan, world=self.world, drawn=drawn, examples=self.examples)


@overload
def explore(
    program: Test,
    /,
    *,
    runs: int = ...,
    seconds: float | None = ...,
    strategy: str | Callable[[], Strategy] = ...,
    certify: int | HoldBound | None = ...,
    seed: int = ...,
    world: Callable[[], Any] | None = ...,
    examples: int = ...,
    limits: Limits | None = ...,
    may_tick: bool = ...,
    allow: Allow | None = ...,
) -> Verdict: ...
@overload
def explore(
    program: None = None,
    /,
    *,
    runs: int = ...,
    seconds: float | None = ...,
    strategy: str | Callable[[], Strategy] = ...,
    certify: int | HoldBound | None = ...,
    seed: int = ...,
    world: Callable[[], Any] | None = ...,
    examples: int = ...,
    limits: Limits | None = ...,
    may_tick: bool = ...,
    allow: Allow | None = ...,
) -> Callable[[Test], Callable[..., None]]: ...
def explore(
    program: Test | None = None,
    /,
    *,
    runs: int = 2000,
    seconds: float | None = None,
    strategy: str | Callable[[], Strategy] = "portfolio",
    certify: int | HoldBound | None = None,
    seed: int = 0,
    world: Callable[[], Any] | None = None,
    examples: int = 25,
    limits: Limits | None = None,
    may_tick: bool = True,
    allow: Allow | None = None,
) -> Verdict | Callable[[Test], Callable[..., None]]:
    """Explore a program and return the verdict; without a program, return a decorator for tests.

    `runs` schedules are run, or fewer when `seconds` of CPU time end first: then the verdict is inconclusive. `certify`
    adds every schedule with at most so many holds (until nothing else can run), ticks and faults. `world` makes the
    world of a run, `examples` is how many inputs Hypothesis draws at most, and the runs are divided among those there
    are; with `may_tick=False` time passes only when nothing can run. `allow` opens ways out of the simulated world.

    Raises `HarnessError` when no input is to be drawn, and for a certificate of less than every schedule.
    """
    if examples < 1:
        raise HarnessError(f"examples is how many inputs are drawn, 1 or more, not {examples}")
    bound = certify.bound if isinstance(certify, HoldBound) else certify or 0
    if bound < 0 or (isinstance(certify, HoldBound) and (certify.base, certify.shard, certify.skip) != _WHOLE):
        raise HarnessError(f"certify is how many events, 0 or more, over both orders: Hold(1), not {certify!r}")
    plan = Plan(
        runs=runs,
        seconds=seconds,
        strategy=strategy,
        seed=seed,
        certify=bound,
        limits=limits or Limits(),
        may_tick=may_tick,
        allow=allow or Allow(),
    )
    options = _Options(plan=plan, world=world, examples=examples)
    if program is not None:
        return verdict_on(options.exploration(program))
    return lambda function: _decorated(options.exploration(function))


def verdict_on(
    exploration: Exploration,
    fixed: Mapping[str, Any] | None = None,
    *,
    on_run: Watcher | None = None,
    resume: Path | None = None,
) -> Verdict:
    """Explore, with drawn inputs if there are any, and return the verdict; `resume` is the file of a campaign."""
    overrides = _overrides.get(Overrides())
    if overrides.replay is not None:
        overrides.heard.append(replayed(exploration, overrides.replay, fixed))
        return overrides.heard[-1]
    plan = exploration.plan
    plan = evolve(plan, runs=plan.runs if overrides.runs is None else overrides.runs)
    plan = evolve(plan, seconds=plan.seconds if overrides.seconds is None else overrides.seconds)
    exploration = evolve(exploration, plan=plan)
    campaign = None if resume is None else Campaign(resume, exploration)
    if exploration.drawn:
        from kesoku_actors.harness.drawn import drawn_verdict

        return drawn_verdict(exploration, fixed or {}, on_run, campaign)
    return explored(exploration, fixed, on_run=on_run, campaign=campaign)


def _decorated(exploration: Exploration) -> Callable[..., None]:
    if not inspect.iscoroutinefunction(exploration.function):
        raise HarnessError(f"@explore is for an `async def`, and {exploration.name} is none")
    signature = inspect.Signature(list(exploration.open_arguments))

    @wraps(exploration.function)
    def test(*arguments: Any, **named: Any) -> None:
        fixed = signature.bind(*arguments, **named)
        fixed.apply_defaults()
        verdict = verdict_on(exploration, fixed.arguments)
        match verdict.outcome:
            case Outcome.HOLDS:
                return
            case Outcome.FAILS:
                raise ProgramFails(verdict)
            case Outcome.NONDETERMINISM:
                raise Nondeterminism(str(verdict))
            case Outcome.INCONCLUSIVE:
                raise Inconclusive(str(verdict))

    vars(test).update({"__signature__": signature, MARK: exploration})
    return test


def _is_drawn(default: object) -> bool:
    """Whether the default of an argument is a Hypothesis strategy; Hypothesis is imported only where it is used."""
    kinds = [kind for kind in type(default).__mro__ if kind.__module__.startswith("hypothesis.")]
    return any(kind.__name__ == "SearchStrategy" for kind in kinds)
