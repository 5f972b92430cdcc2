"""What stands in for the system while a program is under control: the clock, the I/O, the wake-up of trio's loop."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Protocol

import trio
from attrs import define

from kesoku_actors.harness.control.livelock import Diagnosis
from kesoku_actors.harness.control.places import Owner, call_of, owner_of
from kesoku_actors.harness.control.privates import WakeupSocketpair, run
from kesoku_actors.harness.control.traps import guard
from kesoku_actors.harness.errors import Escape
from kesoku_actors.harness.sites import Site, site_of


class Driven(Protocol):
    """What the clock asks when nothing is runnable."""

    @property
    def runner(self) -> Any:
        """trio's own."""

    def deadlocked(self) -> None:
        """Nothing is runnable, and no time will come."""


_REST_S: Final = 1.0
"""What a program that rests would wait for files, if there were any; nobody does."""


@define(eq=False)
class VirtualClock(trio.abc.Clock):
    """Virtual time."""

    control: Driven
    now: float = 0.0
    until: float = math.inf
    """Time passes up to here; at a later deadline the program rests, if it is one that goes on in pieces."""
    diagnosis: Diagnosis | None = None
    """Told when the program asks for the time."""

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        if self.diagnosis is not None and _program_asks(sys._getframe(2)):
            self.diagnosis.asked += 1
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump: trio asks only when nothing is runnable."""
        if deadline <= self.now:
            return 0.0
        if self.control.runner.waiting_for_idle:
            return 1.0
        if deadline > self.until:
            return _REST_S
        if deadline == math.inf:
            self.control.deadlocked()
            return 0.0
        self.now = deadline
        return 0.0


def _program_asks(frame: FrameType) -> bool:
    """Tell whether a frame is trio's `current_time()`, called by anyone but trio."""
    caller = frame.f_back
    called = frame.f_code.co_name == "current_time" and caller is not None
    return called and caller is not None and owner_of(caller.f_code.co_filename) is not Owner.LOOP


class NoIO:
    """In place of trio's I/O manager: there are no file descriptors."""

    def get_events(self, _timeout: float) -> tuple[()]:
        return ()

    def process_events(self, _events: object) -> None:
        pass

    def force_wakeup(self) -> None:
        pass

    def close(self) -> None:
        pass

    def statistics(self) -> None:
        return None

    async def wait_readable(self, what: object) -> None:
        raise _no_descriptors(what, "read")

    async def wait_writable(self, what: object) -> None:
        raise _no_descriptors(what, "written")

    def notify_closing(self, _what: object) -> None:
        pass


def _started_at(task: trio.lowlevel.Task) -> Site | None:
    """Return the line of the program that a task of a library works for: where the nearest task above stands."""
    above: trio.lowlevel.Task | None = task
    while above is not None:
        if (site := site_of(above.coro)) is not None:
            return site
        above = None if above.parent_nursery is None else above.parent_nursery.parent_task
    return None


def _no_descriptors(what: object, done: str) -> Escape:
    call = call_of(sys._getframe(2))
    site = call.site if call is not None else _started_at(trio.lowlevel.current_task())
    where = "" if site is None else f" at {site}"
    return guard().remember(
        Escape(f"the program waits{where} until {what!r} can be {done}; there are no files in here")
    )


@contextmanager
def without_the_system() -> Iterator[None]:
    """Let trio run without epoll and without its wake-up socket pair."""
    names = vars(run)
    saved_io = names["TheIOManager"]
    saved = {name: WakeupSocketpair.__dict__[name] for name in _WAKEUP}
    names["TheIOManager"] = NoIO
    for name, function in _WAKEUP.items():
        setattr(WakeupSocketpair, name, function)
    try:
        yield
    finally:
        names["TheIOManager"] = saved_io
        for name, function in saved.items():
            setattr(WakeupSocketpair, name, function)


def _nothing(_self: object, *_arguments: object) -> None:
    pass


def _wake(self: Any) -> None:
    self.flag = True
    task, self.task = getattr(self, "task", None), None
    if task is not None:
        trio.lowlevel.reschedule(task)


async def _wait_woken(self: Any) -> None:
    if not getattr(self, "flag", False):
        self.task = trio.lowlevel.current_task()

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
    self.flag = False


_WAKEUP: Final[dict[str, Any]] = {
    "__init__": _nothing,
    "wakeup_on_signals": _nothing,
    "drain": _nothing,
    "close": _nothing,
    "wakeup_thread_and_signal_safe": _wake,
    "wait_woken": _wait_woken,
}
