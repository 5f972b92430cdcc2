"""Why a program did not end before its step limit: does it go round for ever, or does it only take long?

Now and then in a long run, and behind the limit, the program is looked at for some steps. When it seems to go round,
and behind the limit always, it goes on under a fair order for a while, without early time. When a state comes again
there that it has been in (`state.py`), it will come again for ever: a `Livelock`, and the steps between are its cycle.
When only the places come again and some value is another one each time, or time passes and the program asked how late
it is, nobody can tell: the `StepLimit` says so and names the steps all the same.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from types import CoroutineType
from typing import Any, Final, Protocol

from attrs import define, field

from kesoku_actors.harness.control.state import State, state_of
from kesoku_actors.harness.errors import Livelock, RunEnded, StepLimit
from kesoku_actors.harness.lanes import Lane
from kesoku_actors.harness.sites import site_of

LONGEST: Final = 1_500
"""Steps that are looked at."""
_SHOWN: Final = 12
_FIRST_WINDOW: Final = 2_000
_WINDOW: Final = 64
_PROBATION: Final = 200
"""Steps behind which a run is first looked at, steps that are looked at, and steps under a fair order after that."""
_COMPARED: Final = {LONGEST: 200, _PROBATION: 60, _WINDOW: 3}
"""So many states are compared at most, by how long one looks."""


class Asked(Protocol):
    """The clock."""

    now: float
    diagnosis: Diagnosis | None
    """Told when the program asks for the time."""


@define(eq=False)
class Diagnosis:
    """The steps behind the limit. Brent's way: one moment is kept, another one after twice as many steps each time."""

    limit: int
    longest: int = LONGEST
    asked: int = 0
    """How often the program asked what time it is."""
    steps: int = 0
    _kept: State | None = None
    _who: list[str] = field(factory=list)
    """What is ready: it tells most moments apart, and at once."""
    _places: list[Any] | None = None
    _at: float = 0.0
    _asked_before: int = 0
    _noted: int = 0
    _next: int = 1
    _since: list[str] = field(factory=list)
    _repeated: tuple[str, ...] = ()
    _compared: int = 0

    def look(self, lanes: Iterable[Lane], ready: Sequence[Lane], now: float, noted: int) -> RunEnded | None:
        """Look at a moment before a step; return what the program is ended with, if it is time."""
        who = [lane.name for lane in ready]
        comes_again = who == self._who and self._places is not None and _are_at(self._places, lanes, ready)
        if comes_again and self._kept is None:
            self._keep(lanes, ready, now, noted)
        elif comes_again and self._compared < _COMPARED[self.longest]:
            self._compared += 1
            cycle = [*self._since, *([f"{now - self._at:g} s pass"] if now > self._at else [])]
            is_proof = noted == self._noted and (now == self._at or self.asked == self._asked_before)
            if is_proof and self._kept is not None and state_of(lanes, ready, now).same(self._kept):
                return Livelock(_short(cycle))
            self._repeated = self._repeated or tuple(cycle)
        if self.steps >= self.longest:
            return StepLimit(self._told())
        if self.steps >= self._next or self._places is None:
            self._next, self._kept = 2 * max(1, self.steps), None
            self._who, self._places = who, list(_places(lanes, ready))
        self.steps += 1
        if self._kept is not None and self.longest != _WINDOW:
            self._since.append(f"`{ready[0].label}` at {site_of(ready[0].task.coro)}")
        return None

    def _keep(self, lanes: Iterable[Lane], ready: Sequence[Lane], now: float, noted: int) -> None:
        """Keep this moment; it takes about a millisecond, so only where everybody stands as before."""
        self._kept, self._at = state_of(lanes, ready, now), now
        self._noted, self._asked_before, self._since = noted, self.asked, []

    def _told(self) -> str:
        told = f"the program was ended after {self.limit} steps"
        if not self._repeated:
            return told
        return f"{told}; the same steps come again and again, with other values or at another time: " + " -> ".join(
            _short(self._repeated)
        )


@define(eq=False)
class Suspicion:
    """Whether a run goes round: looked at in windows, each behind twice as many steps as the one before."""

    limit: int
    at: int = _FIRST_WINDOW
    """At which step to look next."""
    is_fair: bool = False
    """Whether the strategy is set aside, to see if the program goes round without it, too."""
    _window: int = _FIRST_WINDOW
    _watched: Diagnosis | None = None

    def __attrs_post_init__(self) -> None:
        self.at = min(self.at, self.limit)

    def look(
        self, step: int, lanes: Sequence[Lane], ready: Sequence[Lane], clock: Asked, noted: int
    ) -> RunEnded | None:
        """Look at a moment before a step; return what the program is ended with, if it is time."""
        is_over = step >= self.limit
        if self._watched is None or (is_over and self._watched.longest != LONGEST):
            self._watched = Diagnosis(self.limit, LONGEST if is_over else _WINDOW)
            self.is_fair = is_over
        clock.diagnosis = self._watched
        ending = self._watched.look(lanes, ready, clock.now, noted)
        if is_over or ending is None:
            self.at = step + 1
            return ending
        if isinstance(ending, Livelock) and self.is_fair:
            return ending
        self.is_fair = isinstance(ending, Livelock)
        self._watched = Diagnosis(self.limit, _PROBATION) if self.is_fair else None
        if not self.is_fair:
            clock.diagnosis = None
            self._window = 2 * max(self._window, step)
        self.at = step + 1 if self.is_fair else min(self._window, self.limit)
        return None


def _are_at(places: list[Any], lanes: Iterable[Lane], ready: Sequence[Lane]) -> bool:
    """Tell whether everybody stands where they stood; quick, as mostly somebody does not."""
    return all(map(operator.eq, places, _places(lanes, ready)))


def _places(lanes: Iterable[Lane], ready: Sequence[Lane]) -> Iterator[Any]:
    """Yield how many live, who of them is ready, and where each stands."""
    living = [lane for lane in lanes if not lane.ended]
    numbers = {lane: place for place, lane in enumerate(living)}
    yield len(living), [numbers[lane] for lane in ready]
    for lane in living:
        yield _stack(lane.task.coro)


def _stack(coroutine: Any) -> list[Any]:
    found: list[Any] = []
    while coroutine is not None:
        if isinstance(coroutine, CoroutineType):
            frame, coroutine = coroutine.cr_frame, coroutine.cr_await
        else:
            frame, coroutine = getattr(coroutine, "gi_frame", None), getattr(coroutine, "gi_yieldfrom", None)
        if frame is not None:
            found += (frame.f_code, frame.f_lasti)
    return found


def _short(cycle: Sequence[str]) -> list[str]:
    """Return a cycle without repetitions next to each other, as long as a person reads."""
    told = [step for step, _same in groupby(cycle)]
    return told if len(told) <= _SHOWN else [*told[: _SHOWN - 1], f"{len(told) - _SHOWN + 1} more"]
