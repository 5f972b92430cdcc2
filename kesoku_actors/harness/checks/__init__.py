"""Checkers: pure functions over what a program noted, that say *holds*, *fails* with two witnesses, or *inconclusive*.

    async def test(world: World) -> None:
        ...
        fifo(world.notes, by="session").demand()
        linearizable(world.notes, Register()).demand()

* `judgement`: the answer
* `order`: `fifo`, `ordered`, `batch_atomic`, `exactly_once`
* `spans`: `never_killed`, `terminal`, `prompt`, `conserved`
* `logic`: `always`, `eventually`, `leads_to`
* `histories`: `serializable`, `linearizable` and two models; `search`: how they look for an order
"""

from kesoku_actors.harness.checks.histories import Model, Operation, Queue, Register, linearizable, serializable
from kesoku_actors.harness.checks.judgement import Answer, GaveUp, Judgement, PropertyFailed, Trace
from kesoku_actors.harness.checks.logic import always, eventually, leads_to
from kesoku_actors.harness.checks.order import batch_atomic, exactly_once, fifo, ordered
from kesoku_actors.harness.checks.spans import Span, conserved, never_killed, prompt, terminal

__all__ = [
    "Answer",
    "GaveUp",
    "Judgement",
    "Model",
    "Operation",
    "PropertyFailed",
    "Queue",
    "Register",
    "Span",
    "Trace",
    "always",
    "batch_atomic",
    "conserved",
    "eventually",
    "exactly_once",
    "fifo",
    "leads_to",
    "linearizable",
    "never_killed",
    "ordered",
    "prompt",
    "serializable",
    "terminal",
]
