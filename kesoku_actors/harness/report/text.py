"""A counterexample as text of 80 columns. Pure.

Always in the same order: what failed, in a sentence, and the two events that decide; what to hold; the tasks and what
they did; who is blocked on what; the nearest run that passes; which scheduler can do it; how to see it again. Colour is
added only for a terminal, and says nothing that the words do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from kesoku_actors.harness.cause import source_of
from kesoku_actors.harness.counterexample import MEANING, ORDERS, Counterexample, Parting, Story, Witness
from kesoku_actors.harness.report.holding import MOST_EVENTS, about_events
from kesoku_actors.harness.report.ink import PLAIN, WIDTH, Ink, cleaned, printable
from kesoku_actors.harness.report.picture import LEGEND, Picture, cut, place, places, tree, without_places
from kesoku_actors.harness.report.waiting import waiting
from kesoku_actors.harness.sites import Site

_MOST_BLOCKED: Final = 8


def text(found: Counterexample, ink: Ink = PLAIN, *, again: str = "--replay") -> str:
    """Return the report, without a line break at its end; `again` with the token is the command that replays it."""
    return "\n".join(_lines(cleaned(found), ink, again))


def _lines(found: Counterexample, ink: Ink, again: str) -> Iterator[str]:
    story = found.story
    first, *more = _wrapped(f"FAILS {found.program}: {printable(found.failure)}", indent="  ")
    yield f"{ink.red}{ink.bold}FAILS{ink.off}{first[len('FAILS') :]}"
    yield from more
    yield from _failed(found)
    if story.summary:
        yield from _wrapped(f"In short: {without_places(story.summary)}", indent="  ", first="  ")
    yield from _deciding(story, ink)
    if found.inputs:
        yield ""
        yield f"{ink.bold}With these inputs{ink.off}"
        for name, value in found.inputs.items():
            yield from _wrapped(f"{name} = {printable(repr(value))}", indent="    ", first="  ")
    yield ""
    yield f"{ink.bold}How to make it fail{ink.off}"
    yield from _wrapped(f"order: {ORDERS[found.form.base]}", indent="    ", first="  ")
    for number, event in enumerate(found.form.events[:MOST_EVENTS], 1):
        yield from _wrapped(f"{number}. {event}", indent="     ", first="  ")
        if (site := story.held_at[number - 1]) is not None:
            yield _source(f"it stands at {place(site)} then  {source_of(site)}", 5)
    yield from (f"  {said}" for said in about_events(found))
    yield ""
    yield f"{ink.bold}What happened{ink.off}  {ink.dim}{LEGEND}{ink.off}"
    yield from tree(story, ink)
    yield from Picture(story, story.failing, ink).lines()
    if story.blocked:
        yield ""
        yield f"{ink.bold}Who is blocked on what{ink.off}"
        yield from _blocked(story)
    yield ""
    yield f"{ink.bold}The nearest run that passes{ink.off}"
    yield from _passing(story, ink)
    if made := list(places(_all_said(story))):
        yield ""
        yield f"{ink.bold}Where things are made{ink.off}"
        yield from (f"  {one}" for one in made)
    yield ""
    yield f"{ink.bold}Who can do this{ink.off}: {found.grade}"
    yield from _wrapped(MEANING[found.grade], indent="  ", first="  ")
    rates = "; ".join(map(str, found.rates))
    yield from _wrapped(f"Runs that fail, by scheduler: {rates}.", indent="    ", first="  ")
    yield f"  Found by {found.found_by}, after {found.found_after:,} schedules."
    if not found.is_confirmed:
        yield from _wrapped(
            f"It was seen again in this process only, and not in a fresh one: {printable(found.unconfirmed)}.",
            indent="  ",
            first="  ",
        )
    yield ""
    yield f"{ink.bold}See it again{ink.off}: {again} {found.token}"


def _wrapped(said: str, *, indent: str, first: str = "") -> list[str]:
    lines = wrap(
        said, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return lines or [first.rstrip()]


def _source(source: str, indent: int) -> str:
    return f"{' ' * indent}{cut(printable(source), WIDTH - indent)}"


def _failed(found: Counterexample) -> Iterator[str]:
    story = found.story
    if story.message and story.message not in found.failure and (story.raised_by or not story.blocked):
        for line in story.message.splitlines():
            yield from _wrapped(printable(line), indent="    ", first="  ")
    if story.raised_by:
        yield from _wrapped(f"raised in task `{story.raised_by}` at {story.raised_at}", indent="    ", first="  ")
        yield _source(story.raised_source, 5)
    if story.blocked:
        count = len(story.blocked)
        yield f"  nothing can run any more: {count} task{'s wait' if count > 1 else ' waits'} for ever"


def _deciding(story: Story, ink: Ink) -> Iterator[str]:
    if not story.witnesses:
        yield "  No two events were found whose order alone decides."
        return
    yield ""
    yield f"{ink.bold}The two events that decide{ink.off}"
    for number, one in zip("AB", story.witnesses, strict=True):
        yield from _witness(f"{ink.yellow}{number}{ink.off}", number, one)
    if story.gap is not None:
        yield from _gap(story.gap)
    if story.decides:
        yield from _wrapped(story.decides, indent="  ", first="  ")


def _witness(letter: str, plain: str, one: Witness) -> Iterator[str]:
    comes = f"step {one.step}" if one.step else "it is not reached in this run"
    said = f"{plain}. task `{one.lane}` {without_places(one.what)} at {one.site} ({comes})"
    first, *more = _wrapped(said, indent="     ", first="  ")
    yield first.replace(f"  {plain}.", f"  {letter}.", 1)
    yield from more
    yield _source(one.source, 7)
    yield from _callers(one.site)


def _gap(one: Witness) -> Iterator[str]:
    yield from _wrapped(f"Meanwhile task `{one.lane}` stands at {one.site}", indent="     ", first="  ")
    yield _source(one.source, 7)
    yield from _callers(one.site)


def _callers(site: Site | None) -> Iterator[str]:
    """Yield from where the function is called that a line is in."""
    if site is not None and site.caller is not None:
        yield f"       called at {site.caller}"


def _blocked(story: Story) -> Iterator[str]:
    for one in story.blocked[:_MOST_BLOCKED]:
        said = without_places(f"`{one.lane}` {waiting(one)}")
        yield from _wrapped(said, indent="    ", first="  ")
        yield _source(f"{place(one.site)}  {one.source}" if one.site is not None else one.source, 7)
        yield from _callers(one.site)
    if len(story.blocked) > _MOST_BLOCKED:
        yield f"  and {len(story.blocked) - _MOST_BLOCKED} more"


def _passing(story: Story, ink: Ink) -> Iterator[str]:
    parting, passing = story.parting, story.passing
    if parting is None or passing is None:
        yield "  None was found: every schedule that was tried near this one fails."
        return
    yield from _parting(parting)
    if passing.doings or passing.ticks:
        yield f"  {ink.green}What happens there{ink.off}"
        yield from Picture(story, passing, ink).lines()


def _parting(parting: Parting) -> Iterator[str]:
    if parting.difference:
        yield from _wrapped(parting.difference, indent="    ", first="  ")
    yield f"  They part at step {parting.step}."
    for where, said in (("here: ", parting.failing), ("there:", parting.passing)):
        yield from _wrapped(f"{where} {printable(said)}", indent="           ", first="    ")


def _all_said(story: Story) -> list[str]:
    runs = [story.failing, *([story.passing] if story.passing is not None else ())]
    said = [row.what for run in runs for row in run.doings]
    return [one.what for one in story.witnesses] + said + [one.waits_for for one in story.blocked]
