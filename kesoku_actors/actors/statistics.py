"""Frozen readings of a running system, for `status` commands and tests. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from kesoku_actors.values import frozen


class Phase(Enum):
    """Where one child stands."""

    DOWN = "down"
    """Not running; a supervisor may start it."""
    STARTING = "starting"
    RUNNING = "running"
    """It called `started()`."""
    STOPPING = "stopping"
    """Asked to end; cancelled when its grace is over."""
    GONE = "gone"
    """Ended for good; only a restart of its whole group starts it again."""

    @property
    def alive(self) -> bool:
        """True while a task runs."""
        return self in _ALIVE


_ALIVE = (Phase.STARTING, Phase.RUNNING, Phase.STOPPING)


class Kind(Enum):
    """What a child is."""

    ACTOR = "actor"
    SUPERVISOR = "supervisor"
    DYNAMIC = "dynamic supervisor"


@frozen(kw_only=True)
class MailboxStatistics:
    """One mailbox at one moment."""

    name: str
    capacity: int
    waiting: int
    """Letters sent and not yet taken, those waiting for room included: may exceed `capacity`."""
    oldest_waiting_s: float
    """How long the oldest of them waits, in seconds; 0 when none does."""
    unanswered: int
    """Asks that the running actor has taken and not answered."""
    closed: bool
    """True when nobody will read it: `tell` and `ask` raise `ActorStopped`."""


@frozen(kw_only=True)
class ChildStatistics:
    """One child at one moment, with those below it."""

    id: str
    path: str
    kind: Kind
    phase: Phase
    restarts: int
    """How often its supervisor, in its present life, started it again."""
    age_s: float
    """Seconds since its present task began; 0 when none runs."""
    last_error: str
    """Type and text of the last crash; empty when there was none."""
    mailbox: MailboxStatistics | None
    children: tuple[ChildStatistics, ...]

    def walk(self) -> Iterator[ChildStatistics]:
        """Yield this child and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()
