"""What is said of all events of a counterexample together: that there are none, or many, or more than need be. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kesoku_actors.harness.counterexample import Counterexample

MOST_EVENTS: Final = 20
"""So many are told one by one."""


def about_events(found: Counterexample) -> Iterator[str]:
    """Yield what is to be said of the events as a whole."""
    count = len(found.form.events)
    if not count:
        yield "Nothing has to be held: the plain order fails."
    if count > MOST_EVENTS:
        yield f"and {count - MOST_EVENTS:,} more, which are in the token"
    if not found.is_minimal:
        yield "Fewer may do: the time in which events are taken away was over."
