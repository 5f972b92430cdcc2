"""One message on its way, and the answer on its way back.

A letter is told or asked. A told one is never answered. The states of an asked one::

    ASKED -> TAKEN -> ANSWERED
      |        `----> WITHDRAWN     the asker left while the actor had it: an answer goes nowhere
      |-> WITHDRAWN                 the asker left before: the inbox drops the letter unread
      `-> ANSWERED                  the mailbox closed under it

Invariants: ANSWERED and WITHDRAWN are final, so the first answer wins and a later one does nothing. A letter stands in
the register of the inbox that took it exactly while it is TAKEN. The asker is parked on the letter itself, which costs
half of a reply channel; it is rescheduled once, by the transition to ANSWERED, or aborted once, by WITHDRAWN. Who left
a listener instead of waiting has it called once, by the same transition and in the task that brought it about.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar, final

import trio
from trio.lowlevel import enable_ki_protection

M = TypeVar("M")

Hear = Callable[[Any, "Exception | None"], None]
"""Takes an answer, or the error in its place. Called in the task of whoever answers: it may take note and no more."""


class LetterState(Enum):
    """Where a letter stands; the table is in the module's docstring."""

    TOLD = "told"
    ASKED = "asked"
    TAKEN = "taken"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


# An enum member read through its class costs more than the transition it guards.
TOLD, ASKED, TAKEN, ANSWERED, WITHDRAWN = LetterState


@final
class Letter(Generic[M]):
    """What an actor reads from its inbox: a message, and who may wait for the answer.

    An asked letter may be answered at any time and from any task of the program; until then it stays registered with
    the actor that took it, and the end of that actor answers it with `ActorStopped`.
    """

    __slots__ = ("_answer", "_asker", "_error", "_hear", "_register", "_state", "message")

    def __init__(self, message: M, state: LetterState, hear: Hear | None = None) -> None:
        self.message = message
        self._state = state
        self._hear = hear
        self._asker: trio.lowlevel.Task | None = None
        self._register: dict[Letter[Any], None] | None = None
        self._answer: Any = None
        self._error: Exception | None = None

    @property
    def wants_reply(self) -> bool:
        """True while somebody waits for the answer: worth checking before costly work."""
        return self._state is TAKEN

    @property
    def was_taken(self) -> bool:
        """True once an actor read the letter."""
        return self._register is not None

    def reply(self, value: Any) -> None:
        """Answer the asker with `value`. Does nothing for a tell, a second answer, or an asker that left."""
        if self._state is TAKEN:
            self.settle(value, None)

    def refuse(self, error: Exception) -> None:
        """Raise `error` out of the asker's `ask`. Does nothing where `reply` does nothing.

        Give each letter an error object of its own: every asker adds its traceback to the one it gets.
        """
        if self._state is TAKEN:
            self.settle(None, error)

    # What follows is the kernel's side.

    @enable_ki_protection
    def take(self, register: dict[Letter[Any], None]) -> bool:
        """Hand the letter to an actor; False when its asker left, and the letter is to be dropped."""
        if self._state is ASKED:
            self._state = TAKEN
            self._register = register
            register[self] = None
            return True
        return self._state is TOLD

    @enable_ki_protection
    def settle(self, value: Any, error: Exception | None) -> None:
        """End the letter with an answer, whoever reads it; also a told one, whose sender may still wait for room."""
        if self._state is WITHDRAWN:
            return
        if self._state is TAKEN and self._register is not None:
            del self._register[self]
        self._state = ANSWERED
        self._answer = value
        self._error = error
        if self._asker is not None:
            trio.lowlevel.reschedule(self._asker)
            self._asker = None
        if self._hear is not None:
            self._hear(value, error)

    @enable_ki_protection
    def withdraw(self) -> None:
        """Take back what the sender no longer waits for."""
        if self._state is TAKEN and self._register is not None:
            del self._register[self]
        if self._state is not ANSWERED:
            self._state = WITHDRAWN
        self._asker = None

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.withdraw()
        return trio.lowlevel.Abort.SUCCEEDED

    @enable_ki_protection
    async def answer(self) -> Any:
        """Wait for the answer of a letter already sent; raises what it was refused with.

        It may be there already: a sender that waited for room wakes after the actor has had its turn.
        """
        if self._state is not ANSWERED:
            self._asker = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        self.raise_if_refused()
        return self._answer

    def raise_if_refused(self) -> None:
        """Raise the error the letter ended with, if it ended with one."""
        if self._error is not None:
            raise self._error
