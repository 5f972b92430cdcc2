"""The two events of a failing run that decide, out of all that it did, and in a sentence how. Pure.

Looked for in this order: tasks that wait for each other in a circle; a channel that is used when another has closed it;
where time passes, two tasks that look at a thing before either changes it, or a wait that ends just before what it
waits for; two uses of one thing that come the other way round in the run that passes; a task that is cancelled in the
middle; a task that is held while another uses what it uses; and at last, something that only one of the runs does.
Where the one task stands in the middle of something while the other does its part, that line is told too: it is the
gap that the other gets into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from kesoku_actors.harness.blocked import PARTNERS, circle_of
from kesoku_actors.harness.cause import Pair, Use
from kesoku_actors.harness.clue import Clue, Deciding, at, gap_between, known, line_of, witness_of
from kesoku_actors.harness.counterexample import Blocked, Witness
from kesoku_actors.harness.failures import leaves
from kesoku_actors.harness.interruptions import acted_late, cancelled, crashed, cut_short, held
from kesoku_actors.harness.sites import in_own_file
from kesoku_actors.harness.touches import CLOSED

_FEW: Final = 3
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
    others = _others_who_sent(clue, circle)
    sent = f" {_names(sorted(others))} sent there too, and took up room." if others else ""
    return Deciding(witnesses=both, words=words, summary=f"{summary}, for ever: {did}.{sent}", others=others)


def _others_who_sent(clue: Clue, circle: Sequence[Blocked]) -> frozenset[str]:
    """Return the few that are not of a circle, and sent to a channel that one of it waits to send to."""
    full = {one.waits_for for one in circle}
    sent = {use.lane for use in clue.failing.observed.uses if use.touch.how == "sends to" and _waiting_to(use) in full}
    others = frozenset(sent - {one.lane for one in circle})
    return others if len(others) <= _FEW else frozenset()


def _waiting_to(use: Use) -> str:
    return f"has to wait to send to {use.touch.what}"


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
    if gap is not None and gap.lane == second.lane and (late := _used_late(clue, *clue.pair.uses)) is not None:
        second = known(clue, late)
    words = "Here A comes before B; where B comes before A, the run passes."
    meanwhile = "" if gap is None else f" In between, `{gap.lane}` stands at {line_of(gap.site)}."
    summary = (
        f"`{first.lane}` {first.what} at {line_of(first.site)} before "
        f"`{second.lane}` {second.what} at {line_of(second.site)}; the other way round, the run passes.{meanwhile}"
    )
    return Deciding(witnesses=(first, second), words=words, summary=summary, gap=gap)


def _used_late(clue: Clue, change: Use, again: Use) -> Use | None:
    """Return what a task does with what it looked up before it was changed, when it then looks it up `again` by the
    same line: that is its next round, and not where it goes wrong.
    """
    mine = [use for use in clue.failing.observed.uses if use.lane == again.lane and use.order < again.order]
    before = [use for use in mine if use.touch.thing == change.touch.thing and use.order < change.order]
    there = {} if clue.passing is None else clue.passing.observed.by_name
    if not any(use.touch.site == again.touch.site for use in before) or change.name not in there:
        return None
    for use in mine:
        is_late = use.order > change.order and use.touch.is_plain and use.touch.writes
        if is_late and use.name in there and there[use.name].order < there[change.name].order:
            return use
    return None


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
    return _names(one.lane for one in both)


def _names(lanes: Iterable[str]) -> str:
    return " and ".join(f"`{lane}`" for lane in lanes)


_RULES: Final[tuple[Callable[[Clue], Deciding | None], ...]] = (
    partial(_circle, of_events=False),
    _refused,
    acted_late,
    cut_short,
    _flipped,
    partial(_circle, of_events=True),
    crashed,
    cancelled,
    held,
    _only_one,
)
"""In this order; the first that finds something has it."""
