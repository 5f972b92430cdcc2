"""One child under supervision: its lives, one task each, and the guard around each life.

Invariants: at most one life at a time. Its cancel scope is shielded and carries the one deadline that matters at the
moment: of its start, none while it runs, of its grace once it was asked to stop. The guard's `try` stands outside that
scope, so a cancellation by the supervisor has been absorbed when the guard looks, and whatever it still sees is the
actor's own. The guard lets nothing out: the error goes to the supervisor as a value, which raises it again where it
gives up. Code of the kernel is protected from `KeyboardInterrupt`, code of the actor is not.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, final

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from kesoku_actors.values import frozen

from .cell import Cell
from .errors import StartTimeout
from .leaves import leaves
from .mailbox import Mailbox
from .spec import ChildSpec
from .statistics import ChildStatistics, Kind, Phase
from .strategy import Ending


class Log(Protocol):
    """Takes what supervisors report, an event name and its fields.

    `child_crashed` has `path` and `error`, the group whole; `child_restarted` has `path` and `group`, the ids of all
    that start again; `child_cancelled` has the `path` of a child that overran its time.
    """

    def __call__(self, event: str, /, **fields: object) -> None: ...


@frozen
class Ended:
    """A life of a child is over."""

    child: Child
    ending: Ending
    """STOPPED whenever the supervisor asked for it, also with an error on the way out."""
    cut_off: bool
    """True when it was cancelled because its time was up."""
    error: BaseException | None


class Watcher(Protocol):
    """The supervisor, as its children see it. Both calls are synchronous and come from the child's task."""

    def child_ready(self, child: Child, /) -> None: ...

    def child_ended(self, ended: Ended, /) -> None: ...


@disable_ki_protection
async def _run(start: Callable[[Cell[Any]], Awaitable[None]], cell: Cell[Any]) -> None:
    await start(cell)


@final
class Child:
    """A child spec and its present life."""

    __slots__ = (
        "_began",
        "_cell",
        "_mailboxes",
        "_scope",
        "_watcher",
        "kind",
        "last_error",
        "path",
        "phase",
        "restarts",
        "spec",
        "was_ready",
    )

    def __init__(
        self, spec: ChildSpec, path: str, kind: Kind, watcher: Watcher, mailboxes: tuple[Mailbox[Any], ...]
    ) -> None:
        self.spec = spec
        self.path = path
        self.kind = kind
        self.phase = Phase.DOWN
        self.restarts = 0
        self.was_ready = False
        self.last_error = ""
        self._watcher = watcher
        self._mailboxes = mailboxes
        self._cell: Cell[Any] | None = None
        self._scope: trio.CancelScope | None = None
        self._began = -math.inf

    @property
    def was_started(self) -> bool:
        """True once a first life began."""
        return self._began > -math.inf

    def start(self, nursery: trio.Nursery, context: contextvars.Context, timeout_s: float = math.inf) -> None:
        """Begin a life in `nursery`, in the supervisor's `context` whoever asks for it."""
        cell = self._cell = Cell(self.spec.id, self.path, self.spec.mailbox, self._ready)
        self._began = trio.current_time()
        scope = self._scope = trio.CancelScope(deadline=self._began + timeout_s, shield=True)
        self.phase = Phase.STARTING
        context.run(lambda: nursery.start_soon(self._guard, cell, scope, name=self.path))

    def request_stop(self) -> None:
        """Ask the present life to end, and begin its grace."""
        if self._cell is not None and self._scope is not None and self.phase is not Phase.STOPPING:
            self.phase = Phase.STOPPING
            self._scope.deadline = trio.current_time() + self.spec.shutdown_s
            self._cell.request_stop()

    def cancel(self) -> None:
        """Cancel the present life, if there is one."""
        if self._scope is not None:
            self.phase = Phase.STOPPING
            self._scope.cancel()

    def shut(self) -> None:
        """There will be no other life: answer what is still queued.

        That is its own mailbox and all below it, for a supervisor may have ended before it came to start them.
        """
        self.phase = Phase.GONE
        for mailbox in self._mailboxes:
            mailbox.close()

    def statistics(self) -> ChildStatistics:
        """Return a reading of the child and what is below it."""
        return ChildStatistics(
            id=self.spec.id,
            path=self.path,
            kind=self.kind,
            phase=self.phase,
            restarts=self.restarts,
            age_s=trio.current_time() - self._began if self.phase.alive else 0.0,
            last_error=self.last_error,
            mailbox=self.spec.mailbox.statistics() if self.spec.mailbox is not None else None,
            children=self._cell.children() if self._cell is not None else (),
        )

    def _ready(self) -> None:
        # An actor that could not be interrupted says so after the deadline: it will be cancelled and is not ready.
        if self._scope is not None and self.phase is Phase.STARTING and not self._scope.cancel_called:
            self.phase = Phase.RUNNING
            self.was_ready = True
            if self._scope.deadline < math.inf:  # trio makes much of a deadline that is set
                self._scope.deadline = math.inf
            self._watcher.child_ready(self)

    @enable_ki_protection
    async def _guard(self, cell: Cell[Any], scope: trio.CancelScope) -> None:
        try:
            with scope:
                await _run(self.spec.start, cell)
        except BaseException as error:
            # Also those that are no Exception: raised from here they would cancel a nursery whose other tasks are
            # shielded. The supervisor stops these in order first and then raises the error on.
            self._end(cell, scope, error)
        else:
            self._end(cell, scope, None)

    def _end(self, cell: Cell[Any], scope: trio.CancelScope, error: BaseException | None) -> None:
        ending = Ending.NORMAL if error is None else Ending.CRASHED
        if self.phase is Phase.STOPPING:
            ending = Ending.STOPPED
        elif self.phase is Phase.STARTING and scope.cancel_called:
            late = StartTimeout(self.path, scope.deadline - self._began)
            error = late if error is None else BaseExceptionGroup("late, and failed on the way out", [late, error])
            ending = Ending.CRASHED
        cell.close()
        self._cell = self._scope = None
        self.phase = Phase.DOWN
        # A child that returns without a word of readiness has done its work.
        self.was_ready = self.was_ready or ending is Ending.NORMAL
        if error is not None:
            self.last_error = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(error))
        self._watcher.child_ended(Ended(self, ending, scope.cancelled_caught, error))
