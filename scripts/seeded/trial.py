"""One trial: explore a property until it fails as a property does. A mere crash is counted, and the search goes on.

A counterexample is not made small: it is enough that there is one, and where it was noticed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from attrs import define, evolve, frozen
from hypothesis import HealthCheck, Phase, given, seed, settings

from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.control.lives import NeverAtRest
from kesoku_actors.harness.drawn import inputs_now, share_of
from kesoku_actors.harness.errors import Deadlock, Livelock
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.inputs import Inputs
from kesoku_actors.harness.origin import MARK
from kesoku_actors.harness.search import search
from kesoku_actors.harness.token import token_for

PLACE: Final = "tests.properties.daemon"
_RESTS: Final = "comes_to_rest"
"""What every run does in the end; without it no promise that something happens is kept."""
_STEPS: Final = 25_000
"""Many times what a run of the program as it is takes."""
_STAGE: Final = frozenset({"lives.py", "model.py", "observers.py", "platform.py", "seams.py"})
"""Files there that let the program run; what they raise is no judgement of it. All others judge."""
_HERE: Final = str(Path(*PLACE.split(".")))


class Ended(StrEnum):
    """How a trial ended."""

    KILLED = "killed"
    """The property does not hold."""
    CRASHED = "crashed"
    """Runs ended with an error, and none with a promise that was broken: that says nothing about the property."""
    SURVIVED = "survived"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    """It could not be tried, or not to its end."""


_OUTCOMES: Final = frozenset({Ended.KILLED, Ended.CRASHED, Ended.SURVIVED})


@frozen(kw_only=True)
class Finding:
    """What came of a trial."""

    ended: Ended
    schedules: int = 0
    """That were run, the last of them the one that killed it."""
    by: str = ""
    """The check that noticed it."""
    said: str = ""
    crashes: int = 0
    seconds: float = 0.0
    """Of CPU time."""
    token: str = ""
    """That plays the run in which it was noticed, or the first that crashed."""
    ticks: bool = True
    """Whether time was let pass while work was runnable."""

    @property
    def is_known(self) -> bool:
        """Whether it tells anything of the program: who was ended from outside, or could not begin, does not."""
        return self.ended in _OUTCOMES

    @property
    def short(self) -> str:
        """How it ended, in a line of progress."""
        return str(self.ended) if self.is_known else f"not known: {self.said}"


@define(eq=False)
class _Trial:
    exploration: Exploration
    drawn: int = 0
    """So many inputs were drawn."""
    schedules: int = 0
    seconds: float = 0.0
    crashes: int = 0
    said: str = ""
    by: str = ""
    token: str = ""

    def once(self, inputs: Inputs) -> None:
        """Search with one input, unless the property has failed."""
        if self.by:
            return
        plan = share_of(self.exploration.plan, self.drawn, self.exploration.examples)
        self.drawn += 1
        with footprints() as watch:
            so_far = search(self.exploration.program(inputs), plan, watch)
        self.schedules += so_far.schedules
        self.seconds += so_far.seconds
        if so_far.unended:
            self.by, self.said = _RESTS, so_far.cut
            return
        if so_far.found is None or so_far.found.error is None:
            return
        token = str(token_for(self.exploration.fingerprint, so_far.found.schedule, inputs))
        for error in leaves(so_far.found.error):
            self.said = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            self.by = noticed_by(error)
            if self.by:
                self.token = token
                return
        self.token = self.token or token
        self.crashes += 1

    def finding(self) -> Finding:
        """Return what came of it."""
        return Finding(
            ended=Ended.KILLED if self.by else Ended.CRASHED if self.crashes else Ended.SURVIVED,
            schedules=self.schedules,
            by=self.by,
            said=self.said,
            crashes=self.crashes,
            seconds=self.seconds,
            token=self.token,
            ticks=self.exploration.plan.may_tick,
        )


def try_out(name: str, *, runs: int, first_seed: int) -> Finding:
    """Explore a property with so many schedules, or until it fails."""
    exploration = explored(name)
    share = max(1, exploration.plan.runs // exploration.examples) if exploration.drawn else runs
    limits = evolve(exploration.plan.limits, steps=_STEPS)
    plan = evolve(exploration.plan, runs=runs, certify=0, seed=exploration.plan.seed + first_seed, limits=limits)
    trial = _Trial(evolve(exploration, plan=plan, examples=max(1, runs // share)))

    if not exploration.drawn:
        trial.once(Inputs())
        return trial.finding()

    with_each(exploration, trial.once, count=trial.exploration.examples, first_seed=plan.seed)
    return trial.finding()


def explored(name: str) -> Exploration:
    """Return how a property is explored, by its module and name."""
    module, _, test = name.partition(".")
    exploration: Exploration = getattr(getattr(importlib.import_module(f"{PLACE}.{module}"), test), MARK)
    return exploration


def with_each(exploration: Exploration, once: Callable[[Inputs], None], *, count: int, first_seed: int) -> None:
    """Call a function with so many inputs that Hypothesis draws for a seed: the same ones each time."""

    @seed(first_seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(**exploration.drawn)
    def draw(**inputs: Any) -> None:
        once(inputs_now(exploration, inputs))

    draw()


def noticed_by(error: BaseException) -> str:
    """Return the name of the check that an error comes from; empty when it is no promise that was broken."""
    if isinstance(error, NeverAtRest | Deadlock | Livelock):
        return _RESTS
    if not isinstance(error, AssertionError) and type(error).__name__ != "Failed":  # that of `pytest.raises`
        return ""
    ours = [frame.f_code for frame, _line in walk_tb(error.__traceback__) if _HERE in frame.f_code.co_filename]
    return ours[-1].co_name if ours and Path(ours[-1].co_filename).name not in _STAGE else ""
