"""What a run can end with that is no exception of the program's own. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class HarnessError(Exception):
    """Anything the harness raises to whoever called it."""


class RunEnded(BaseException):
    """Thrown into a program to end it; no `except Exception` of the program's stops it."""


class Deadlock(RunEnded):
    """Nothing can ever run again; `blocked` says which task waits where."""

    def __init__(self, blocked: Sequence[str]) -> None:
        self.blocked = tuple(blocked)
        super().__init__("nothing can run any more; blocked are " + "; ".join(self.blocked))


class StepLimit(RunEnded):
    """The run took more steps than it may; it was ended."""


class Livelock(RunEnded):
    """Time passes and tasks run, and nothing changes; `cycle` is what they do again and again."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        super().__init__("the same steps again and again: " + " -> ".join(self.cycle))


class Stuck(RunEnded):
    """A task ran for too long without a checkpoint; the text names the line."""


class Divergence(HarnessError):
    """A recorded schedule does not fit the program: its choices differ from those that were recorded."""


class Escape(HarnessError):
    """The program reached outside the simulated world: a thread, a socket, the real clock. The text names the call."""


class UnsupportedTrio(HarnessError):
    """The installed trio schedules in a way that this harness does not know."""

    exit_code = 3
    """What a command ends with."""
