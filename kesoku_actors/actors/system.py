"""Runs a supervision tree beside a block of code.

Leaving the block, by whatever road, stops the tree politely: in reverse order, each child with its grace, although the
block may be cancelled. The shield around this is bounded by the graces of the children (and by the root's own
`shutdown_s`); `System.cancel`, or a second interruption of the waiting task, such as a second Ctrl-C, cancels the whole
tree at once.
"""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import NoReturn, final

import trio
from trio.lowlevel import enable_ki_protection

from .child import Child, Ended, Log
from .errors import SystemFailed
from .leaves import is_ordinary, leaves
from .spec import SupervisorSpec
from .statistics import ChildStatistics
from .supervisor import child_of


def _silent(_event: str, /, **_fields: object) -> None:
    return None


def _is_cancellation(error: BaseException) -> bool:
    return all(isinstance(leaf, trio.Cancelled) for leaf in leaves(error))


def run_system(spec: SupervisorSpec, *, log: Log = _silent) -> System:
    """Run the tree `spec` while the block runs: `async with run_system(spec) as system:`.

    The block begins when every child is ready. When the root supervisor gives up, before or during the block, the
    block is cancelled and `SystemFailed` is raised out of it, with the errors behind that as `leaves` and the whole
    group as `__cause__`. If one of them is no `Exception` (KeyboardInterrupt, SystemExit), that group itself is raised
    instead. An error of the block leaves it as it is, unless the root gave up too: then it stands in the group.
    """
    return System(spec, log)


@final
class System:
    """A running tree; made by `run_system`."""

    def __init__(self, spec: SupervisorSpec, log: Log) -> None:
        self._spec = spec
        self._root = child_of(spec, "", log, self)
        self._manager = trio.open_nursery()
        self._body = trio.CancelScope()
        self._ready = trio.Event()
        self._ended = trio.Event()
        self._failure: BaseException | None = None

    def request_stop(self) -> None:
        """Ask the tree to stop and return at once; also for actors of the tree itself."""
        self._root.request_stop()

    def cancel(self) -> None:
        """Cancel the whole tree at once, graces or not, and the block; for whoever cannot wait for the stop."""
        self._root.cancel()
        self._body.cancel()

    async def wait_stopped(self) -> None:
        """Wait until the tree has ended, by `request_stop` or because a significant child did."""
        await self._ended.wait()

    async def stop(self) -> None:
        """Ask the tree to stop and wait until it has ended. An actor of the tree would wait for itself."""
        self.request_stop()
        await self._ended.wait()

    def statistics(self) -> ChildStatistics:
        """Return a reading of the whole tree."""
        return self._root.statistics()

    @enable_ki_protection
    async def __aenter__(self) -> System:
        # The nursery is entered and left by hand so that it never sees an error of the block, which it would wrap.
        nursery = await self._manager.__aenter__()
        self._root.start(nursery, contextvars.copy_context())
        try:
            await self._ready.wait()
        except BaseException:
            await self._close()
            raise
        if self._failure is not None:
            await self._close()
            self._raise_failure(self._failure, None)
        self._body.__enter__()
        return self

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        absorbed = False
        try:
            absorbed = bool(self._body.__exit__(kind, error, traceback))
        except BaseException as rest:
            # The scope took its own cancellations out of a group; the tree has to stop before the rest goes on.
            error = rest
        await self._close()
        if self._failure is not None:
            self._raise_failure(self._failure, None if absorbed else error)
        if error is not None and not absorbed:
            raise error
        return absorbed

    async def _close(self) -> None:
        try:
            with trio.CancelScope(shield=True):
                self._root.request_stop()
                with trio.move_on_after(self._spec.shutdown_s):
                    await self._ended.wait()
        finally:
            self._root.cancel()
            await self._manager.__aexit__(None, None, None)

    def _raise_failure(self, failure: BaseException, error: BaseException | None) -> NoReturn:
        causes = [cause for cause in (failure, error) if cause is not None and not _is_cancellation(cause)]
        group = BaseExceptionGroup(f"the actor system {self._spec.id!r} failed", causes)
        if not is_ordinary(group):
            raise group
        raise SystemFailed(self._spec.id, leaves(failure)) from group

    # What follows is the kernel's side: the root has no supervisor but this.

    def child_ready(self, _child: Child) -> None:
        self._ready.set()

    def child_ended(self, ended: Ended) -> None:
        self._root.shut()
        self._failure = ended.error
        self._ready.set()
        self._ended.set()
        if ended.error is not None:
            self._body.cancel()
