"""The dynamic supervisor: children that come and go at run time, each for itself.

`Dynamic` is its face, made by the composer like a mailbox and valid through restarts of the supervisor. Children start
at once, restart alone, and all stop at the same time when the supervisor ends; restart kinds, intensity and `fatal` are
as with an ordered supervisor. An id is free again when its child ended for good, whose mailbox is closed then.
"""

from __future__ import annotations

import contextvars
import math
from collections import deque
from collections.abc import Callable
from typing import Any, final

import trio
from attrs import field
from trio.lowlevel import enable_ki_protection

from kesoku_actors.values import define, frozen

from .bell import Bell
from .cell import Cell
from .child import Child, Ended, Log
from .errors import ActorStopped, ChildReturned, NameTaken, StartFailed
from .leaves import has_leaf, is_ordinary
from .spec import ChildSpec, DynamicSpec, mailboxes
from .statistics import ChildStatistics, Kind
from .strategy import STARTS_AGAIN, Ending, restarts_in_period


@frozen(kw_only=True)
class ChildExit:
    """One life of a child ended."""

    id: str
    reason: Ending
    """`normal`: it returned; `stopped`: it was asked to end, or cancelled; `crashed`: it raised."""
    error: BaseException | None
    """What it raised; a stopped child may have raised on its way out."""
    restarting: bool
    """False when it ended for good."""


@final
class Dynamic:
    """Starts and stops the children of one dynamic supervisor."""

    def __init__(
        self, name: str, *, shutdown_s: float = math.inf, on_exit: Callable[[ChildExit], None] | None = None
    ) -> None:
        """`shutdown_s` limits the stop of all children together; each has its own grace anyway.

        `on_exit` is called in the supervisor's task for every end of a child. It must not wait nor raise: an error in
        it is a crash of the supervisor.
        """
        self.name = name
        self.shutdown_s = shutdown_s
        self.on_exit = on_exit
        self._crew: _Crew | None = None

    def start_nowait(self, spec: ChildSpec) -> None:
        """Start a child and do not wait for its readiness.

        Raises `NameTaken` when a child of this id runs, `ActorStopped` when the supervisor does not run or is stopping.
        """
        self._running().add(spec)

    async def start(self, spec: ChildSpec) -> None:
        """Start a child and wait until it called `started()`, or returned.

        Raises as `start_nowait`; `StartFailed` when the child crashed before, which then is not restarted;
        `ActorStopped` when it was stopped before. A caller cancelled while it waits takes the child back.
        """
        crew = self._running()
        child = crew.add(spec)
        beginning = crew.beginnings[child] = _Beginning()
        try:
            await beginning.over.wait()
        except BaseException:
            crew.take_back(child)
            raise
        if beginning.stopped:
            raise ActorStopped(child.path)
        if beginning.error is not None:
            raise StartFailed(child.path) from beginning.error

    async def stop(self, id: str) -> None:
        """Ask a child to stop and wait until it ended; returns at once when there is none.

        The stop goes on when the caller is cancelled. A child that calls this for itself waits for its own end.
        """
        if self._crew is None or (gone := self._crew.dismiss(id)) is None:
            await trio.lowlevel.checkpoint()
        else:
            await gone.wait()

    def request_stop(self, id: str) -> None:
        """Ask a child to stop and return at once; its grace begins now. There may be none."""
        if self._crew is not None:
            self._crew.dismiss(id)

    def children(self) -> tuple[ChildStatistics, ...]:
        """Return a reading of every child, oldest first; empty when the supervisor does not run."""
        return self._crew.statistics() if self._crew is not None else ()

    def _running(self) -> _Crew:
        if self._crew is None or self._crew.leaving:
            raise ActorStopped(self.name)
        return self._crew

    # What follows is the kernel's side.

    def bind(self, crew: _Crew | None) -> None:
        """Point the face to the supervisor's present life. Raises `RuntimeError` when it serves another one."""
        if crew is not None and self._crew is not None:
            raise RuntimeError(f"{self.name!r} is the face of a dynamic supervisor already; give each its own")
        self._crew = crew


async def attend(spec: DynamicSpec, log: Log, cell: Cell[Any]) -> None:
    """Be the dynamic supervisor `spec` describes: the start function of its child spec."""
    await _Crew(spec, log, cell).run()


@define(eq=False)
class _Beginning:
    """What `Dynamic.start` waits for."""

    over: trio.Event = field(factory=trio.Event)
    stopped: bool = False
    error: BaseException | None = None


@final
class _Crew:
    """One life of a dynamic supervisor."""

    def __init__(self, spec: DynamicSpec, log: Log, cell: Cell[Any]) -> None:
        self._spec = spec
        self._log = log
        self._cell = cell
        self._context = contextvars.copy_context()
        self._nursery: trio.Nursery | None = None
        self._children: dict[str, Child] = {}
        self._stopping: dict[Child, trio.Event] = {}
        self._news: deque[Ended] = deque()
        self._bell = Bell()
        self._restarts: tuple[float, ...] = ()
        self._failures: list[BaseException] = []
        self._reason = ""
        self.beginnings: dict[Child, _Beginning] = {}
        self.leaving = False
        cell.on_stop = self._bell.ring
        cell.children = self.statistics

    def child_ready(self, child: Child) -> None:
        if (beginning := self.beginnings.pop(child, None)) is not None:
            beginning.over.set()

    def child_ended(self, ended: Ended) -> None:
        self._news.append(ended)
        self._bell.ring()

    @enable_ki_protection
    def add(self, spec: ChildSpec) -> Child:
        if spec.significant:
            raise ValueError(f"{spec.id!r}: a child of a dynamic supervisor cannot be significant")
        if spec.id in self._children:
            raise NameTaken(spec.id, self._cell.path)
        child = Child(spec, f"{self._cell.path}/{spec.id}", Kind.ACTOR, self, tuple(mailboxes(spec)))
        self._begin(child)
        self._children[spec.id] = child
        return child

    def dismiss(self, id: str) -> trio.Event | None:
        child = self._children.get(id)
        if child is None:
            return None
        gone = self._stopping.setdefault(child, trio.Event())
        child.request_stop()
        return gone

    def take_back(self, child: Child) -> None:
        if self._children.get(child.spec.id) is child:
            self.dismiss(child.spec.id)
            child.cancel()

    def statistics(self) -> tuple[ChildStatistics, ...]:
        return tuple(child.statistics() for child in self._children.values())

    @enable_ki_protection
    async def run(self) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                self._spec.dynamic.bind(self)
                self._cell.started()
                try:
                    await self._look_after()
                finally:
                    self.leaving = True
                    for child in self._children.values():
                        child.cancel()
        finally:
            self._hear_news()
            self._spec.dynamic.bind(None)
            if self._failures:
                raise BaseExceptionGroup(f"{self._cell.path} gave up: {self._reason}", self._failures)

    async def _look_after(self) -> None:
        dismissed = False
        while True:
            self._hear_news()
            if self._cell.stopping.is_set():
                self.leaving = True
            if self.leaving and not self._children:
                return
            if self.leaving and not dismissed:
                dismissed = True
                for id in self._children:
                    self.dismiss(id)
            await self._bell.wait()

    def _begin(self, child: Child) -> None:
        if self._nursery is None:
            raise RuntimeError(f"{self._cell.path} takes no child before it runs")
        child.start(self._nursery, self._context)

    def _hear_news(self) -> None:
        while self._news:
            ended = self._news.popleft()
            restarting = self._judge(ended)
            if restarting:
                ended.child.restarts += 1
                self._log("child_restarted", path=ended.child.path, group=(ended.child.spec.id,))
                self._begin(ended.child)
            else:
                self._forget(ended)
            if self._spec.dynamic.on_exit is not None:
                reason = Ending.CRASHED if ended.error is not None else ended.ending
                self._spec.dynamic.on_exit(
                    ChildExit(id=ended.child.spec.id, reason=reason, error=ended.error, restarting=restarting)
                )

    def _judge(self, ended: Ended) -> bool:
        """Decide whether the child starts again."""
        child, error = ended.child, ended.error
        if ended.cut_off:
            self._log("child_cancelled", path=child.path)
        if error is not None:
            self._log("child_crashed", path=child.path, error=error)
            if not is_ordinary(error) or has_leaf(error, child.spec.fatal):
                return self._fail(f"no restart helps {child.spec.id!r}", error)
            if child in self.beginnings:
                return False
        # It may have ended by itself just before it was asked to stop.
        if self.leaving or child in self._stopping or not STARTS_AGAIN[child.spec.restart, ended.ending]:
            return False
        self._restarts = restarts_in_period(self._restarts, trio.current_time(), self._spec.period_s)
        if len(self._restarts) > self._spec.intensity:
            reason = f"more than {self._spec.intensity} restarts within {self._spec.period_s:g} s"
            return self._fail(f"{reason}, the last of {child.spec.id!r}", error or ChildReturned(child.path))
        return True

    def _forget(self, ended: Ended) -> None:
        child = ended.child
        del self._children[child.spec.id]
        child.shut()
        if (gone := self._stopping.pop(child, None)) is not None:
            gone.set()
        if (beginning := self.beginnings.pop(child, None)) is not None:
            beginning.stopped = ended.ending is Ending.STOPPED
            beginning.error = ended.error
            beginning.over.set()

    def _fail(self, reason: str, error: BaseException) -> bool:
        self._reason = self._reason or reason
        self._failures.append(error)
        self.leaving = True
        return False
