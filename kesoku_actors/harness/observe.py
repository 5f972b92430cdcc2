"""A run watched in detail: each step with what it touched and the line that did, and where an exception was raised."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from attrs import define, field, frozen

from kesoku_actors.harness.accesses import Accesses, watching_lines
from kesoku_actors.harness.cause import Observed
from kesoku_actors.harness.control import Program, Run, execute
from kesoku_actors.harness.control.calls import watching_calls
from kesoku_actors.harness.control.footprints import Watch, footprints
from kesoku_actors.harness.errors import RunEnded
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Form, Holding
from kesoku_actors.harness.search import Plan
from kesoku_actors.harness.sites import Site
from kesoku_actors.harness.strategy import RunInfo, Strategy
from kesoku_actors.harness.touches import Touch

_CANCELLED: Final = "Cancelled"
"""By its name, as only the control module knows the loop."""


@frozen(kw_only=True, eq=False)
class Raised:
    """Where a failure was raised first."""

    step: int
    lane: str
    site: Site


@define(eq=False)
class Seen:
    """A run, and what was seen of it."""

    observed: Observed
    raised: Raised | None
    """None when nothing was raised in the program, as when it is deadlocked."""
    interrupted: tuple[Raised, ...] = ()
    """Where a cancellation came out, each time that one did, in order."""

    @property
    def run(self) -> Run:
        return self.observed.run

    @property
    def focus(self) -> frozenset[Hashable]:
        """The things that the failing line uses."""
        raised = self.raised
        if raised is None:
            return frozenset()
        return frozenset(
            use.touch.thing
            for use in self.observed.uses
            if use.touch.site is not None
            and (use.touch.site.file, use.touch.site.line) == (raised.site.file, raised.site.line)
            and use.lane == raised.lane
        )


@define(eq=False)
class _Notes:
    """Takes down what the watchers find."""

    watch: Watch
    raised: dict[int, Raised] = field(factory=dict)
    interrupted: list[Raised] = field(factory=list)

    def note(self, touch: Touch) -> None:
        if self.watch.run is not None:
            self.watch.run.touched.append(touch)

    def note_raised(self, error: BaseException, site: Site) -> None:
        run = self.watch.run
        if run is not None and run.last is not None:
            found = self.raised[id(error)] = Raised(step=run.steps, lane=run.last.label, site=site)
            if type(error).__name__ == _CANCELLED:
                self.interrupted.append(found)


def see(program: Program, strategy: Strategy, plan: Plan, info: RunInfo) -> Seen:
    """Run a program once, watched in detail. Raises what `execute` raises."""
    strategy.begin(info)
    with footprints(detail=True) as watch:
        notes = _Notes(watch)
        with watching_calls(), watching_lines(Accesses(notes.note, notes.note_raised)):
            run = execute(
                program,
                strategy,
                limits=plan.limits,
                may_tick=plan.may_tick,
                trace=True,
                observe=watch,
                allow=plan.allow,
            )
    raised = None
    if run.error is not None:
        ends = [leaf for leaf in leaves(run.error) if not isinstance(leaf, RunEnded)]
        found = [notes.raised[id(leaf)] for leaf in ends if id(leaf) in notes.raised]
        raised = min(found, key=lambda one: one.step, default=None)
    last = run.trace[-1].number if run.trace else 0
    until = raised.step if raised is not None else run.ended_at if run.ended_at is not None else last
    return Seen(Observed(run, until), raised, tuple(notes.interrupted))


def see_form(program: Program, form: Form, plan: Plan, info: RunInfo) -> Seen:
    """Play a form, watched in detail."""
    return see(program, Holding(form), plan, info)
