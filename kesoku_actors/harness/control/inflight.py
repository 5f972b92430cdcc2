"""The errors of a run that were raised and have not ended their task yet: a crash that comes meanwhile undoes none.

They are where Python and trio keep them: handled by a frame that is suspended (`finally: await ...`) or that is
running, or held by a nursery whose other tasks are still unwinding. One that a program keeps elsewhere is not seen.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from kesoku_actors.harness.control.current import Controlled
from kesoku_actors.harness.failures import leaves


def errors_in_flight(run: Controlled) -> list[BaseException]:
    """Return the errors that were raised by now, each leaf of a group by itself."""
    found = [error for error in (sys.exception(),) if error is not None]
    for lane in run.lanes:
        if not lane.ended:
            found += _suspended_in(lane.task.coro)
            for nursery in lane.task.child_nurseries:
                found += nursery._pending_excs
    return [leaf for error in found for leaf in leaves(error)]


def unwinding(run: Controlled) -> frozenset[Any]:
    """Return the tasks that deal with an error of the program's, by a handler or on their way out."""
    return frozenset(
        lane.task
        for lane in run.lanes
        if not lane.ended
        and any(isinstance(leaf, Exception) for error in _suspended_in(lane.task.coro) for leaf in leaves(error))
    )


def _suspended_in(coroutine: object) -> Iterator[BaseException]:
    """Yield the errors that a coroutine and what it awaits hold on to."""
    seen, left = set[int](), [coroutine]
    while left:
        one: Any = left.pop()
        if isinstance(one, BaseException):
            yield one
        elif id(one) not in seen and _may_be_suspended(one):
            seen.add(id(one))
            left += gc.get_referents(one)


def _may_be_suspended(one: object) -> bool:
    return hasattr(type(one), "__await__") or isinstance(one, GeneratorType | AsyncGeneratorType)
