"""Tasks that are caught in the middle: by time, by a cancellation, or while they are held. Pure.

Each rule looks for two events of its kind, and returns none where there are none.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Final

from attrs import evolve

from kesoku_actors.harness.blocked import PARTNERS, stands_at
from kesoku_actors.harness.cause import Use, source_of
from kesoku_actors.harness.clue import Clue, Deciding, at, gap_between, known, line_of, witness_of
from kesoku_actors.harness.counterexample import Witness
from kesoku_actors.harness.hold import Hold, Tick
from kesoku_actors.harness.sites import Site, in_own_file
from kesoku_actors.harness.touches import LIFE

CUT: Final = "is cancelled here, in the middle"
"""What happens to a task at the line at which a cancellation comes out."""
_OTHERWISE: Final = "; where B comes at another moment, the run passes."
_OF_NURSERY: Final = "open_nursery("
_RECEIVES: Final = ("receives from", "has to wait to receive from")


def acted_late(clue: Clue) -> Deciding | None:
    """Two tasks that look at one thing before either changes it, where time brings them together."""
    if not any(isinstance(event, Tick) for event in clue.form.events):
        return None
    looked: dict[Hashable, list[Use]] = {}
    for use in clue.failing.observed.uses:
        if not use.touch.is_plain or use.lane == "time":
            continue
        before = looked.setdefault(use.touch.thing, [])
        if not use.touch.writes:
            before.append(use)
            continue
        both = {one.lane: one for one in before}
        if use.lane in both and len(both) > 1:
            other = next(one for lane, one in both.items() if lane != use.lane)
            if _changes_too(clue, other) and both[use.lane].order < other.order:
                return _stale(clue, other, use)
        before.clear()
    return None


def _changes_too(clue: Clue, use: Use) -> bool:
    """Whether a task changes later what it looks at here."""
    return any(
        one.lane == use.lane and one.touch.thing == use.touch.thing and one.touch.writes and one.order > use.order
        for one in clue.failing.observed.uses
    )


def _stale(clue: Clue, look: Use, change: Use) -> Deciding:
    first, second = witness_of(look, look.step.number), witness_of(change, change.step.number)
    summary = (
        f"`{second.lane}` and `{first.lane}` both look at {look.touch.what} before either changes it, "
        f"at {line_of(first.site)} and {line_of(second.site)}."
    )
    words = "Here A comes before B; where A comes after B, it sees what B has done."
    return Deciding(witnesses=(first, second), words=words, summary=summary, gap=gap_between(clue, first, second))


def cut_short(clue: Clue) -> Deciding | None:
    """A wait that time ended, if the schedule lets time pass while work is runnable."""
    if not any(isinstance(event, Tick) for event in clue.form.events):
        return None
    observed = clue.failing.observed
    for tick, following in pairwise(observed.steps):
        if tick.lane is not None:
            continue
        woken = {lane.label for lane in following.ready} - {lane.label for lane in tick.ready}
        for use in (one for one in reversed(observed.uses) if one.lane in woken and one.step.number < tick.number):
            other = _other_half(clue, use, tick.number)
            if other is not None:
                what = f"{use.touch.how} {use.touch.what}, and its time is over"
                first = evolve(witness_of(use, tick.number), what=what)
                return _too_late(clue, first, witness_of(other, other.step.number), is_half=True)
        if (rest := _elsewhere(clue, woken)) is not None:
            label = min(woken)
            site = stands_at(clue.failing, label, tick.number)
            first = at(label, "has waited, and its time is over, while work is runnable", site, tick.number)
            return _too_late(clue, first, rest, is_half=False)
    return None


def _too_late(clue: Clue, first: Witness, other: Witness, *, is_half: bool) -> Deciding:
    if is_half:
        words = "Here time ends the wait of A just before B; where B comes first, the run passes."
    else:
        words = "Here time passes for A before others have done theirs."
    summary = (
        f"The time of `{first.lane}` at {line_of(first.site)} is over before "
        f"`{other.lane}` {other.what} at {line_of(other.site)}."
    )
    return Deciding(witnesses=(first, other), words=words, summary=summary, gap=gap_between(clue, first, other))


def _other_half(clue: Clue, use: Use, after: int) -> Use | None:
    halves = PARTNERS.get(use.touch.how, ())
    for one in clue.failing.observed.uses:
        is_other = one.touch.thing == use.touch.thing and one.lane != use.lane
        if is_other and one.step.number > after and one.touch.how in halves:
            return one
    return None


def _elsewhere(clue: Clue, lanes: set[str]) -> Witness | None:
    """Return the half of the pair that another task does, when these tasks are one side."""
    if clue.pair is None or not lanes:
        return None
    raised = clue.failing.raised
    for use in clue.pair.uses:
        if use.lane not in lanes and (raised is None or use.lane != raised.lane):
            return known(clue, use)
    return None


def cancelled(clue: Clue) -> Deciding | None:
    """A task that is cancelled, and who cancels it."""
    for use in reversed(clue.failing.observed.uses):
        if use.touch.how != "cancels" or use.lane == "time":
            continue
        for label in _victims(clue, use):
            step, site = _comes_out(clue, label, use.step.number)
            if site is None or _OF_NURSERY in source_of(site):
                continue
            victim = at(label, CUT, site, step)
            other = witness_of(use, use.step.number)
            called = "" if site.caller is None else f", called at {line_of(site.caller)}"
            got = _got_last(clue, label, step)
            said, giver = ("", None) if got is None else _in_hand(clue, *got)
            summary = (
                f"`{other.lane}` cancels `{label}` at {line_of(other.site)}; that ends `{label}` at {line_of(site)}"
                f"{called}; it goes no further.{said}"
            )
            return Deciding(
                witnesses=(victim, other),
                words=f"B reaches A in the middle of something{_OTHERWISE if clue.passing is not None else '.'}",
                summary=summary,
                others=frozenset(() if giver is None else (giver,)),
            )
    return None


def crashed(clue: Clue) -> Deciding | None:
    """A crash of the world that the run that passes does not have, and whom it reaches in the middle."""
    there = {} if clue.passing is None else clue.passing.observed.by_name
    for use in reversed(clue.failing.observed.uses):
        if use.touch.how != "cancels" or not use.touch.what.endswith(LIFE) or use.name in there:
            continue
        for label in _victims(clue, use):
            step, site = _comes_out(clue, label, use.step.number)
            if site is not None and _OF_NURSERY not in source_of(site):
                return _crash(clue, at(label, CUT, site, step), use)
    return None


def _crash(clue: Clue, victim: Witness, use: Use) -> Deciding:
    """Tell of it by the line where the program says so, or by that where it may come at any moment."""
    site = use.touch.site or _outermost(stands_at(clue.failing, _parent(clue, use.lane), use.step.number))
    crash = at(use.lane, f"{use.touch.how} {use.touch.what}", site, use.step.number)
    called = "" if victim.site is None or victim.site.caller is None else f", called at {line_of(victim.site.caller)}"
    life = use.touch.what.capitalize()
    summary = (
        f"{life} ends by a crash (step {use.step.number}) while `{victim.lane}` stands at {line_of(victim.site)}"
        f"{called}: what comes behind that line is not done in this life, and what was not synced may be lost."
    )
    words = f"B reaches A in the middle of something{_OTHERWISE if clue.passing is not None else '.'}"
    return Deciding(witnesses=(victim, crash), words=words, summary=summary)


def _parent(clue: Clue, label: str) -> str:
    lanes = clue.failing.run.lanes
    return next((one.parent.label for one in lanes if one.label == label and one.parent is not None), label)


def _outermost(site: Site | None) -> Site | None:
    while site is not None and site.caller is not None:
        site = site.caller
    return site


def _comes_out(clue: Clue, label: str, after: int) -> tuple[int, Site | None]:
    """Return the step and the line at which a cancellation reaches a task: the first line of its own that waits then.

    That may be a later line than it stood at: who has been handed something goes on to its next wait.
    """
    outs = (one for one in clue.failing.interrupted if one.lane == label and one.step >= after)
    out = next(outs, None)
    return (after, stands_at(clue.failing, label, after)) if out is None else (out.step, in_own_file(out.site))


def _got_last(clue: Clue, label: str, before: int) -> tuple[Use, Use | None] | None:
    """Return how a task last received something, and whose sending let it go on, if it had to wait for that."""
    uses = [use for use in clue.failing.observed.uses if use.step.number <= before]
    mine = [use for use in uses if use.lane == label and use.touch.how in _RECEIVES]
    if not mine:
        return None
    last = mine[-1]
    if last.touch.how == _RECEIVES[0]:
        return last, None
    of_same = (use for use in uses if use.touch.thing == last.touch.thing and use.order > last.order)
    given = next((use for use in of_same if use.touch.how == "sends to"), None)
    return None if given is None else (last, given)


def _in_hand(clue: Clue, got: Use, given: Use | None) -> tuple[str, str | None]:
    """Return in words what a task received last, and the task that it came from, if that is known."""
    received = f" What it has received last, at {line_of(got.touch.site)}, comes from {got.touch.what}"
    if given is None:
        return f"{received}.", None
    return f"{received}: `{given.lane}` sent it at {line_of(given.touch.site)}, step {given.step.number}.", given.lane


def _victims(clue: Clue, use: Use) -> list[str]:
    """Return the tasks that a cancellation reaches, first those that use what the failing line uses."""
    users = clue.failing.observed.users(clue.focus)
    if clue.pair is not None:
        users |= {one.lane for one in clue.pair.uses}
    return sorted((label for label in use.touch.reaches if label != use.lane), key=lambda label: label not in users)


def held(clue: Clue) -> Deciding | None:
    """A task that is held, and who uses meanwhile what it uses."""
    observed = clue.failing.observed
    for event in clue.form.events:
        if not isinstance(event, Hold):
            continue
        mine = [step for step in observed.steps if step.lane is not None and step.lane.label == event.who]
        begins = next((step.number for step in mine if step.lane_step == event.at - 1), 0)
        ends = next((step.number for step in mine if step.lane_step == event.at), observed.until)
        things = {use.touch.thing for use in observed.uses if use.lane == event.who} & observed.shared()
        between = [
            use
            for use in observed.uses
            if begins < use.step.number < ends and use.lane != event.who and use.touch.thing in things
        ]
        other = next((use for use in between if use.touch.writes), None)
        if other is not None:
            site = stands_at(clue.failing, event.who, begins)
            stands = "is held here, in the middle" if event.at else "has not begun yet"
            first = at(event.who, stands, site, begins)
            second = witness_of(other, other.step.number)
            words = "Here B comes while A is in the middle; where A goes on first, the run passes."
            summary = (
                f"While `{first.lane}` stands at {line_of(site)}, "
                f"`{second.lane}` {second.what} at {line_of(second.site)}.{_all_the_same(clue, event.who, ends)}"
            )
            return Deciding(witnesses=(first, second), words=words, summary=summary)
    return None


def _all_the_same(clue: Clue, label: str, step: int) -> str:
    """Return in words what a task that was held changes as soon as it goes on."""
    uses = (use for use in clue.failing.observed.uses if use.lane == label and use.step.number == step)
    late = next((use for use in uses if use.touch.is_plain and use.touch.writes), None)
    if late is None:
        return ""
    return f" Then `{label}` {late.touch.how} {late.touch.what} at {line_of(late.touch.site)} all the same."
