"""Programs with inputs that Hypothesis draws: the search over schedules is made for each input; both shrink together.

A failing schedule is kept in hold form, by names that mean the same for other inputs, and tried first with each input
that Hypothesis tries while it shrinks. So a smaller input fails at once, if it fails in the same way.

Invariant: what failed for an input fails for it again, as every schedule that ever failed is tried again; Hypothesis
holds programs for flaky that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from attrs import define, evolve, field
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from kesoku_actors.harness.campaign import Campaign
from kesoku_actors.harness.choices import recorded
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.diagnosis import Diagnosis, Nondeterminism
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.exploring import failed, how_it_changed, verdict_of
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Form
from kesoku_actors.harness.inputs import Inputs, is_literal
from kesoku_actors.harness.search import KNOWN, Found, Plan, Searched, Watcher, search, together
from kesoku_actors.harness.verdict import Outcome, Verdict


class _Failing(Exception):
    """Tells Hypothesis that an input fails; its cause tells which failure it is."""


@define(eq=False)
class _Drawing:
    """The search over inputs."""

    exploration: Exploration
    fixed: Mapping[str, Any]
    """Arguments that are given."""
    on_run: Watcher | None
    campaign: Campaign | None
    passed_over: int
    """So many inputs come first that were searched before."""
    count: int
    """So many inputs there are; the runs are divided among them."""
    drawn: int = 0
    """So many inputs were drawn so far; behind all there are, it is to make a failing one smaller."""
    total: Searched = field(factory=Searched)
    known: list[Form] = field(factory=list)
    found_by: str = ""
    """The strategy that found the first failing run; the smaller ones are found by trying its form."""
    last: tuple[Inputs, Found] | None = None
    """The last input that failed; when Hypothesis is through, the smallest."""
    first: Inputs = field(factory=Inputs)
    """The first input that was run."""

    def once(self, drawn: Mapping[str, Any]) -> None:
        """Search with one input. Raises `_Failing`."""
        number, self.drawn = self.drawn % self.count, self.drawn + 1
        if number < self.passed_over and self.drawn <= self.count:
            return
        inputs, plan = inputs_now(self.exploration, drawn, self.fixed), self.exploration.plan
        left = None if plan.seconds is None else plan.seconds - self.total.seconds
        share = evolve(share_of(plan, number, self.count), seconds=left, length=self._length())
        if (left is not None and left <= 0) or self.total.escaped:
            self.total.reason = self.total.reason or "the time was over before every input was drawn"
            share = evolve(share, runs=0, certify=0, seconds=None)  # what failed before has to fail again
        with footprints() as watch:
            so_far = search(self.exploration.program(inputs), share, watch, known=self.known, on_run=self._shown)
        so_far.runs -= share.runs_before
        if self.total.first is None:
            self.first = inputs
        if so_far.certificate is not None:
            so_far.certificate = evolve(so_far.certificate, inputs=1)
        found, so_far.found = so_far.found, None
        is_whole = found is None and not so_far.reason and not self.total.reason
        if not is_whole and not self.total.reason:
            self.keep(now=True)  # what follows is searched again another day
        self.total.add(so_far)
        self.total.inputs += is_whole
        if found is not None:
            self._fail(inputs, found)
        if is_whole:
            self.keep(now=False)

    def keep(self, *, now: bool) -> None:
        """Write down the inputs that were searched to their end."""
        if self.campaign is not None and not self.known:
            self.campaign.keep(self.total, now=now)

    def _length(self) -> int:
        """Return how many steps a run had before, so that a strategy need not learn it anew from each input."""
        before = Searched() if self.campaign is None else self.campaign.before
        schedules = before.schedules + self.total.schedules
        return (before.steps + self.total.steps) // schedules if schedules else self.exploration.plan.length

    def _fail(self, inputs: Inputs, found: Found) -> NoReturn:
        if found.strategy != KNOWN:
            self.found_by = self.found_by or found.strategy
            diagnosis = Diagnosis(self.exploration, inputs, found.failure, self.exploration.plan)
            form = diagnosis.reduced(found.schedule).form
            self.known += [form] if form not in self.known else []
        self.last = inputs, found
        raise _Failing(found.failure) from found.error

    def _shown(self, so_far: Searched) -> None:
        if self.on_run is not None:
            self.on_run(together(self.total, so_far))


def drawn_verdict(
    exploration: Exploration,
    fixed: Mapping[str, Any],
    on_run: Watcher | None = None,
    campaign: Campaign | None = None,
) -> Verdict:
    """Explore a program with the inputs that Hypothesis draws, beside arguments that are fixed.

    It goes on with a campaign, if it is of one. Raises `HarnessError` for a file of another one.
    """
    if campaign is not None:
        campaign.resumed()
    passed_over = campaign.before.inputs if campaign is not None else 0
    drawing = _Drawing(exploration, fixed, on_run, campaign, passed_over, _count(exploration))
    try:
        _draw(exploration, drawing.once)
    except _Failing:
        assert drawing.last is not None
        inputs, found = drawing.last
        return failed(exploration, inputs, drawing.total, evolve(found, strategy=drawing.found_by))
    except Nondeterminism as error:
        return verdict_of(drawing.total, Outcome.NONDETERMINISM, reason=str(error))
    except Flaky as error:
        first = next(leaves(error), error)
        return verdict_of(drawing.total, Outcome.NONDETERMINISM, reason=str(first))
    if not drawing.total.reason:
        drawing.keep(now=True)
    changed = how_it_changed(exploration, drawing.first, drawing.total)
    total = drawing.total if campaign is None else together(campaign.before, drawing.total)
    is_part = exploration.plan.is_part
    return verdict_of(total, Outcome.NONDETERMINISM if changed else None, reason=changed, is_part=is_part)


def inputs_now(exploration: Exploration, drawn: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> Inputs:
    """Return the inputs of the Hypothesis test that is running, as they can be had again."""
    draws = None if is_literal(drawn) else recorded(exploration.drawn, drawn)
    return Inputs(fixed=fixed or {}, drawn=drawn, draws=draws)


def share_of(plan: Plan, number: int, count: int) -> Plan:
    """Return the plan for one of so many inputs: its part of the runs, with the numbers that they have among all.

    So no two inputs are run by the same randomness, and where an input has few runs, the members of a portfolio go
    round the inputs.
    """
    share, shares = plan.shard
    before = plan.runs * number // count
    mine = max(0, -(-(before - share) // shares))
    return evolve(plan, runs_before=mine, runs=max(before + 1, plan.runs * (number + 1) // count))


def _draw(exploration: Exploration, once: Callable[[Mapping[str, Any]], None]) -> None:
    """Call a function with each input that Hypothesis draws: for the same seed the same ones, while none fails."""

    @seed(exploration.plan.seed)
    @settings(
        max_examples=exploration.examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.target, Phase.shrink],  # to explain takes it longer than all others together
    )
    @given(**exploration.drawn)
    def test(**drawn: Any) -> None:
        once(drawn)

    test()


def _count(exploration: Exploration) -> int:
    """Return how many inputs are drawn: fewer than asked for where there are no more."""
    seen = [0]

    def once(_drawn: Mapping[str, Any]) -> None:
        seen[0] += 1

    _draw(exploration, once)
    return max(1, seen[0])
