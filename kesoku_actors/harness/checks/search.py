"""The search for an order of operations that a model allows. Pure.

Wing and Gong's search (1993) with Lowe's memory of what was tried (2017): depth first, an operation may come next when
none that has to precede it is left out; a set of placed operations that led to the same state before is not tried
again. The question is NP-complete, so the search has a budget, and says when it gave up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum, auto

from attrs import frozen

BUDGET = 200_000
"""States that are tried."""


class End(Enum):
    """How a search ends."""

    FOUND = auto()
    NONE = auto()
    GAVE_UP = auto()


@frozen
class Search:
    """What came of a search."""

    end: End
    order: tuple[int, ...]
    """The operations that could be placed: all that must be, or the longest beginning found."""
    tried: int


def find_order(
    count: int,
    precedes: Sequence[int],
    follow: Callable[[Hashable, int], Iterable[Hashable]],
    initial: Hashable,
    *,
    required: int,
    budget: int = BUDGET,
) -> Search:
    """Look for an order of operations 0 .. count-1.

    `precedes[n]` is the set, as bits, of the operations that come before n; `follow(state, n)` yields the states that
    the model may be in after n, none when it cannot happen now; `required` the operations, as bits, that have happened
    for certain: any other one may be left out.
    """
    best: tuple[int, ...] = ()
    seen: set[tuple[int, Hashable]] = set()
    stack: list[tuple[int, Hashable, tuple[int, ...]]] = [(0, initial, ())]
    while stack:
        placed, state, order = stack.pop()
        if placed & required == required:
            return Search(End.FOUND, order, len(seen))
        if (placed, state) in seen:
            continue
        if len(seen) >= budget:
            return Search(End.GAVE_UP, best, len(seen))
        seen.add((placed, state))
        if len(order) > len(best):
            best = order
        for number in range(count - 1, -1, -1):
            if not placed >> number & 1 and precedes[number] & ~placed & required == 0:
                for following in follow(state, number):
                    stack.append((placed | 1 << number, following, (*order, number)))
    return Search(End.NONE, best, len(seen))
