"""Signals of a chat, from before its daemon starts until it has ended (C7).

The first SIGTERM or SIGHUP ends the chat in order, also while it starts. What then still runs gets its time; whoever
cannot wait sends a second SIGTERM, or presses Ctrl-C while it stops: everything is cancelled at once and ends with the
commit that is on its way. A second SIGHUP is no second request, as a shell adds its own to the terminal's.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

import trio
from attrs import field

from kesoku_actors.actors import System
from kesoku_actors.values import define

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGWINCH") if hasattr(signal, name)
)
_HANG_UP: Final = tuple(getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name))
WINDOW_CHANGED: Final = getattr(signal, "SIGWINCH", None)
"""Asks nobody to end; none where terminals do not say it."""

_MOST_WAITING: Final = 16


@define(eq=False)
class Signals:
    """Who is told of the next signal; `leave` is cancelled by one that ends the chat in order before it talks."""

    system: System
    leave: trio.CancelScope = field(factory=trio.CancelScope)
    ended_by: int = field(default=signal.SIGINT, init=False)
    """What the exit code names: the first signal that asked for an end in order, Ctrl-C when there is none."""
    _listener: trio.MemorySendChannel[int] | None = field(default=None, init=False)
    _terminated: bool = field(default=False, init=False)
    _stopping: bool = field(default=False, init=False)

    def take(self, number: int) -> None:
        """Do what the signal asks for now."""
        if self.ended_by == signal.SIGINT and number != WINDOW_CHANGED:
            self.ended_by = number
        again = number == signal.SIGTERM and self._terminated
        if again or (number == signal.SIGINT and self._stopping):
            self.system.cancel()
            return
        self._terminated = self._terminated or number == signal.SIGTERM
        if self._listener is not None:
            with suppress(trio.WouldBlock):  # more of the same would change nothing
                self._listener.send_nowait(number)
        elif number != WINDOW_CHANGED:
            self._stopping = True
            self.leave.cancel()

    def give_up(self) -> None:
        """End everything at once if it stops already: the store cannot write what the stop waits for."""
        if self._stopping:
            self.system.cancel()

    @contextmanager
    def heard(self) -> Iterator[trio.MemoryReceiveChannel[int]]:
        """Hand the signals to the block, as numbers; when it ends, the stop begins."""
        listener, numbers = trio.open_memory_channel[int](_MOST_WAITING)
        self._listener = listener
        try:
            with listener, numbers:
                yield numbers
        finally:
            self._listener, self._stopping = None, True


@contextmanager
def signals_to(system: System) -> Iterator[Signals]:
    """Take the signals of the process while the block runs, which is all of `system`'s life."""
    signals, token = Signals(system), trio.lowlevel.current_trio_token()

    def hear(number: int, _frame: FrameType | None) -> None:
        token.run_sync_soon(signals.take, number)

    ignored = {number for number in _HANG_UP if signal.getsignal(number) is signal.SIG_IGN}  # as `nohup` asks for
    before = {number: signal.signal(number, hear) for number in SIGNALS if number not in ignored}
    try:
        with signals.leave:
            yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
