"""A counterexample as a mermaid sequence diagram. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kesoku_actors.harness.counterexample import Counterexample, RunView
from kesoku_actors.harness.report.ink import printable
from kesoku_actors.harness.report.picture import without_places

_SPECIAL: Final = re.compile(r"[^\w .,:`()\[\]/='+*!?-]")


def mermaid(found: Counterexample) -> str:
    """Return the diagram of the failing run."""
    return "\n".join(_lines(found))


def _lines(found: Counterexample) -> Iterator[str]:
    run = found.story.failing
    labels = list(dict.fromkeys(row.lane for row in run.doings))
    names = {label: f"t{number}" for number, label in enumerate(labels)}
    yield "sequenceDiagram"
    yield from (f"  participant {names[label]} as {_safe(label)}" for label in labels)
    yield from _steps(run, names)
    if names:
        yield f"  Note over {','.join(list(dict.fromkeys([*names.values()][:1] + [*names.values()][-1:])))}: " + _safe(
            found.failure
        )


def _steps(run: RunView, names: dict[str, str]) -> Iterator[str]:
    ticks, rows = list(run.ticks), {row.step: row for row in run.doings}
    for row in run.doings:
        while ticks and ticks[0][0] < row.step:
            ticks.pop(0)
            yield f"  Note over {names[row.lane]}: time passes"
        if row.is_held:
            yield f"  Note over {names[row.lane]}: held until here"
        where = f" ({row.site})" if row.site is not None else ""
        for arrow in run.arrows:
            if arrow.to == row.step and arrow.of in rows:
                yield f"  {names[rows[arrow.of].lane]}-->>{names[row.lane]}: {_safe(without_places(arrow.why))}"
        yield f"  {names[row.lane]}->>{names[row.lane]}: {row.step}. {_safe(without_places(row.what) + where)}"


def _safe(said: str) -> str:
    """Return text without what mermaid would take for its own: each such character as its number."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", printable(said)) or "-"
