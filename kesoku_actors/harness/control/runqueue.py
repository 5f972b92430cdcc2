"""In place of trio's run queue and of the batches it is taken in: one task at a time, the one that is chosen.

trio's loop makes a batch of its queue in each of its passes, `batch = list(runner.runq)`, and runs what is in it. In
that module `list` is another function while a run lasts: of our queue it gives the queue itself, a batch that is not
empty before nothing is runnable. What the loop takes out of it is the task that is chosen at that moment. So a step
costs no pass of the loop, which looks after files, timers and instruments each time.

Invariant: what is chosen is the same as if each step were a pass of its own. Of what a pass does only the deadlines
matter here, and who chooses looks after those that have come. A program that goes on in pieces (guest mode) is looked
at from outside between passes: there time that passes while work is runnable ends the batch.
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kesoku_actors.harness.control.privates import Instruments, run


class RunQueue(deque[Any]):
    """The tasks that are runnable, in the order in which they became so; as a batch, it gives the chosen one."""

    __slots__ = ("_in_pieces", "pop")
    pop: Callable[[], Any]

    def __init__(self, pick: Callable[[], Any], *, in_pieces: bool) -> None:
        """`pick` takes the task of the next step out of the queue; in pieces, it returns none when time passes."""
        super().__init__()
        self.pop = pick
        self._in_pieces = in_pieces

    def batch(self) -> RunQueue | Piece:
        """Return what a pass of the loop takes its tasks from."""
        return Piece(self) if self._in_pieces else self

    def __iter__(self) -> Iterator[Any]:
        """Yield the next task alone, for a loop that takes its batch in another way: then each step is a pass."""
        piece = Piece(self)
        if piece:
            yield piece.pop()

    def clear(self) -> None:
        """Keep the tasks: each is taken out when it runs."""

    def reverse(self) -> None:
        """Leave the order to who chooses."""

    def sort(self, *, key: object = None, reverse: bool = False) -> None:
        """Leave the order to who chooses."""


class Piece:
    """A batch that ends when time passes."""

    __slots__ = ("_chosen", "_queue")

    def __init__(self, queue: RunQueue) -> None:
        self._queue, self._chosen = queue, None

    def __bool__(self) -> bool:
        """Choose the next task; false when there is none, or time passes."""
        self._chosen = self._queue.pop() if self._queue else None
        return self._chosen is not None

    def pop(self) -> Any:
        """Return the task that was chosen."""
        return self._chosen

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
    return things.batch() if type(things) is RunQueue else builtins.list(things)
