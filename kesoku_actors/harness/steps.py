"""A run step by step: who runs, from which line, what it touches, and who else could have run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from attrs import frozen

from kesoku_actors.harness.cause import source_of
from kesoku_actors.harness.control import Step
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.exploring import judged, verdict_of
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.observe import Seen, see
from kesoku_actors.harness.report.ink import printable
from kesoku_actors.harness.rerun import inputs_of, player
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.token import token_of
from kesoku_actors.harness.verdict import Outcome


@frozen(kw_only=True)
class Stepped:
    """A run to be shown."""

    paragraphs: tuple[str, ...]
    """One for each step, and how it ends."""
    outcome: Outcome


def stepped(exploration: Exploration, text: str) -> Stepped:
    """Return the run that a token stands for, step by step. Raises `BadToken`, `Divergence` and `HarnessError`."""
    token = token_of(text)
    inputs, why_stale = inputs_of(exploration, token, {})
    strategy = player(token, is_stale=bool(why_stale))
    info = RunInfo(number=0, rng=random.Random(0), length=100)
    seen = see(exploration.program(inputs), strategy, exploration.plan, info)
    so_far = judged(seen.run)
    verdict = verdict_of(so_far, Outcome.FAILS if so_far.found is not None else None)
    end = "the program ends"
    if seen.run.error is not None:
        failed = f"the program fails: {failure_of(seen.run.error)}"
        end = printable(failed if so_far.found is not None else f"nothing is known: {verdict.reason}")
    said = (f"{why_stale}, and it is played as well as it can be",) if why_stale else ()
    return Stepped(paragraphs=(*said, *_paragraphs(seen), end), outcome=verdict.outcome)


def _paragraphs(seen: Seen) -> Iterator[str]:
    for step in seen.observed.steps:
        if step.lane is None or step.lane.is_program:
            yield "\n".join(_paragraph(step))


def _paragraph(step: Step) -> Iterator[str]:
    if step.lane is None:
        yield f"{step.number:>5}  time passes"
    elif step.site is None:
        yield f"{step.number:>5}  {step.time:g} s  `{step.lane.label}`"
    else:
        source = printable(source_of(step.site))
        yield f"{step.number:>5}  {step.time:g} s  `{step.lane.label}` goes on from {step.site}: {source}"
    for touch in dict.fromkeys((touch.how, touch.what, str(touch.site)) for touch in step.touched):
        yield f"         {touch[0]} {touch[1]} at {touch[2]}"
    others = [lane.label for lane in step.ready if lane is not step.lane and lane.is_program]
    if others:
        yield f"         could run too: {', '.join(others)}"
