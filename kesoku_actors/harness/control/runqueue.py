"""In place of trio's run queue and of the batches it is taken in: one task at a time, the one that is chosen.

trio's loop makes a batch of its queue in each of its passes, `batch = list(runner.runq)`, and runs what is in it. In
that module `list` is another function while a run lasts: it gives, for our queue, a batch that never ends by itself. It
is asked before each step whether there is one more, and that is when the next task is chosen. So a step costs no pass
of the loop, which looks after files, timers and instruments each time.

Invariant: what is chosen is the same as if each step were a pass of its own. A pass is needed when a deadline has come,
as the loop is what cancels; then the batch ends, and so it does when time is to pass and when nothing is runnable.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from kesoku_actors.harness.control.privates import Instruments, run

_LONG_HEAP: Final = 1_000
"""With so many deadlines, living or not, each step is a pass: there trio clears away the dead ones."""


class Chooses(Protocol):
    """A run, as its queue sees it."""

    @property
    def clock(self) -> Any: ...

    def pick(self) -> bool:
        """Choose the task of the next step and put it into `chosen`; false when there is none, or time passes."""


class RunQueue(list[Any]):
    """The tasks that are runnable, in the order in which they became so."""

    __slots__ = ("batch",)

    def __init__(self, control: Chooses, deadlines: Any) -> None:
        super().__init__()
        self.batch: Final = Batch(control, deadlines)

    def __iter__(self) -> Iterator[Any]:
        """Yield the next task alone, for a loop that takes its batch in another way: then each step is a pass."""
        if self.batch.begun():
            yield self.batch.pop()

    def clear(self) -> None:
        """Keep the tasks: each is taken out when it runs."""


class Batch:
    """What trio's loop takes its next task from."""

    __slots__ = ("_clock", "_deadlines", "_has_begun", "_pick", "chosen", "pop")

    def __init__(self, control: Chooses, deadlines: Any) -> None:
        self.chosen: Final[list[Any]] = []
        self.pop: Final[Callable[[], Any]] = self.chosen.pop
        self._pick, self._clock, self._deadlines = control.pick, control.clock, deadlines
        self._has_begun = False

    def begun(self) -> Batch:
        """Return this batch, for another pass of the loop."""
        self._has_begun = False
        return self

    def __bool__(self) -> bool:
        if self._has_begun:
            heap = self._deadlines._heap
            if heap and (heap[0][0] <= self._clock.now or len(heap) > _LONG_HEAP):
                return False
        self._has_begun = True
        return self._pick()

    def __len__(self) -> int:
        """No task is in it before it is asked for: there is nothing to put in order."""
        return 0

    def reverse(self) -> None:
        """Leave the order to who chooses."""

    def sort(self, *, key: object) -> None:
        """Leave the order to who chooses."""


class Hooks(dict[str, Any]):
    """The instruments of a run, by hook. trio looks three times a step for hooks that nobody has, which a dictionary
    answers sooner than trio's own `Instruments`; what that one does besides is done here, too."""

    __slots__ = ()
    call = Instruments.call
    add_instrument = Instruments.add_instrument
    remove_instrument = Instruments.remove_instrument

    @property
    def data(self) -> dict[str, Any]:
        """What the borrowed methods look into."""
        return self


@contextmanager
def batches_of_one() -> Iterator[None]:
    """Let trio's loop take its batches from our queue. For any other queue it stays as it is."""
    names = vars(run)
    before = names.get("list", builtins.list)
    names["list"] = _taken
    try:
        yield
    finally:
        names["list"] = before  # not removed: that would cost the loop all that the interpreter knows of its names


def _taken(things: Any = ()) -> Any:
    return things.batch.begun() if type(things) is RunQueue else builtins.list(things)
