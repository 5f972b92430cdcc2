"""The latch of a session's worker: what waits for it, coalescing, never full (I9).

The broadcaster sets it right after the commit; the worker takes everything at once. Messages are kept by id, a
stop by its number, the mode as the last one, so that its size is bounded by what the store lets wait (B4). A
worker attaches its latch before it reads its waiting rows, so that nothing falls between.
"""

from __future__ import annotations

from typing import Protocol

from attrs import field

from kesoku_actors.protocol import BusyMode, Message, Stop, Waiting
from kesoku_actors.values import define


class Latch(Protocol):
    """A worker's face toward the gateway. Every method returns at once and never raises."""

    def message_waits(self, message: Waiting) -> None:
        """A message of a person or a notice for the model waits."""

    def message_withdrawn(self, message_id: str) -> None:
        """A waiting message was deleted."""

    def attachments_changed(self, message_id: str) -> None:
        """A message with attachments was stored or changed; who waits for one looks again (M8)."""

    def stop_stored(self, stop: Stop) -> None:
        """A stop was requested, forced, or has ended."""

    def mode_set(self, mode: BusyMode) -> None:
        """The busy mode of the session's channel is this one now."""

    def approvals_changed(self) -> None:
        """A person may have decided about a waiting call (T7): what was decided is stored; who has it in hand looks."""


class Keeper(Protocol):
    """Who keeps a session's history, its worker living or not. Every method returns at once and never raises."""

    def row_changed(self, row: Message) -> None:
        """A row of the history was stored or changed."""

    def rows_removed(self) -> None:
        """Rows were deleted: what is kept holds no longer, and is dropped (M7)."""


@define(eq=False)
class Latches:
    """The latch of each live worker. Outlives the tasks that use it."""

    by_session: dict[str, Latch] = field(factory=dict)
    keepers: dict[str, Keeper] = field(factory=dict)
    """By session."""

    def attach(self, session_id: str, latch: Latch) -> None:
        """Make `latch` the one of its session."""
        self.by_session[session_id] = latch

    def detach(self, session_id: str, latch: Latch) -> None:
        """Detach `latch`, and nobody else's."""
        if self.by_session.get(session_id) is latch:
            del self.by_session[session_id]

    def of(self, session_id: str) -> Latch | None:
        """Return the latch of a session whose worker lives."""
        return self.by_session.get(session_id)
