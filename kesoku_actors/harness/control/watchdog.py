"""A watchdog outside of the simulation: it ends a step that never comes to its end, and names the line.

One thread of a process looks now and then at the run that goes on. A step is stuck when it has used so many seconds of
the processor, or six times as many by the clock (a real lock that nobody releases uses none): so a slow machine is not
taken for a stuck program. The error is raised in the program, again and again while it does not hear. Code in C that
hears nothing at all ends the process, with the line on the standard error: anything is better than to hang. Code in C
that never lets go of the interpreter keeps the watchdog from looking, too; so `faulthandler` watches the watchdog.

How an error gets into a running thread: by a signal in the main thread, because it also wakes what blocks in a lock;
elsewhere by the interpreter's asynchronous exceptions.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Protocol

from attrs import define, field

from kesoku_actors.harness.control.places import Owner, frames_of, owner_of
from kesoku_actors.harness.errors import Stuck
from kesoku_actors.harness.lanes import Lane
from kesoku_actors.harness.sites import Site

_PATIENCE: Final = 6
"""A step may take so many times longer by the clock than by the processor."""
DEAF: Final = 5
"""So many times the program is told; then the process ends."""
EXIT_STUCK: Final = 1
_SIGNAL: Final = getattr(signal, "SIGURG", None)
"""One that does nothing to a process that has no handler for it."""
_IDLE_S: Final = 0.5


class Watched(Protocol):
    """A run, as the watchdog sees it."""

    steps: int
    last: Lane | None


@define(eq=False, repr=False)
class Watch:
    """One run under watch. Without a representation: `signal` makes one of each handler, and it would be the run's."""

    run: Watched
    stuck_s: float
    thread: int
    has_signal: bool
    error: Stuck | None = None
    """Kept, because the program may swallow it."""
    steps: int = -1
    since: float = 0.0
    used: float = 0.0
    told: int = 0

    def look(self) -> None:
        """End the step when it is stuck."""
        now, used = time.clock_gettime(time.CLOCK_MONOTONIC), _used(self.thread)
        if self.run.steps != self.steps:
            self.steps, self.since, self.used = self.run.steps, now, used
        elif used - self.used >= self.stuck_s or now - self.since >= _PATIENCE * self.stuck_s:
            self.since, self.used = now, used
            self._end()

    def _end(self) -> None:
        site = _innermost(sys._current_frames().get(self.thread))
        who = self.run.last.label if self.run.last is not None else "the program"
        error = self.error or Stuck(f"`{who}` has run for {self.stuck_s:g} s without a checkpoint, at {site}")
        self.error = error
        self.told += 1
        if self.told > DEAF:
            os.write(2, f"kesoku-actors check: {error}; it hears no error, so the process ends\n".encode())
            os._exit(EXIT_STUCK)
        if self.has_signal:
            assert _SIGNAL is not None
            signal.pthread_kill(self.thread, _SIGNAL)
        else:
            kind = type("Stuck", (Stuck,), {"__init__": lambda one: Stuck.__init__(one, str(error))})
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(kind))

    def hear(self, _number: int, _frame: object) -> None:
        """Raise the error in the program; the handler of the signal."""
        if self.error is not None:
            raise self.error


@define(eq=False)
class _Watchdog:
    """The thread, and what it looks at."""

    watch: Watch | None = None
    patience_s: float | None = None
    """How long this thread itself may stay away; none: nobody watches it."""
    lock: Any = field(factory=threading.Lock)
    never: threading.Event = field(factory=threading.Event)

    def run(self) -> None:
        while True:
            watch = self.watch
            self.never.wait(_IDLE_S if watch is None else min(_IDLE_S, watch.stuck_s / 4))
            with self.lock:
                if watch is not None and watch is self.watch:
                    watch.look()
                self.patience_s = None
                self.be_watched()

    def put_on(self, watch: Watch | None) -> Watch | None:
        """Look at another run from now on; return the one before."""
        with self.lock:
            before, self.watch = self.watch, watch
            if watch is not None and self.patience_s != _PATIENCE * watch.stuck_s:
                self.be_watched()
        return before

    def be_watched(self) -> None:
        """Let the process end when this thread does not come here again in time: it cannot, without the interpreter."""
        if self.watch is None:
            faulthandler.cancel_dump_traceback_later()
        else:
            self.patience_s = _PATIENCE * self.watch.stuck_s
            faulthandler.dump_traceback_later(self.patience_s, exit=True, file=2)


@cache
def _watchdog(_process: int) -> _Watchdog:
    one = _Watchdog()
    threading.Thread(target=one.run, name="kesoku-actors watchdog", daemon=True).start()
    return one


@contextmanager
def watched(run: Watched, stuck_s: float) -> Iterator[Watch]:
    """Watch a run of this thread while the block runs; with infinite `stuck_s` nobody watches."""
    thread = threading.get_ident()
    has_signal = _SIGNAL is not None and threading.current_thread() is threading.main_thread()
    watch = Watch(run, stuck_s, thread, has_signal)
    if math.isinf(stuck_s):
        yield watch
        return
    dog = _watchdog(os.getpid())
    handler = signal.signal(_SIGNAL, watch.hear) if has_signal and _SIGNAL is not None else None
    before = dog.put_on(watch)
    try:
        yield watch
    finally:
        dog.put_on(before)
        if has_signal and _SIGNAL is not None:
            signal.signal(_SIGNAL, handler)


def _used(thread: int) -> float:
    """Return the seconds of the processor that a thread has used."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time()
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


def _innermost(frame: Any) -> Site | None:
    for one in frames_of(frame):
        if owner_of(one.f_code.co_filename) is Owner.PROGRAM:
            return Site(one.f_code.co_filename, one.f_lineno, one.f_code.co_name)
    return None
