"""The ordered supervisor: an actor whose work is other actors.

It is one loop: hear who ended, decide by `strategy` where every child shall be, take the next step there by `order`,
wait for news. A crash while others start or stop is therefore nothing special.

It fails, that is, stops its children and raises their errors as one group,

- when a child is to start again more than `intensity` times within `period_s`;
- when a child crashes before it was ready for the first time while the supervisor itself still starts;
- when a crash has a leaf listed in the child's `fatal`, or one that is no `Exception`.

Then its own supervisor decides by the same rules, up to `run_system`. Its children are shielded, so its end is theirs
in every case: a cancellation reaches the supervisor alone, and it passes it on. When it has ended, its children's
mailboxes are closed: whatever waited there is answered.
"""

from __future__ import annotations

import contextvars
import math
from collections import deque
from functools import partial
from typing import Any, assert_never, final

import trio
from trio.lowlevel import enable_ki_protection

from .bell import Bell
from .cell import Cell
from .child import Child, Ended, Log, Watcher
from .dynamic import attend
from .errors import ChildReturned
from .leaves import has_leaf, is_ordinary
from .order import Rest, Standing, Start, Stop, Wanted, next_step
from .spec import AnySpec, ChildSpec, DynamicSpec, SupervisorSpec, mailboxes
from .statistics import ChildStatistics, Kind
from .strategy import STARTS_AGAIN, Member, plan, restarts_in_period


async def supervise(spec: SupervisorSpec, log: Log, cell: Cell[Any]) -> None:
    """Be the supervisor `spec` describes: the start function of its child spec."""
    await _Supervisor(spec, log, cell).run()


def child_of(spec: AnySpec, parent_path: str, log: Log, watcher: Watcher) -> Child:
    """Return the child for a spec of any kind: to its parent, a supervisor is an actor like others."""
    path = f"{parent_path}/{spec.id}" if parent_path else spec.id
    match spec:
        case ChildSpec():
            return Child(spec, path, Kind.ACTOR, watcher, tuple(mailboxes(spec)))
        case SupervisorSpec():
            kind, start, shutdown_s = Kind.SUPERVISOR, partial(supervise, spec, log), spec.shutdown_s
        case DynamicSpec():
            kind, start, shutdown_s = Kind.DYNAMIC, partial(attend, spec, log), spec.dynamic.shutdown_s
        case _ as never:
            assert_never(never)
    actor = ChildSpec(
        id=spec.id,
        start=start,
        restart=spec.restart,
        shutdown_s=shutdown_s,
        significant=spec.significant,
        fatal=spec.fatal,
    )
    return Child(actor, path, kind, watcher, tuple(mailboxes(spec)))


@final
class _Supervisor:
    """One life of an ordered supervisor."""

    def __init__(self, spec: SupervisorSpec, log: Log, cell: Cell[Any]) -> None:
        self._spec = spec
        self._log = log
        self._cell = cell
        self._children = {child.id: child_of(child, cell.path, log, self) for child in spec.children}
        self._wanted = dict.fromkeys(self._children, Wanted.UP)
        self._news: deque[Ended] = deque()
        self._bell = Bell()
        self._restarts: tuple[float, ...] = ()
        self._announced = False
        self._leaving = False
        self._failures: list[BaseException] = []
        self._reason = ""
        cell.on_stop = self._bell.ring
        cell.children = self._statistics

    def child_ready(self, _child: Child) -> None:
        self._bell.ring()

    def child_ended(self, ended: Ended) -> None:
        self._news.append(ended)
        self._bell.ring()

    @enable_ki_protection
    async def run(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                try:
                    await self._look_after(nursery)
                finally:
                    self._leave()
                    for child in reversed(self._children.values()):
                        child.cancel()
        finally:
            self._hear_news()
            for child in self._children.values():
                child.shut()
            if self._failures:
                raise BaseExceptionGroup(f"{self._cell.path} gave up: {self._reason}", self._failures)

    async def _look_after(self, nursery: trio.Nursery) -> None:
        context = contextvars.copy_context()
        while True:
            self._hear_news()
            if self._cell.stopping.is_set():
                self._leave()
            step = next_step([Standing(id, c.phase, self._wanted[id]) for id, c in self._children.items()])
            match step:
                case Start(id):
                    child = self._children[id]
                    timeout_s = self._spec.start_timeout_s if child.kind is Kind.ACTOR else math.inf
                    child.start(nursery, context, timeout_s)
                    continue
                case Stop(id):
                    self._children[id].request_stop()
                    continue
                case Rest.SETTLED:
                    if self._leaving:
                        return
                    self._announced = True
                    self._cell.started()
                case Rest.WAITING:
                    pass
                case _ as never:
                    assert_never(never)
            await self._bell.wait()

    def _hear_news(self) -> None:
        while self._news:
            self._judge(self._news.popleft())

    def _judge(self, ended: Ended) -> None:
        child, error = ended.child, ended.error
        id, restart = child.spec.id, child.spec.restart
        if ended.cut_off:
            self._log("child_cancelled", path=child.path)
        if error is not None:
            self._log("child_crashed", path=child.path, error=error)
            if not is_ordinary(error) or has_leaf(error, child.spec.fatal):
                self._fail(f"no restart helps {id!r}", error)
        if self._wanted[id] is Wanted.AFRESH:
            self._wanted[id] = Wanted.UP
        elif self._wanted[id] is Wanted.DOWN:
            child.shut()
        elif error is not None and not (child.was_ready or self._announced):
            self._fail(f"{id!r} ended before it was ready", error)
        elif STARTS_AGAIN[restart, ended.ending]:
            self._restart(child, error)
        else:
            self._wanted[id] = Wanted.DOWN
            child.shut()
            if child.spec.significant:
                self._leave()

    def _restart(self, child: Child, error: BaseException | None) -> None:
        spec = self._spec
        self._restarts = restarts_in_period(self._restarts, trio.current_time(), spec.period_s)
        if len(self._restarts) > spec.intensity:
            reason = f"more than {spec.intensity} restarts within {spec.period_s:g} s, the last of {child.spec.id!r}"
            self._fail(reason, error or ChildReturned(child.path))
            return
        members = [Member(id, c.spec.restart, c.phase.alive) for id, c in self._children.items()]
        group = plan(spec.strategy, members, child.spec.id)
        for id in group.stop:
            self._wanted[id] = Wanted.DOWN
        ended_too = {ended.child for ended in self._news}
        for id in group.start:
            sibling = self._children[id]
            # Siblings that ended in the same moment share this restart; their news must not count as another.
            self._wanted[id] = Wanted.AFRESH if sibling.phase.alive or sibling in ended_too else Wanted.UP
            sibling.restarts += sibling.was_started
        self._log("child_restarted", path=child.path, group=group.start)

    def _fail(self, reason: str, error: BaseException) -> None:
        self._reason = self._reason or reason
        self._failures.append(error)
        self._leave()

    def _leave(self) -> None:
        self._leaving = True
        for id, child in self._children.items():
            self._wanted[id] = Wanted.DOWN
            if not child.phase.alive:
                child.shut()

    def _statistics(self) -> tuple[ChildStatistics, ...]:
        return tuple(child.statistics() for child in self._children.values())
