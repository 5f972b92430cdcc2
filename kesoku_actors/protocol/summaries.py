"""A summary: what the model reads in place of older turns of its session. Pure.

The rows of those turns stay as they are. Summaries form a tree: one of level 0 stands for messages, any other for
the summaries below it, which then are not read any more. Those without a parent stand side by side, without gap or
overlap, from the beginning of the history.
"""

from __future__ import annotations

from attrs import Attribute, field

from kesoku_actors.protocol.invalid import InvalidMessage
from kesoku_actors.values import frozen

Spot = tuple[int, int]
"""Where a message stands in its session (O1): the seq of its turn's root, then its place."""


def _says_something(_summary: object, _attribute: Attribute[str], content: str) -> None:
    if not content.strip():
        raise InvalidMessage("a summary says something")


def _is_in_order(summary: Summary, _attribute: Attribute[Spot], last: Spot) -> None:
    if last < summary.first:
        raise InvalidMessage(f"a summary ends at {last} before it begins at {summary.first}")


@frozen(kw_only=True)
class Summary:
    """One summary. The model that wrote it is as little to be trusted as any (T1)."""

    id: str
    level: int
    """0: of messages; else one more than the highest of its children."""
    first: Spot
    """The first message it stands for, and `last` the last one; both are of whole turns where no summary is above."""
    last: Spot = field(validator=_is_in_order)
    content: str = field(validator=_says_something)
    children: tuple[str, ...] = ()
    """Ids of the summaries that it stands for, in order."""
    parent_id: str | None = None
    """The summary that stands for it; none: the model reads it."""
    provider: str
    """Who wrote it, and with which model."""
    model: str
    created: float
    """UTC seconds."""
    tokens_before: int
    """Of what it stands for, estimated when it was made."""
    tokens_after: int
    """Of its content, estimated."""
