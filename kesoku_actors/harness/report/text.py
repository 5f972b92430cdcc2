"""A counterexample as text. Pure.

Always in the same order: what failed and the two events that decide; what to hold; the tasks and what they did; who is
blocked on what; the nearest run that passes; which scheduler can do it; how to see it again. Colour is added only for a
terminal, and says nothing that the words do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import evolve, fields, frozen, has

from kesoku_actors.harness.counterexample import MEANING, ORDERS, Counterexample, Doing, LaneView, RunView, Story

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WIDEST: Final = 300


@frozen
class Ink:
    """How to colour; the codes are empty in plain text."""

    red: str = ""
    green: str = ""
    yellow: str = ""
    dim: str = ""
    bold: str = ""
    off: str = ""


PLAIN: Final = Ink()
COLOURED: Final = Ink("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[0m")


def text(found: Counterexample, ink: Ink = PLAIN) -> str:
    """Return the report, without a line break at its end."""
    return "\n".join(_lines(cleaned(found), ink))


def cleaned(value: Any) -> Any:
    """Return a value of ours without what a terminal would obey in any of its texts."""
    if isinstance(value, str) and type(value) is str:
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
    if isinstance(value, tuple):
        return tuple(map(cleaned, value))
    if not has(type(value)):
        return value
    return evolve(value, **{one.name: cleaned(getattr(value, one.name)) for one in fields(type(value))})


def printable(said: str) -> str:
    """Return a program's own text without what a terminal would obey, and not too long."""
    shown = str(cleaned(said))
    return shown if len(shown) <= _WIDEST else f"{shown[:_WIDEST]} ..."


def _lines(found: Counterexample, ink: Ink) -> Iterator[str]:
    story = found.story
    yield f"{ink.red}{ink.bold}FAILS{ink.off} {found.program}: {printable(found.failure)}"
    yield from _failed(story, ink)
    if found.inputs:
        yield ""
        yield f"{ink.bold}With these inputs{ink.off}"
        yield from (f"  {name} = {printable(repr(value))}" for name, value in found.inputs.items())
    yield ""
    yield f"{ink.bold}How to make it fail{ink.off} (order: {ORDERS[found.form.base]})"
    yield from (f"  {number}. {event}" for number, event in enumerate(found.form.events, 1))
    if not found.form.events:
        yield "  Nothing has to be held: the plain order fails."
    yield ""
    yield f"{ink.bold}What happened{ink.off}"
    yield from tree(story, ink)
    yield from _run(story.failing, ink)
    if story.blocked:
        yield ""
        yield f"{ink.bold}Who is blocked on what{ink.off}"
        yield from _blocked(story)
    yield ""
    yield f"{ink.bold}The nearest run that passes{ink.off}"
    yield from _passing(story, ink)
    yield ""
    yield f"{ink.bold}Who can do this{ink.off}: {found.grade} ({MEANING[found.grade]})"
    yield f"  Failing runs: {'; '.join(map(str, found.rates))}. Found by {found.found_by}, after {found.found_after:,}."
    if not found.is_confirmed:
        yield "  It was seen again in this process only: a fresh one does not find this program or its inputs by name."
    yield ""
    yield f"{ink.bold}See it again{ink.off}: --replay {found.token}"


def _failed(story: Story, ink: Ink) -> Iterator[str]:
    if story.message and (story.raised_by or not story.blocked):
        yield from (f"  {printable(line)}" for line in story.message.splitlines())
    if story.raised_by:
        yield f"  raised in task `{story.raised_by}` at {story.raised_at}: {printable(story.raised_source)}"
    if story.blocked:
        yield f"  nothing can run any more: {len(story.blocked)} tasks wait for ever"
    if not story.witnesses:
        yield "  No two events were found whose order alone decides."
        return
    yield f"{ink.bold}The two events that decide{ink.off}"
    for number, one in zip("AB", story.witnesses, strict=True):
        come = f"step {one.step}" if one.step else "does not come to it in this run"
        yield f"  {ink.yellow}{number}{ink.off}. task `{one.lane}` {one.what} at {one.site} ({come})"
        yield f"       {printable(one.source)}"
    if story.decides:
        yield f"  {story.decides}"


def tree(story: Story, ink: Ink = PLAIN) -> Iterator[str]:
    """Yield the tasks as they started each other; bystanders are counted."""
    shown = {lane.label for lane in story.lanes if lane.is_shown}
    kept = _with_ancestors(story.lanes, shown)
    for lane in story.lanes:
        if lane.label in kept:
            depth = lane.label.count("/")
            mark = "" if lane.label in shown else f" {ink.dim}(starts others){ink.off}"
            yield f"  {'  ' * depth}task `{lane.label}`{mark}"
    others = len(story.lanes) - len(kept)
    if others:
        yield f"  {ink.dim}and {others} bystander{'s' * (others > 1)}{ink.off}"


def _with_ancestors(lanes: tuple[LaneView, ...], shown: set[str]) -> set[str]:
    parents = {lane.label: lane.parent for lane in lanes}
    kept = set(shown)
    for label in shown:
        above = parents.get(label)
        while above is not None:
            kept.add(above)
            above = parents.get(above)
    return kept


def _run(run: RunView, ink: Ink) -> Iterator[str]:
    """Yield a line for each step that matters, in order, with the passing of time between."""
    width = max((len(row.lane) for row in run.doings), default=0)
    ticks = [number for number, _ in run.ticks]
    for row in run.doings:
        while ticks and ticks[0] < row.step:
            yield f"  {ticks.pop(0):>5}  {ink.yellow}{'':<{width}}  time passes, though work is runnable{ink.off}"
        yield _row(row, width, ink)
    for number in ticks:
        yield f"  {number:>5}  {ink.yellow}{'':<{width}}  time passes, though work is runnable{ink.off}"


def _row(row: Doing, width: int, ink: Ink) -> str:
    mark = " <- was held until here" if row.is_held else ""
    shade = ink.red if "FAILS" in row.what else ink.yellow if row.is_witness else ""
    where = f"  {row.site}: {printable(row.source)}" if row.site is not None else ""
    return f"  {row.step:>5}  {shade}{row.lane:<{width}}  {row.what}{ink.off}{mark}{ink.dim}{where}{ink.off}"


def _blocked(story: Story) -> Iterator[str]:
    for one in story.blocked:
        waits = one.waits_for or "waits"
        until = f"; could be let go by {', '.join(f'`{other}`' for other in one.until)}" if one.until else ""
        if one.waits_for.startswith("waits until its tasks"):
            until = f": {', '.join(f'`{other}`' for other in one.until)}"
        elif one.waits_for and not one.until:
            until = "; nobody ever does the other half"
        yield f"  `{one.lane}` {waits}{until}"
        yield f"       at {one.site}: {printable(one.source)}"


def _passing(story: Story, ink: Ink) -> Iterator[str]:
    parting, passing = story.parting, story.passing
    if parting is None or passing is None:
        yield "  None was found: every schedule that was tried near this one fails."
        return
    if parting.difference:
        yield f"  {parting.difference}"
    yield f"  They part at step {parting.step}."
    yield f"    here:  {printable(parting.failing)}"
    yield f"    there: {printable(parting.passing)}"
    if passing.doings:
        yield f"  {ink.green}What happens there{ink.off}"
    yield from _run(passing, ink)
