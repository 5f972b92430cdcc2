"""The two events of a failing run that decide, out of all that it did, and in a sentence how. Pure.

Looked for in this order: tasks that wait for each other in a circle; a channel that is used when another has closed it;
where time passes, two tasks that look at a thing before either changes it, or a wait that ends just before what it
waits for; two uses of one thing that come the other way round in the run that passes; a task that is cancelled in the
middle; a task that is held while another uses what it uses; and at last, something that only one of the runs does.
Where the one task stands in the middle of something while the other does its part, that line is told too: it is the
gap that the other gets into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from kesoku_actors.harness.blocked import PARTNERS, circle_of
from kesoku_actors.harness.cause import Pair, Use
from kesoku_actors.harness.clue import Clue, Deciding, at, gap_between, known, line_of, witness_of
from kesoku_actors.harness.counterexample import Blocked, Witness
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.interruptions import acted_late, cancelled, cut_short, held
from kesoku_actors.harness.sites import in_own_file
from kesoku_actors.harness.touches import CLOSED

_CLOSED: Final = ("ClosedResourceError", "BrokenResourceError")


def deciding(clue: Clue) -> Deciding:
    """Return the two events; none when nothing decides alone."""
    return next((found for rule in _RULES if (found := rule(clue)) is not None), Deciding())


def _circle(clue: Clue, *, of_events: bool) -> Deciding | None:
    """Tasks that wait for each other. With events the question is why they are never set: that comes first."""
    circle = circle_of(clue.blocked)
    is_of_events = all(one.waits_for.startswith("waits for") for one in circle)
    if len(circle) < 2 or is_of_events is not of_events:
        return None
    both = tuple(map(partial(_blocked_witness, clue), circle[:2]))
    if len(circle) == 2:
        words = "Each waits for what only the other can give."
    else:
        way = ", ".join(f"`{one.lane}` for `{other.lane}`" for one, other in pairwise([*circle[1:4], circle[0]]))
        dots = "" if len(circle) <= 4 else f" ({len(circle) - 4} more between)"
        words = f"A waits for B, {way}{dots}: a circle of {len(circle)}."
    summary = f"{_tasks(both)} wait for each other" if len(circle) == 2 else f"{len(circle)} tasks wait in a circle"
    did = "; ".join(f"`{one.lane}` {one.what} at {line_of(one.site)}" for one in both)
    return Deciding(witnesses=both, words=words, summary=f"{summary}, for ever: {did}.")


def _blocked_witness(clue: Clue, one: Blocked) -> Witness:
    steps = {step.lane.label: step.number for step in clue.failing.observed.steps if step.lane is not None}
    return Witness(lane=one.lane, what=one.waits_for, site=one.site, source=one.source, step=steps[one.lane])


def _refused(clue: Clue) -> Deciding | None:
    """A channel that another task has closed."""
    error, raised = clue.failing.run.error, clue.failing.raised
    if error is None or raised is None or not any(type(leaf).__name__ in _CLOSED for leaf in leaves(error)):
        return None
    uses = list(reversed(clue.failing.observed.uses))
    last = next((use for use in uses if use.lane == raised.lane and _is_of_channel(use)), None)
    if last is None:
        return None
    closes = (use for use in uses if use.touch.thing == last.touch.thing and use.touch.how == "closes")
    closed = next((use for use in closes if use.lane != raised.lane), None)
    if closed is None:
        return None
    site = in_own_file(raised.site)
    late = at(raised.lane, f"uses {last.touch.what} all the same", site, raised.step)
    first = witness_of(closed, closed.step.number)
    summary = (
        f"`{first.lane}` {first.what} at {line_of(first.site)}; `{late.lane}` still uses it, at {line_of(late.site)}."
    )
    words = "A closes what B has not done with; where B comes before A, the run passes."
    gap = gap_between(clue, first, late)
    return Deciding(witnesses=(first, late), words=words, summary=summary, gap=gap)


def _flipped(clue: Clue) -> Deciding | None:
    """Two uses of one thing that come the other way round in the run that passes."""
    if clue.pair is None or clue.pair.rank > 0:
        return None
    first, second = map(partial(known, clue), clue.pair.uses)
    gap = gap_between(clue, first, second)
    words = "Here A comes before B; where B comes before A, the run passes."
    meanwhile = "" if gap is None else f" In between, `{gap.lane}` stands at {line_of(gap.site)}."
    summary = (
        f"`{first.lane}` {first.what} at {line_of(first.site)} before "
        f"`{second.lane}` {second.what} at {line_of(second.site)}; the other way round, the run passes.{meanwhile}"
    )
    return Deciding(witnesses=(first, second), words=words, summary=summary, gap=gap)


def _only_one(clue: Clue) -> Deciding | None:
    """Something that only one of the runs does."""
    if clue.pair is None or clue.passing is None:
        return None
    here, there = clue.failing.observed.by_name, clue.passing.observed.by_name
    both = first, second = tuple(map(partial(known, clue), clue.pair.uses))
    words = summary = ""
    for letter, use, one, other in zip("AB", clue.pair.uses, both, (second, first), strict=True):
        if use.name not in there:
            words = f"In the run that passes, {letter} does not happen."
            summary = f"`{one.lane}` {one.what} at {line_of(one.site)}; in the run that passes it does not."
        elif use.name not in here:
            comes = "before" if _comes_first(there, clue.pair, use) else "after"
            words = f"In the run that passes, {letter} happens too, {comes} {'B' if letter == 'A' else 'A'}."
            summary = (
                f"`{other.lane}` {other.what} at {line_of(other.site)}, and `{one.lane}` never "
                f"comes to {line_of(one.site)} ({one.what}); in the run that passes it does, {comes} that."
            )
    return Deciding(witnesses=both, words=words, summary=summary, gap=gap_between(clue, first, second))


def _comes_first(there: dict[tuple[str, str, str, int], Use], pair: Pair, use: Use) -> bool:
    other = next(one for one in pair.uses if one is not use)
    found = there.get(other.name)
    return found is None or there[use.name].order < found.order


def _is_of_channel(use: Use) -> bool:
    return use.touch.what.startswith("channel") and use.touch.how in (CLOSED, *PARTNERS)


def _tasks(both: Sequence[Witness]) -> str:
    return " and ".join(f"`{one.lane}`" for one in both)


_RULES: Final[tuple[Callable[[Clue], Deciding | None], ...]] = (
    partial(_circle, of_events=False),
    _refused,
    acted_late,
    cut_short,
    _flipped,
    partial(_circle, of_events=True),
    cancelled,
    held,
    _only_one,
)
"""In this order; the first that finds something has it."""
