"""What a view of the terminal is, and what it is given. Pure values and one protocol."""

from __future__ import annotations

from typing import Final, Protocol

from kesoku_actors.adapters.terminal.summary import TurnSummary
from kesoku_actors.protocol import Event, Message, Role
from kesoku_actors.values import frozen

CUT: Final = "cut off: the model reached its output limit; ask it to go on"


@frozen(kw_only=True)
class Leaf:
    """A message that leaves, or a part of it: an answer, or a notice to people."""

    message: Message
    text: str
    is_ours: bool
    """Whether it belongs to the turn of the message this chat posted."""
    is_again: bool
    """Whether it was shown before and nobody knows whether it arrived."""

    @property
    def is_answer(self) -> bool:
        """Whether the model said it; a notice otherwise."""
        return self.message.role is Role.ASSISTANT

    @property
    def ending(self) -> str | None:
        """What to say after it, if anything."""
        return CUT if self.is_answer and self.message.metadata.get("truncated") else None

    @property
    def label(self) -> str | None:
        """What to say before it, if anything."""
        words = []
        if self.is_answer and not self.is_ours:
            words.append("answer to an earlier message")
        if self.is_again:
            words.append("shown again, as the last time was not confirmed")
        return "; ".join(words) or None


class View(Protocol):
    """Shows a turn. Every method may raise `SurfaceGone`; none is called while another runs."""

    @property
    def refresh_s(self) -> float | None:
        """How often `refresh` wants to be called, seconds; none: never."""

    async def show(self, event: Event, *, is_ours: bool) -> None:
        """Take an event; messages that leave come through `leave` alone."""

    async def leave(self, leaf: Leaf) -> None:
        """Write a leaf where people see it and return when it is written and flushed (C5)."""

    async def refresh(self) -> None:
        """Draw again what changes with time."""

    async def finish(self, summary: TurnSummary) -> None:
        """Write the last line; nothing comes after it."""
