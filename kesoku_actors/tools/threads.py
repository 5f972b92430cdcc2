"""A function in a thread, which nothing can end: it is called, or it is left behind.

Two sides meet here, the thread and the trio task, and whoever comes first decides, under one lock::

    WAITING -> ENTERED -> RETURNED       the usual way
       |          `-----> LEFT           left behind: the return, whenever it comes, is announced
       `---------------> NEVER           left before the thread entered: the function is not called any more
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import trio
from attrs import field

from kesoku_actors.values import define


class Stage(enum.Enum):
    """Where a thread call stands."""

    WAITING = "waiting"
    ENTERED = "entered"
    RETURNED = "returned"
    LEFT = "left"
    NEVER = "never"


@define(eq=False)
class ThreadCall:
    """One call of `function` by one thread; call the value itself in the thread."""

    function: Callable[[], Any]
    token: trio.lowlevel.TrioToken
    on_return: Callable[[], None]
    """Called in the trio thread when a function that was left behind returns."""
    stage: Stage = field(default=Stage.WAITING, init=False)
    result: Any = field(default=None, init=False)
    """What it returned, once the stage is RETURNED."""
    error: BaseException | None = field(default=None, init=False)
    """What it raised, once the stage is RETURNED."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self) -> None:
        if not self._move({Stage.WAITING: Stage.ENTERED}):
            return
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
            raise
        finally:
            if not self._move({Stage.ENTERED: Stage.RETURNED}):
                self._announce()

    def leave(self) -> Stage:
        """Wait for it no longer; the stage it has now: RETURNED, LEFT or NEVER."""
        self._move({Stage.WAITING: Stage.NEVER, Stage.ENTERED: Stage.LEFT})
        return self.stage

    def _move(self, moves: dict[Stage, Stage]) -> bool:
        with self._lock:
            before = self.stage
            self.stage = moves.get(before, before)
            return self.stage is not before

    def _announce(self) -> None:
        with suppress(trio.RunFinishedError):  # the program may end before the function does
            self.token.run_sync_soon(self.on_return)
