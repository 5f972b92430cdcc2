"""Questions to the person of a talk: calls that wait for a yes, one card at a time (T7).

What waits is stored; here is only what was shown of it. A card is printed once, whole, when it becomes the first that
waits. A number typed alone answers the card that stands there, unless it has just come up: who typed it then has meant
the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import field

from kesoku_actors.adapters.approvals import Decision, chosen, question, short_id, told
from kesoku_actors.adapters.commands import Choice
from kesoku_actors.clock import Clock
from kesoku_actors.gateway import Gateway
from kesoku_actors.protocol import ANONYMOUS, Approval
from kesoku_actors.values import define

UNREAD_S: Final = 0.7
"""A card that stands for less than this has been read by nobody."""

Say = Callable[[Sequence[str], str], None]


@define(eq=False)
class Questions:
    """The calls of one session that wait, as the person knows them."""

    gateway: Gateway
    clock: Clock
    say: Say
    """Prints lines in a style."""
    waiting: tuple[Approval, ...] = field(default=(), init=False)
    _shown: Approval | None = field(default=None, init=False)
    _shown_at: float = field(default=0.0, init=False)

    def forget(self) -> None:
        """Another session is talked in."""
        self.waiting, self._shown = (), None

    async def refresh(self, session_id: str | None) -> None:
        """Read what waits now, and show the next card if the last one is answered."""
        self.waiting = () if session_id is None else await self.gateway.reader.approvals(session_id)
        known = {approval.call_id for approval in self.waiting}
        if self._shown is not None and self._shown.call_id not in known:
            self._shown = None
        if self._shown is None and self.waiting:
            self._show(self.waiting[0], len(self.waiting) - 1)

    def choices(self) -> tuple[Choice, ...]:
        """Return what completes the argument of `/approve` and `/deny`."""
        return tuple(Choice(short_id(approval), approval.tool) for approval in self.waiting)

    async def obey(self, text: str) -> bool:
        """Answer the card that stands there when the text is one of its choices; return whether it was."""
        approval = self._shown
        decision = chosen(approval, text) if approval is not None else None
        if approval is None or decision is None:
            return False
        if self.clock.monotonic() - self._shown_at < UNREAD_S:
            self.say(("this question has just come up; read it, and answer again",), "yellow")
        else:
            self.say((await self.decide(approval, decision),), "dim")
        return True

    async def decide(self, approval: Approval, decision: Decision) -> str:
        """Store the answer of the person at this terminal, who may answer all there is; return what became of it."""
        answer = await self.gateway.answer_approval(
            approval.call_id,
            decision.approved,
            ANONYMOUS,
            is_admin=True,
            for_session=decision.for_session,
        )
        return told(approval, decision, answer)

    def _show(self, approval: Approval, more: int) -> None:
        self._shown, self._shown_at = approval, self.clock.monotonic()
        headline, what, choices = question(approval, self.clock.wall(), more)
        self.say(("", f"? {headline}"), "bold yellow")
        self.say(tuple(f"  {line}" for line in what), "")
        self.say((*(f"  {choice}" for choice in choices), ""), "yellow")
