"""What the kernel gives an actor for one of its lives.

How an actor ends from outside, always in this order:

1. *The stop request.* `stopping` is set and the inbox hands out nothing more: a loop over it ends once the letters
   already handed out are dealt with. Letters still queued are not lost by this; they meet the next life of the actor,
   or are answered with `ActorStopped` when there is none. The actor may use its whole grace (`ChildSpec.shutdown_s`)
   to finish what it has in hand: nothing is cancelled yet.
2. *The cancellation*, when the grace is over: the actor's cancel scope is cancelled, and trio raises `Cancelled` at
   every checkpoint in it.
3. *The end*, also after a crash or a plain return: every ask the actor took and did not answer is answered with
   `ActorStopped`.

Only the supervisor decides on 2. The actor runs shielded from every scope outside the system, so a cancellation of the
program still gives each actor its stop request, its turn and its grace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, final

import trio

from .inbox import Inbox
from .letter import M
from .mailbox import Mailbox
from .ref import Ref
from .statistics import ChildStatistics


def _nothing() -> None:
    return None


def _no_children() -> tuple[ChildStatistics, ...]:
    return ()


@final
class Cell(Generic[M]):
    """The one argument of every actor function."""

    __slots__ = ("_inbox", "_mailbox", "_on_ready", "_ready", "children", "name", "on_stop", "path", "stopping")

    def __init__(self, name: str, path: str, mailbox: Mailbox[M] | None, on_ready: Callable[[], None]) -> None:
        self.name = name
        """The id of the child spec."""
        self.path = path
        """The ids from the root down to this child, joined by `/`."""
        self.stopping = trio.Event()
        """Set by the stop request; an actor that does not read its inbox waits for it."""
        self._mailbox = mailbox
        self._inbox = mailbox.open_inbox() if mailbox is not None else None
        self._on_ready = on_ready
        self._ready = False
        # Two hooks by which an actor that is itself a supervisor wakes up and shows its children.
        self.on_stop: Callable[[], None] = _nothing
        self.children: Callable[[], tuple[ChildStatistics, ...]] = _no_children

    @property
    def inbox(self) -> Inbox[M]:
        """The letters to read. Raises `RuntimeError` for a child spec without a mailbox."""
        if self._inbox is None:
            raise RuntimeError(f"{self.path} has no inbox: its child spec names no mailbox")
        return self._inbox

    @property
    def ref(self) -> Ref[M]:
        """The actor's own address, to be given to others. Raises `RuntimeError` where `inbox` does."""
        if self._mailbox is None:
            raise RuntimeError(f"{self.path} has no ref: its child spec names no mailbox")
        return self._mailbox.ref

    def started(self) -> None:
        """Say that the actor is ready; the next child in order starts then. Further calls do nothing."""
        if not self._ready:
            self._ready = True
            self._on_ready()

    # What follows is the kernel's side.

    def request_stop(self) -> None:
        """Step 1 of the module's docstring."""
        self.stopping.set()
        if self._inbox is not None:
            self._inbox.stop()
        self.on_stop()

    def close(self) -> None:
        """Step 3 of the module's docstring; a `started()` that comes later says nothing about the next life."""
        self._ready = True
        if self._mailbox is not None:
            self._mailbox.close_inbox()
