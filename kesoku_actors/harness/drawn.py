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
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Flaky

from kesoku_actors.harness.campaign import Campaign
from kesoku_actors.harness.control.footprints import footprints
from kesoku_actors.harness.diagnosis import Diagnosis, Nondeterminism
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.exploring import failed, how_it_changed, verdict_of
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Form
from kesoku_actors.harness.search import Found, Searched, Watcher, search, together
from kesoku_actors.harness.verdict import Outcome, Verdict


class _Failing(Exception):
    """Tells Hypothesis that an input fails; its cause tells which failure it is."""


@define(eq=False)
class _Drawing:
    """The search over inputs."""

    exploration: Exploration
    fixed: Mapping[str, Any]
    """Arguments that are not drawn."""
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
    last: tuple[Mapping[str, Any], Found] | None = None
    """The last input that failed; when Hypothesis is through, the smallest."""
    first: Mapping[str, Any] = field(factory=dict)
    """The first input that was run."""

    def once(self, drawn: Mapping[str, Any]) -> None:
        """Search with one input. Raises `_Failing`."""
        number, self.drawn = self.drawn % self.count, self.drawn + 1
        if number < self.passed_over and self.drawn <= self.count:
            return
        inputs, plan = {**self.fixed, **drawn}, self.exploration.plan
        left = None if plan.seconds is None else plan.seconds - self.total.seconds
        runs = max(1, plan.runs * (number + 1) // self.count - plan.runs * number // self.count)
        share = evolve(plan, runs=runs, seconds=left)
        if (left is not None and left <= 0) or self.total.escaped:
            self.total.reason = self.total.reason or "the time was over before every input was drawn"
            share = evolve(plan, runs=0, certify=0, seconds=None)  # what failed before has to fail again
        with footprints() as watch:
            so_far = search(self.exploration.program(inputs), share, watch, known=self.known, on_run=self._shown)
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

    def _fail(self, inputs: Mapping[str, Any], found: Found) -> NoReturn:
        form = Diagnosis(self.exploration, inputs, found.failure, self.exploration.plan).reduced(found.schedule).form
        if form not in self.known:
            self.known.append(form)
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
        return failed(exploration, inputs, drawing.total, found)
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


def _draw(exploration: Exploration, once: Callable[[Mapping[str, Any]], None]) -> None:
    """Call a function with each input that Hypothesis draws: for the same seed the same ones, while none fails."""

    @seed(exploration.plan.seed)
    @settings(
        max_examples=exploration.examples,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
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
