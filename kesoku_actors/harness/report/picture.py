"""A run as lines of text: a column for each task, time downward, within 80 columns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from attrs import define, field

from kesoku_actors.harness.counterexample import Doing, LaneView, RunView, Story
from kesoku_actors.harness.report.ink import PLAIN, WIDTH, Ink, printable
from kesoku_actors.harness.sites import Site

LEGEND: Final = "* acts, A and B decide, X fails, : is held back, | is there"
_MOST_COLUMNS: Final = 12
_MADE: Final = re.compile(r"(\w[\w ]*?(?: `[^`]+`)?) \(([^()]+:\d+(?:, [^()]+)?)\)")
_FAILS: Final = "FAILS"


def tree(story: Story, ink: Ink = PLAIN) -> Iterator[str]:
    """Yield the tasks as they started each other, each with the number of its column; bystanders are counted."""
    shown = {lane.label for lane in story.lanes if lane.is_shown}
    kept = _with_ancestors(story.lanes, shown)
    numbers = {label: number for number, label in enumerate(columns(story), 1)}
    for lane in story.lanes:
        if lane.label in kept:
            number = numbers.get(lane.label, "")
            mark = "" if lane.label in shown else f" {ink.dim}(starts others){ink.off}"
            yield f"  {number:>2}  {'  ' * lane.label.count('/')}task `{lane.label}`{mark}"
    others = len(story.lanes) - len(kept)
    if others:
        yield f"      {ink.dim}and {others} bystander{'s' * (others > 1)}{ink.off}"


def columns(story: Story) -> tuple[str, ...]:
    """Return the tasks that take part, in the order of spawning."""
    return tuple(lane.label for lane in story.lanes if lane.is_shown)


def _with_ancestors(lanes: tuple[LaneView, ...], shown: set[str]) -> set[str]:
    parents = {lane.label: lane.parent for lane in lanes}
    kept = set(shown)
    for label in shown:
        above = parents.get(label)
        while above is not None:
            kept.add(above)
            above = parents.get(above)
    return kept


def without_places(said: str) -> str:
    """Return words without the lines at which the things in them were made: "channel `inbox` (app.py:12)"."""
    return _MADE.sub(r"\1", said)


def places(said: Sequence[str]) -> Iterator[str]:
    """Yield where each thing was made that has a name in these words; several of one name, where each was."""
    found = [match.groups() for one in said for match in _MADE.finditer(one)]
    made = {(_thing(thing), place) for thing, place in found if "`" in thing}
    yield from (f"{thing} is made at {place}" for thing, place in sorted(made))


def _thing(said: str) -> str:
    """Return "channel `inbox`" of "receives from channel `inbox`"."""
    words, _, name = said.partition(" `")
    return f"{' '.join(words.split()[-2:] if words.endswith('scope') else words.split()[-1:])} `{name}"


def time_passes(wakes: str) -> str:
    """Return in words that time passes early, and whose wait that ends."""
    return "time passes, though work is runnable" + (f"; that ends the wait of {wakes}" if wakes else "")


def short_name(label: str, others: Sequence[str]) -> str:
    """Return the last part of a task's path, if that tells it from the others."""
    last = label.rpartition("/")[2]
    return last if sum(one.rpartition("/")[2] == last for one in others) < 2 else label


@define(eq=False)
class Picture:
    """Draws one run."""

    story: Story
    run: RunView
    ink: Ink
    lanes: tuple[str, ...] = field(init=False)
    """Those that have a column."""

    def __attrs_post_init__(self) -> None:
        lanes = columns(self.story)
        self.lanes = lanes if len(lanes) <= _MOST_COLUMNS else ()

    def lines(self) -> Iterator[str]:
        """Yield the picture."""
        if self.lanes:
            heads = " ".join(f"{number % 10}" for number in range(1, len(self.lanes) + 1))
            yield f"  {self.ink.dim} step  {heads}{self.ink.off}"
        if self.run.left_out:
            many = f"{self.run.left_out} more step{'s' * (self.run.left_out > 1)}"
            yield f"  {self.ink.dim}       ({many} of the same kind or earlier left out){self.ink.off}"
        ticks = [(number, wakes) for (number, _), wakes in zip(self.run.ticks, self.run.wakes, strict=True)]
        for at, row in enumerate(self.run.doings):
            while ticks and ticks[0][0] < row.step:
                yield from self._tick(*ticks.pop(0), at)
            yield from self._row(row, at)
        for number, wakes in ticks:
            yield from self._tick(number, wakes, len(self.run.doings))

    def _tick(self, step: int, wakes: str, at: int) -> Iterator[str]:
        gutter, ink = self._gutter(at, None), self.ink
        first, *more = wrap(printable(time_passes(wakes)), WIDTH - 13 - len(gutter))
        yield f"  {step:>5}  {gutter}  {ink.yellow}{first}{ink.off}"
        yield from (f"         {gutter}    {ink.yellow}{line}{ink.off}" for line in more)

    def _row(self, row: Doing, at: int) -> Iterator[str]:
        ink = self.ink
        shade = ink.red if _FAILS in row.what else ink.yellow if row.is_witness else ""
        gutter, between = self._gutter(at, row), self._gutter(at + 1, None)
        room = WIDTH - 13 - len(gutter)
        held = " (was held back until here)" if row.is_held else ""
        name = short_name(row.lane, [lane.label for lane in self.story.lanes])
        first, *more = wrap(without_places(printable(f"{name} {row.what}{held}")), room) or [name]
        yield f"  {row.step:>5}  {gutter}  {shade}{first}{ink.off}"
        yield from (f"         {between}    {shade}{line}{ink.off}" for line in more)
        if row.site is not None:
            source = cut(f"{place(row.site)}  {printable(row.source)}", room)
            yield f"         {between}    {ink.dim}{source}{ink.off}"

    def _gutter(self, at: int, row: Doing | None) -> str:
        marks = [self._mark(lane, at, row) for lane in self.lanes]
        return " ".join(marks)

    def _mark(self, lane: str, at: int, row: Doing | None) -> str:
        if row is None or row.lane != lane:
            following = next((one for one in self.run.doings[at:] if one.lane == lane), None)
            return ":" if following is not None and following.is_held else "|"
        if _FAILS in row.what:
            return "X"
        letters = zip("AB", self.story.witnesses, strict=False)
        found = [letter for letter, one in letters if row.is_witness and one.lane == lane and _is_at(one.step, row)]
        return found[0] if found else "*"


def _is_at(step: int, row: Doing) -> bool:
    return step == row.step


def place(site: Site) -> str:
    """Return file and line."""
    return str(site).partition(" in ")[0]


def cut(said: str, room: int) -> str:
    """Return so much of a line as there is room for."""
    return said if len(said) <= room else f"{said[: room - 4]} ..."
