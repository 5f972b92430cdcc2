"""What there is to find the two events by, and how they are told. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import define, field

from kesoku_actors.harness.blocked import stands_at
from kesoku_actors.harness.cause import Pair, Use, deciding_pair, source_of
from kesoku_actors.harness.counterexample import Blocked, Witness
from kesoku_actors.harness.hold import Form, Hold
from kesoku_actors.harness.observe import Seen
from kesoku_actors.harness.sites import Site


@define(kw_only=True)
class Deciding:
    """Two events, and in words how they decide."""

    witnesses: tuple[Witness, ...] = ()
    words: str = ""
    summary: str = ""
    """What goes wrong, for somebody who reads nothing else."""
    gap: Witness | None = None
    others: frozenset[str] = frozenset()
    """The tasks that have a part in it beside the two."""


@define(eq=False)
class Clue:
    """The runs, laid beside each other."""

    form: Form
    failing: Seen
    passing: Seen | None
    blocked: Sequence[Blocked]
    focus: frozenset[Hashable]
    """The things that the failing line uses, or that the blocked tasks wait at."""
    pair: Pair | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.pair = None
        if self.passing is not None:
            raised = self.failing.raised
            end = None if raised is None else (raised.lane, raised.step)
            self.pair = deciding_pair(self.failing.observed, self.passing.observed, self.focus, end)


def known(clue: Clue, use: Use) -> Witness:
    """Return a use of either run as a witness, with its step in the failing one; 0 when it does not come to it."""
    found = clue.failing.observed.by_name.get(use.name)
    return witness_of(use, 0 if found is None else found.step.number)


def gap_between(clue: Clue, first: Witness, second: Witness) -> Witness | None:
    """Return where the one of two tasks stands while the other does its part; none when that says nothing new."""
    held = {event.who for event in clue.form.events if isinstance(event, Hold)}
    later, earlier = (first, second) if 0 < second.step < first.step or not first.step else (second, first)
    if earlier.lane in held and later.lane not in held and later.step:
        later, earlier = earlier, later
    if later.lane == earlier.lane or not earlier.step:
        return None
    before = [step for step in clue.failing.observed.steps if step.number < earlier.step]
    if not any(step.lane is not None and step.lane.label == later.lane for step in before):
        return None
    site = _in_function_of(later.site, stands_at(clue.failing, later.lane, earlier.step))
    if site is None or site in (first.site, second.site):
        return None
    return at(later.lane, "stands here meanwhile", site, earlier.step)


def _in_function_of(wanted: Site | None, site: Site | None) -> Site | None:
    """Return the line that a call goes through in the function that is spoken of; else the line itself."""
    through = site
    while through is not None:
        if wanted is not None and (through.file, through.function) == (wanted.file, wanted.function):
            return through
        through = through.caller
    return site


def line_of(site: Site | None) -> str:
    """Return where a task stands, as `app.py:12`."""
    return "its first line" if site is None else str(site).partition(" in ")[0]


def at(lane: str, what: str, site: Site | None, step: int) -> Witness:
    """Return a witness with its line of source."""
    return Witness(lane=lane, what=what, site=site, source=source_of(site), step=step)


def witness_of(use: Use, step: int) -> Witness:
    """Return what a task does to a thing as a witness."""
    return at(use.lane, f"{use.touch.how} {use.touch.what}", use.touch.site, step)
