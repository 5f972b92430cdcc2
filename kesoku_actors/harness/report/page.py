"""A counterexample as one HTML file: a space-time diagram of the failing run, and of the nearest one that passes.

One column a task, time downward; an arrow leads from what one task changed to the task that uses it next. The page
loads nothing and runs nothing, and says so to the browser; every word that comes from a program is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Final

from attrs import define, field

from kesoku_actors.harness.cause import source_of
from kesoku_actors.harness.counterexample import MEANING, ORDERS, Counterexample, Doing, RunView
from kesoku_actors.harness.report.holding import MOST_EVENTS, about_events
from kesoku_actors.harness.report.ink import printable
from kesoku_actors.harness.report.picture import time_passes, tree, without_places
from kesoku_actors.harness.report.waiting import waiting

_COLUMN: Final = 210
_ROW: Final = 46
_LEFT: Final = 56
_TOP: Final = 46
_LETTERS: Final = 34
"""How much of a line of text a column holds."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(found: Counterexample) -> str:
    """Return the page."""
    return "\n".join(_page(found)) + "\n"


def _page(found: Counterexample) -> Iterator[str]:
    story = found.story
    css = files(__package__).joinpath("page.css").read_text("utf-8")
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(found.program)} fails</title><style>{css}</style></head><body>"
    yield f"<h1><b>FAILS</b> {_text(found.program)}</h1><div>{_text(found.failure)}</div>"
    if story.raised_at is not None:
        at = f"task <code>{_text(story.raised_by)}</code> at {_text(str(story.raised_at))}"
        yield f'<div class="dim">raised in {at}: <code>{_text(story.raised_source)}</code></div>'
    if story.summary:
        yield f"<p><b>In short:</b> {_text(without_places(story.summary))}</p>"
    yield from _witnesses(found)
    yield from _instructions(found)
    yield "<h2>What happened</h2>"
    yield f'<pre class="dim">{_text_lines(tree(story))}</pre>'
    yield '<div class="runs">'
    yield from _run(story.failing, "fails", "This run fails")
    if story.passing is not None and story.parting is not None:
        yield from _run(story.passing, "passes", f"The nearest run that passes: {story.parting.difference}")
    yield "</div>"
    if story.parting is not None:
        yield f'<p class="dim">They part at step {story.parting.step}. Here {_text(story.parting.failing)}; '
        yield f"there {_text(story.parting.passing)}.</p>"
    yield from _blocked(found)
    rates = "; ".join(map(str, found.rates))
    yield f"<h2>Who can do this: {_text(found.grade.value)}</h2><div>{_text(MEANING[found.grade])}</div>"
    yield f'<div class="dim">Failing runs: {_text(rates)}</div>'
    yield f'<h2>See it again</h2><div class="token code">{_text(found.token)}</div>'
    yield "</body></html>"


def _witnesses(found: Counterexample) -> Iterator[str]:
    if not found.story.witnesses:
        return
    yield '<h2>The two events that decide</h2><div class="witnesses">'
    for letter, one in zip("AB", found.story.witnesses, strict=True):
        where = f"{one.site}, step {one.step}" if one.step else f"{one.site}, not in this run"
        did = _text(without_places(one.what))
        yield f'<div class="witness"><b>{letter}</b> task <code>{_text(one.lane)}</code> {did}'
        yield f'<div class="dim">{_text(where)}</div><pre>{_text(one.source)}</pre></div>'
    yield "</div>"
    if (gap := found.story.gap) is not None:
        yield f"<p>Meanwhile task <code>{_text(gap.lane)}</code> stands at {_text(str(gap.site))}: "
        yield f"<code>{_text(gap.source)}</code></p>"
    yield f"<p>{_text(found.story.decides)}</p>"


def _instructions(found: Counterexample) -> Iterator[str]:
    if found.inputs:
        yield "<h2>With these inputs</h2><ul>"
        yield from (f"<li><code>{_text(f'{name} = {value!r}')}</code></li>" for name, value in found.inputs.items())
        yield "</ul>"
    yield f'<h2>How to make it fail</h2><div class="dim">order: {ORDERS[found.form.base]}</div><ol>'
    told = found.form.events[:MOST_EVENTS]
    for event, site in zip(told, found.story.held_at, strict=False):
        stands = "" if site is None else f": it stands at <code>{_text(f'{site}: {source_of(site)}')}</code> then"
        yield f"<li>{_text(str(event))}{stands}</li>"
    yield "</ol>"
    yield from (f"<p>{_text(said)}</p>" for said in about_events(found))


def _blocked(found: Counterexample) -> Iterator[str]:
    if not found.story.blocked:
        return
    yield "<h2>Who is blocked on what</h2><ul>"
    for one in found.story.blocked:
        yield f"<li><code>{_text(one.lane)}</code> {_text(without_places(waiting(one)))}"
        yield f'<div class="dim code">{_text(f"{one.site}: {one.source}")}</div></li>'
    yield "</ul>"


def _run(run: RunView, kind: str, title: str) -> Iterator[str]:
    yield f'<section class="run {kind}"><h3>{_text(title)}</h3>'
    yield from _Drawing(run).svg()
    yield "</section>"


@define(eq=False)
class _Drawing:
    """Where everything stands in one diagram."""

    run: RunView
    columns: dict[str, int] = field(init=False)
    rows: dict[int, int] = field(init=False)
    """By step; steps at which time passed have a row of their own."""

    def __attrs_post_init__(self) -> None:
        labels = dict.fromkeys(row.lane for row in self.run.doings)
        self.columns = {label: _LEFT + number * _COLUMN + 12 for number, label in enumerate(labels)}
        steps = sorted({row.step for row in self.run.doings} | {number for number, _ in self.run.ticks})
        self.rows = {step: _TOP + number * _ROW + 24 for number, step in enumerate(steps)}

    def svg(self) -> Iterator[str]:
        width = _LEFT + max(1, len(self.columns)) * _COLUMN + 40
        height = _TOP + len(self.rows) * _ROW + 30
        yield f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        yield '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        yield 'orient="auto">'
        yield '<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        for label, x in self.columns.items():
            yield f'<text class="name" x="{x - 8}" y="18">{_text(_end(label))}<title>{_text(label)}</title></text>'
            yield f'<line class="lane" x1="{x}" y1="{_TOP - 18}" x2="{x}" y2="{height - 10}"/>'
        yield from self._ticks(width)
        yield from self._arrows()
        last: dict[str, int] = {}
        for row in self.run.doings:
            yield from self._step(row, last.get(row.lane))
            last[row.lane] = self.rows[row.step]
        yield "</svg>"

    def _ticks(self, width: int) -> Iterator[str]:
        for (number, _), wakes in zip(self.run.ticks, self.run.wakes, strict=True):
            y = self.rows[number]
            yield f'<line class="tick" x1="{_LEFT - 10}" y1="{y}" x2="{width}" y2="{y}"/>'
            yield f'<text class="time small" x="{_LEFT}" y="{y - 5}">{_text(time_passes(wakes))}</text>'

    def _arrows(self) -> Iterator[str]:
        lanes = {row.step: row.lane for row in self.run.doings}
        for arrow in self.run.arrows:
            if arrow.of in lanes and arrow.to in lanes:
                x1, y1 = self.columns[lanes[arrow.of]], self.rows[arrow.of]
                x2, y2 = self.columns[lanes[arrow.to]], self.rows[arrow.to]
                side = 8 if x2 < x1 else -8
                yield f'<path class="arrow" marker-end="url(#head)" d="M{x1} {y1}L{x2 + side} {y2}">'
                yield f"<title>{_text(arrow.why)}</title></path>"

    def _step(self, row: Doing, before: int | None) -> Iterator[str]:
        x, y = self.columns[row.lane], self.rows[row.step]
        if row.is_held:
            yield f'<line class="held" x1="{x}" y1="{before or _TOP - 18}" x2="{x}" y2="{y}"/>'
        kind = "end" if "FAILS" in row.what else "witness-dot" if row.is_witness else "dot"
        full = f"{row.what}\n{row.site}: {row.source}" if row.site is not None else row.what
        yield f'<text class="small" x="8" y="{y + 4}">{row.step}</text>'
        yield f'<circle class="{kind}" cx="{x}" cy="{y}" r="5.5"><title>{_text(full)}</title></circle>'
        line = "" if row.site is None else f"{row.site.line}: {row.source}"
        did = _text(_begin(without_places(row.what)))
        yield f'<text x="{x + 12}" y="{y - 2}">{did}<title>{_text(full)}</title></text>'
        yield f'<text class="small" x="{x + 12}" y="{y + 12}">{_text(_begin(line))}</text>'


def _begin(said: str) -> str:
    return said if len(said) <= _LETTERS - 8 else f"{said[: _LETTERS - 9]}…"


def _end(label: str) -> str:
    return label if len(label) <= _LETTERS - 8 else f"…{label[-(_LETTERS - 9) :]}"


def _text_lines(lines: Iterator[str]) -> str:
    return "\n".join(map(_text, lines))


def _text(said: str) -> str:
    return escape(printable(said))
