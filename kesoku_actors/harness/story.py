"""What happened, for a person: who raced with whom, who is blocked on what, and the steps that matter. Pure.

Most of a run is of no interest. Shown are the tasks that take part: the two whose order decides, the one that failed,
those that are held, those that are blocked; of these, the steps that use what several tasks use and that happened
before the failure; all else is a bystander.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from attrs import define, field

from kesoku_actors.harness.blocked import blocked_in, stands_at
from kesoku_actors.harness.cause import Observed, Use, cone, parting, source_of
from kesoku_actors.harness.clue import Clue, Deciding, line_of
from kesoku_actors.harness.counterexample import (
    ORDERS,
    Arrow,
    Blocked,
    Doing,
    LaneView,
    Parting,
    RunView,
    Story,
)
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.hold import Event, Form, Hold
from kesoku_actors.harness.interruptions import CUT
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site, in_own_file
from kesoku_actors.harness.witnesses import deciding

_MOST_ROWS: Final = 20
_MOST_LANES: Final = 8
_FEW: Final = 3


def told(form: Form, failing: Seen, near: tuple[Form, Seen] | None) -> Story:
    """Return the story of a failing run beside the nearest one that passes."""
    passing = near[1] if near is not None else None
    blocked = tuple(blocked_in(failing, passing))
    found = deciding(Clue(form, failing, passing, blocked, failing.focus or _waited_at(failing, blocked)))
    telling = _Telling(form, failing, passing, found, blocked)
    error = failing.run.error
    raised = failing.raised
    return Story(
        message="" if error is None else _message(error),
        summary=found.summary,
        raised_by=raised.lane if raised is not None else "",
        raised_at=raised.site if raised is not None else None,
        raised_source=source_of(raised.site) if raised is not None else "",
        witnesses=found.witnesses,
        decides=found.words,
        gap=found.gap,
        blocked=blocked,
        held_at=tuple(_held_at(failing, event) for event in form.events),
        lanes=telling.lanes(),
        failing=telling.view(failing.observed, is_failing=True),
        passing=None if passing is None else telling.view(passing.observed, is_failing=False),
        parting=None if near is None else _parting(form, failing, *near),
    )


def _held_at(failing: Seen, event: Event) -> Site | None:
    if not isinstance(event, Hold) or not event.at:
        return None
    steps = failing.observed.steps
    began = (step.number for step in steps if step.lane is not None and step.lane.label == event.who)
    last = [number for number, _ in zip(began, range(event.at), strict=False)]
    return stands_at(failing, event.who, last[-1]) if last else None


def _message(error: BaseException) -> str:
    return "; ".join(dict.fromkeys(str(leaf).strip() or type(leaf).__name__ for leaf in leaves(error)))


@define(eq=False)
class _Telling:
    """What is picked out of the runs."""

    form: Form
    failing: Seen
    passing: Seen | None
    deciding: Deciding
    blocked: tuple[Blocked, ...]
    shown: frozenset[str] = field(init=False)
    """The labels of the tasks that take part."""
    told: frozenset[str] = field(init=False)
    """Those of them of which is told what they do in the run that passes: not a crowd that is only held here."""
    ends: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        crowd = [one.lane for one in self.blocked]
        held = [event.who for event in self.form.events if isinstance(event, Hold)]
        self.told = frozenset(self._deciders() | self._changers() | set(crowd[:_MOST_LANES]))
        self.shown = self.told | set(held[:_MOST_LANES])
        if len(self.shown - self.told) <= _FEW:
            self.told = self.shown
        raised = self.failing.raised
        last = {step.lane.label: step.number for step in self.failing.observed.steps if step.lane is not None}
        waiting = [last[one.lane] for one in self.blocked if one.lane in last]
        self.ends = [raised.step] if raised is not None else waiting or list(last.values())[-1:]

    def _deciders(self) -> set[str]:
        lanes = {one.lane for one in self.deciding.witnesses} | self.deciding.others
        lanes |= {self.failing.raised.lane} if self.failing.raised is not None else set()
        return lanes - {"time"}

    def _changers(self) -> set[str]:
        """Return the few others that change what decides or what the failing line reads; a crowd says nothing."""
        observed, decisive = self.failing.observed, {(one.lane, one.what) for one in self.deciding.witnesses}
        things = {use.touch.thing for use in observed.uses if (use.lane, _what(use)) in decisive} | self.failing.focus
        lanes = {use.lane for use in observed.uses if use.touch.writes and use.touch.thing in things} - {"time"}
        return lanes if len(lanes - self._deciders()) <= _FEW else set()

    def lanes(self) -> tuple[LaneView, ...]:
        """Return every task of the program, in the order of spawning."""
        return tuple(
            LaneView(
                label=lane.label,
                parent=lane.parent.label if lane.parent is not None and lane.parent.is_program else None,
                is_shown=lane.label in self.shown,
            )
            for lane in self.failing.run.lanes
            if lane.is_program
        )

    def view(self, observed: Observed, *, is_failing: bool) -> RunView:
        """Return a run as it is drawn."""
        numbers = cone(observed, self.ends) if is_failing else {step.number for step in observed.steps}
        rows = list(self._rows(observed, numbers, is_failing=is_failing))
        kept = _fewer(_without_repeats(rows))
        ticks = [step for step in observed.steps if step.lane is None]
        return RunView(
            doings=tuple(kept),
            arrows=tuple(_arrows(observed, kept)),
            ticks=tuple((step.number, step.time) for step in ticks),
            wakes=_wakes(self.failing if is_failing else self.passing, observed),
            left_out=len(rows) - len(kept),
        )

    def _rows(self, observed: Observed, numbers: set[int], *, is_failing: bool) -> Iterator[Doing]:
        shared = observed.shared()
        witnesses = {(one.lane, one.site, one.what) for one in self.deciding.witnesses}
        uses: dict[int, list[Use]] = defaultdict(list)
        for use in observed.uses:
            uses[use.step.number].append(use)
        held = {(event.who, event.at) for event in self.form.events if isinstance(event, Hold)}
        raised = self.failing.raised if is_failing else None
        cuts = {(one.lane, one.step): one.site for one in self.deciding.witnesses if is_failing and one.what == CUT}
        cancelled: set[str] = set()
        for step in observed.steps:
            lane = step.lane
            reached = {label for use in uses[step.number] for label in use.touch.reaches}
            cancelled |= reached - {label for label, _ in cuts}  # of these is told where it comes out
            if lane is None or lane.label not in (self.shown if is_failing else self.told):
                continue
            here = [use for use in uses[step.number] if use.touch.thing in shared or _is_of(use, witnesses)]
            cut_at = cuts.get((lane.label, step.number))
            is_witness = cut_at is not None or any(_is_of(use, witnesses) for use in here)
            is_held = is_failing and (lane.label, step.lane_step) in held
            is_end = raised is not None and raised.step == step.number
            if is_held and not here:  # what it alone uses is then what it goes on with
                here = [use for use in uses[step.number] if use.touch.is_plain and use.touch.writes]
            if not (is_witness or is_held or is_end or (here and step.number in numbers)):
                continue
            said = list(dict.fromkeys(_said(here)))
            said += [CUT] if cut_at is not None else []
            said += ["FAILS"] if is_end else []
            first = next((use.touch.site for use in here if _is_of(use, witnesses)), cut_at)
            most = sorted(here, key=lambda use: (not use.touch.writes, not use.touch.is_plain))
            site = (
                raised.site
                if is_end and raised is not None
                else first or next((use.touch.site for use in most if use.touch.site is not None), step.site)
            )
            site = None if site is None else in_own_file(site)
            yield Doing(
                step=step.number,
                lane=lane.label,
                lane_step=step.lane_step,
                time=step.time,
                what="; ".join(said) or ("is cancelled" if lane.label in cancelled else "goes on"),
                site=site,
                source=source_of(site),
                is_witness=is_witness,
                is_held=is_held,
            )


def _is_of(use: Use, witnesses: set[tuple[str, Site | None, str]]) -> bool:
    if use.touch.site is None:  # what the world does by itself is told at the line where it was asked for
        return any((use.lane, _what(use)) == (lane, what) for lane, _site, what in witnesses)
    return (use.lane, use.touch.site, _what(use)) in witnesses


def _what(use: Use) -> str:
    return f"{use.touch.how} {use.touch.what}"


def _waited_at(failing: Seen, blocked: Sequence[Blocked]) -> frozenset[Hashable]:
    """Return the things that blocked tasks wait at."""
    waits = {(one.lane, one.waits_for) for one in blocked}
    uses = failing.observed.uses
    return frozenset(use.touch.thing for use in uses if (use.lane, _what(use)) in waits)


def _said(uses: Sequence[Use]) -> Iterator[str]:
    """Yield in words what a step did; that it read what it changed goes without saying."""
    changed = {use.touch.thing for use in uses if use.touch.is_plain and use.touch.writes}
    for use in uses:
        if use.touch.writes or not use.touch.is_plain or use.touch.thing not in changed:
            yield _what(use)


def _fewer(rows: list[Doing]) -> list[Doing]:
    """Leave out the oldest of what is not essential, when there is too much."""
    too_many = len(rows) - _MOST_ROWS
    if too_many <= 0:
        return rows
    plain = [row.step for row in rows if not (row.is_witness or row.is_held)]
    marked = [row.step for row in rows if row.is_witness and not row.is_held]
    dropped = set([*plain, *marked][:too_many])
    return [row for row in rows if row.step not in dropped or row is rows[-1]]


def _without_repeats(rows: list[Doing]) -> list[Doing]:
    """Leave out what is between the first and the last of several steps of one task that are all the same."""
    kept: list[Doing] = []
    for row, following in pairwise([*rows, None]):
        assert row is not None
        is_between = bool(kept) and _is_like(kept[-1], row) and following is not None and _is_like(row, following)
        if not is_between or row.is_held:
            kept.append(row)
    return kept


def _is_like(one: Doing, other: Doing) -> bool:
    return (one.lane, one.what, one.site) == (other.lane, other.what, other.site)


def _arrows(observed: Observed, rows: Sequence[Doing]) -> Iterator[Arrow]:
    """Yield an arrow wherever a step uses what another task changed last."""
    shown = {row.step for row in rows}
    changed: dict[Hashable, Use] = {}
    drawn: set[tuple[int, int]] = set()
    for use in observed.uses:
        if use.step.number not in shown:
            continue
        last = changed.get(use.touch.thing)
        if last is not None and last.lane != use.lane and (last.step.number, use.step.number) not in drawn:
            drawn.add((last.step.number, use.step.number))
            yield Arrow(of=last.step.number, to=use.step.number, why=use.touch.what)
        if use.touch.writes:
            changed[use.touch.thing] = use


def _wakes(seen: Seen | None, observed: Observed) -> tuple[str, ...]:
    """Return, for each time that passes while work is runnable, whose wait that ends."""
    found: list[str] = []
    for step, following in pairwise([*observed.steps, None]):
        if step is None or step.lane is not None:
            continue
        before = {lane.label for lane in step.ready}
        woken = [] if following is None else [one for one in following.ready if one.is_program]
        labels = sorted(one.label for one in woken if one.label not in before)
        sites = {label: None if seen is None else stands_at(seen, label, step.number) for label in labels[:_FEW]}
        said = [f"`{label}`{'' if site is None else f' at {line_of(site)}'}" for label, site in sites.items()]
        said += [f"{len(labels) - _FEW} more"] if len(labels) > _FEW else []
        found.append(", ".join(said))
    return tuple(found)


def _parting(form: Form, failing: Seen, other: Form, passing: Seen) -> Parting:
    """Return where the two runs part."""
    common = parting(failing.observed, passing.observed)
    return Parting(
        step=common + 1,
        failing=_goes_on(failing.observed, common),
        passing=_goes_on(passing.observed, common),
        difference=_difference(form, other),
    )


def _goes_on(observed: Observed, at: int) -> str:
    if at >= len(observed.steps):
        return "the run is over"
    step = observed.steps[at]
    if step.lane is None:
        return "time passes"
    if not step.lane.is_program:
        return "a task of trio's own runs"
    site = None if step.site is None else in_own_file(step.site)
    where = "begins" if site is None or not step.lane_step else f"goes on from {site}: {source_of(site)}"
    return f"`{step.lane.label}` {where}"


def _difference(form: Form, other: Form) -> str:
    missing = [event for event in form.events if event not in other.events]
    added = [event for event in other.events if event not in form.events]
    said = [f"without: {event}" for event in missing] + [f"with: {event}" for event in added]
    if len(said) > _FEW:
        counts = [(f"with {len(added)} other", added), (f"without {len(missing)}", missing)]
        said = [f"{count} event{'s' * (len(events) > 1)}" for count, events in counts if events]
    if form.base is not other.base:
        said.append(f"in the other order: {ORDERS[other.base]}")
    return "; ".join(said)
