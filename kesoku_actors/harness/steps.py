"""A run step by step: who runs, from which line, what it touches, and who else could have run."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kesoku_actors.harness.cause import source_of
from kesoku_actors.harness.control import Step
from kesoku_actors.harness.exploration import Exploration
from kesoku_actors.harness.failures import failure_of
from kesoku_actors.harness.observe import see
from kesoku_actors.harness.report.ink import printable
from kesoku_actors.harness.rerun import player
from kesoku_actors.harness.strategy import RunInfo
from kesoku_actors.harness.token import token_of


def steps_of(exploration: Exploration, text: str) -> Iterator[str]:
    """Yield a paragraph for each step of the run that a token stands for. Raises `BadToken` and `Divergence`."""
    token = token_of(text)
    strategy = player(token, is_stale=token.fingerprint != exploration.fingerprint)
    info = RunInfo(number=0, rng=random.Random(0), length=100)
    seen = see(exploration.program(token.inputs or {}), strategy, exploration.plan, info)
    for step in seen.observed.steps:
        if step.lane is not None and not step.lane.is_program:
            continue
        yield "\n".join(_paragraph(step))
    error = seen.run.error
    yield "the program ends" if error is None else f"the program fails: {printable(failure_of(error))}"


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
