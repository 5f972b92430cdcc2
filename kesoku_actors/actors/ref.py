"""A ref: the address of an actor, valid through its restarts.

How the four ways of sending treat trio's rules:

- `tell` is always a cancellation point, and a schedule point only when it has to wait for room: a loop of tells runs on
  until the mailbox is full. Cancelled, it has sent nothing.
- `tell_nowait` and `ask_nowait` are synchronous.
- `ask` is both. An asker that leaves, by its deadline or a cancellation, takes its letter back if the actor has not
  read it: then the message had no effect. If the actor has it, the answer goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import trio
from trio.lowlevel import enable_ki_protection

from .errors import AskTimeout, MailboxFull
from .letter import ASKED, TOLD, Hear, Letter
from .statistics import MailboxStatistics

if TYPE_CHECKING:
    from .mailbox import Mailbox

M_contra = TypeVar("M_contra", contravariant=True)


def _told(message: Any) -> Any:
    return message if not isinstance(message, Letter) else Letter(message, TOLD)


@final
class Ref(Generic[M_contra]):
    """Sends to one mailbox. Hand it around freely: it holds no task and no resource."""

    __slots__ = ("_mailbox",)

    def __init__(self, mailbox: Mailbox[Any]) -> None:
        self._mailbox = mailbox

    def __repr__(self) -> str:
        return f"<Ref {self.name!r}>"

    @property
    def name(self) -> str:
        """The name of the mailbox."""
        return self._mailbox.name

    @enable_ki_protection
    async def tell(self, message: M_contra) -> None:
        """Send, waiting for room. Raises `ActorStopped` when nobody will read it.

        At most once: an actor that crashes with the message in hand does not see it again.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._mailbox.post_nowait(_told(message))
        except trio.WouldBlock:
            letter = Letter(message, TOLD)
            await self._mailbox.post(letter)
            letter.raise_if_refused()

    @enable_ki_protection
    def tell_nowait(self, message: M_contra) -> None:
        """Send at once. Raises `MailboxFull` when there is no room, `ActorStopped` when nobody will read it."""
        try:
            self._mailbox.post_nowait(_told(message))
        except trio.WouldBlock:
            raise MailboxFull(self.name, self._mailbox.capacity) from None

    @enable_ki_protection
    async def ask(self, message: M_contra, *, timeout_s: float | None = 5.0) -> Any:
        """Send and return the answer.

        Raises what the actor refused with; `ActorStopped` when it ended first, crashed, or is gone for good;
        `AskTimeout` after `timeout_s` seconds, the wait for room included. None waits as long as it takes.
        """
        letter = Letter(message, ASKED)
        if timeout_s is None:
            return await self._converse(letter)
        with trio.move_on_after(timeout_s):
            return await self._converse(letter)
        raise AskTimeout(self.name, timeout_s, taken=letter.was_taken)

    @enable_ki_protection
    def ask_nowait(self, message: M_contra, hear: Hear) -> Callable[[], None]:
        """Send at once, have `hear` called with the answer or with what `ask` would raise, and return how to leave.

        It costs no task. `hear` runs in the one of whoever answers, so it takes note and does nothing else; after the
        returned function was called it is not called any more. Raises what `tell_nowait` raises.
        """
        letter = Letter(message, ASKED, hear)
        try:
            self._mailbox.post_nowait(letter)
        except trio.WouldBlock:
            raise MailboxFull(self.name, self._mailbox.capacity) from None
        return letter.withdraw

    def statistics(self) -> MailboxStatistics:
        """Return a reading of the mailbox."""
        return self._mailbox.statistics()

    @enable_ki_protection
    async def _converse(self, letter: Letter[Any]) -> Any:
        try:
            self._mailbox.post_nowait(letter)
        except trio.WouldBlock:
            await self._mailbox.post(letter)
        return await letter.answer()
